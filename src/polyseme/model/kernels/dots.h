/* Stored vectors against one query: what exact search reads once, from one end to the other.
 *
 *     native.c  ->  dots.h  ->  vector.h
 *
 * A vector is summed in 2 * PANEL sums, whatever the instruction set and its place among the others: the same
 * vector gets the same bits everywhere.
 */

/* LANES numbers of fp16 as fp32. Without an instruction for it: shifted into place they are 2^112 times too small,
 * which is exact also for the smallest; index files hold no infinity. */
static INLINE vec NAME(widened)(const uint16_t *from)
{
#if BYTES == 64 && !defined(EMULATED)
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#elif BYTES == 32
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#else
    typedef uint16_t narrow __attribute__((vector_size(BYTES / 2)));
    narrow x;
    memcpy(&x, from, sizeof x);
    const ivec bits = __builtin_convertvector(x, ivec);
    const vec size = (vec)((bits & 0x7fff) << 13) * 0x1p112f;
    return (vec)((ivec)size | (bits & 0x8000) << 16);
#endif
}

static INLINE void NAME(dot_step)(const int kind, const void *row, const float *query, vec *sum)
{
#pragma GCC unroll 32
    for (int w = 0; w < WIDE; w++) {
        const vec x = kind == FP32 ? NAME(load)((const float *)row + w * LANES)
                                   : NAME(widened)((const uint16_t *)row + w * LANES);
        sum[w] = NAME(fma)(x, NAME(load)(query + w * LANES), sum[w]);
    }
}

static INLINE float NAME(row_dot)(const int kind, const char *row, const float *query, int64_t width)
{
    const int64_t size = kind == FP32 ? 4 : 2;
    vec sum[2 * WIDE];
    float parts[PANEL], rest[PANEL] = {0}, asked[PANEL] = {0};
    int64_t at = 0;
#pragma GCC unroll 32
    for (int w = 0; w < 2 * WIDE; w++)
        sum[w] = (vec){0};
    for (; at + 2 * PANEL <= width; at += 2 * PANEL) {
        NAME(dot_step)(kind, row + at * size, query + at, sum);
        NAME(dot_step)(kind, row + (at + PANEL) * size, query + at + PANEL, sum + WIDE);
    }
    for (; at < width; at += PANEL) { /* zeros behind the last value */
        const int64_t left = width - at < PANEL ? width - at : PANEL;
        memcpy(rest, row + at * size, (size_t)(left * size));
        memset((char *)rest + left * size, 0, sizeof rest - (size_t)(left * size));
        memcpy(asked, query + at, 4 * (size_t)left);
        memset(asked + left, 0, 4 * (size_t)(PANEL - left));
        NAME(dot_step)(kind, rest, asked, sum);
    }
#pragma GCC unroll 32
    for (int w = 0; w < WIDE; w++)
        NAME(store)(parts + w * LANES, sum[w] + sum[w + WIDE]);
#pragma GCC unroll 4
    for (int half = PANEL / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int lane = 0; lane < half; lane++)
            parts[lane] += parts[lane + half];
    return parts[0];
}

static INLINE void NAME(dots_of)(const int kind, const struct dots *q)
{
    const int64_t step = q->width * (kind == FP32 ? 4 : 2);
    for (int64_t first = 0; first < q->rows; first += TOGETHER) {
        const int64_t end = q->rows < first + TOGETHER ? q->rows : first + TOGETHER;
        float best = -INFINITY;
        for (int64_t row = first; row < end; row++) {
            float score = -INFINITY;
            if (!q->keep || q->keep[row]) {
                const float dot = NAME(row_dot)(kind, (const char *)q->vectors + row * step, q->query, q->width);
                score = (dot - q->offset) / q->lengths[row];
            }
            q->scores[row] = score;
            best = score > best ? score : best;
        }
        q->tops[first / TOGETHER] = best;
    }
}

static void NAME(dots)(const struct dots *q)
{
    if (q->kind == FP32)
        NAME(dots_of)(FP32, q);
    else
        NAME(dots_of)(FP16, q);
}
