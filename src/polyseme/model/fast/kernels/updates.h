/* A step of an optimiser for some weights, and the norm of their gradients.
 *
 *     native.c  ->  updates.h  ->  vector.h
 *
 * struct update in native.c describes inputs and outputs. Every value is rounded in the same order in every instruction
 * set, and by any number of threads.
 */

/* The square root, correctly rounded. */
static INLINE vec NAME(root)(vec x)
{
#if BYTES == 64
    return (vec)_mm512_sqrt_ps((__m512)x);
#elif BYTES == 32
    return (vec)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (vec)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__)
    return (vec)vsqrtq_f32((float32x4_t)x);
#else
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = __builtin_sqrtf(x[lane]);
    return x;
#endif
}

/* LANES values of a weight, of which the loop below gives the address. */
static INLINE void NAME(update_lanes)(const int kind, const struct update *q, const struct weight *w, const float *gradient,
                                      float *values, float *first, float *second)
{
    vec g = NAME(load)(gradient) * q->share, x = NAME(load)(values), sum = NAME(load)(second);
    if (kind == ADAMW) {
        const vec mean = NAME(load)(first) * q->beta1 + g * (1.0f - q->beta1);
        sum = sum * q->beta2 + g * g * (1.0f - q->beta2);
        NAME(store)(first, mean);
        x = x * w->kept - w->rate * (mean / (NAME(root)(sum) / w->root + q->epsilon));
    } else {
        g = g + x * q->decay;
        sum = sum + g * g;
        x = x - w->rate * (g / (NAME(root)(sum) + q->epsilon));
    }
    NAME(store)(second, sum);
    NAME(store)(values, x);
}

static INLINE void NAME(update_piece)(const int kind, const struct update *q, const struct weight *w, int64_t from, int64_t to)
{
    int64_t at = from;
    float *first = kind == ADAMW ? w->first : w->second; /* Adagrad has no first moment */
    for (; at + LANES <= to; at += LANES)
        NAME(update_lanes)(kind, q, w, w->gradient + at, w->values + at, first + at, w->second + at);
    if (at < to) {
        const size_t bytes = 4 * (size_t)(to - at);
        float edge[4][LANES] = {{0}}, *const all[4] = {(float *)w->gradient, w->values, first, w->second};
        for (int array = 0; array < 4; array++)
            memcpy(edge[array], all[array] + at, bytes);
        NAME(update_lanes)(kind, q, w, edge[0], edge[1], edge[2], edge[3]);
        for (int array = 1; array < 4; array++) /* the second moment last, which Adagrad has in both places */
            memcpy(all[array] + at, edge[array], bytes);
    }
}

/* Values from `from` to `to` of a weight. */
static void NAME(update)(const struct update *q, const struct weight *w, int64_t from, int64_t to)
{
    if (q->kind == ADAMW)
        NAME(update_piece)(ADAMW, q, w, from, to);
    else
        NAME(update_piece)(ADAGRAD, q, w, from, to);
}

/* The sum of the squares of some values, with PANEL sums in every instruction set. */
static double NAME(square_sum)(const float *x, int64_t count)
{
    vec sums[WIDE] = {{0}};
    float lanes[PANEL] = {0};
    double sum = 0.0;
    int64_t at = 0;
    for (; at + PANEL <= count; at += PANEL)
        for (int v = 0; v < WIDE; v++) {
            const vec value = NAME(load)(x + at + v * LANES);
            sums[v] += value * value;
        }
    for (int v = 0; v < WIDE; v++)
        NAME(store)(lanes + v * LANES, sums[v]);
    for (int64_t rest = at; rest < count; rest++)
        lanes[rest - at] += x[rest] * x[rest];
    for (int lane = 0; lane < PANEL; lane++)
        sum += (double)lanes[lane];
    return sum;
}
