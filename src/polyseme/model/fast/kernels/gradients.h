/* The gradient of a weight: out (m, n) += a (tokens, m)^T * b (tokens, n), a sum over tokens.
 *
 *     native.c  ->  gradients.h  ->  pack.h, product.h, vector.h
 *
 * Both factors are packed in panels of PANEL columns, some tokens at a time: a word holds one fp32, or, where the
 * machine multiplies pairs (DOT_BF16), two tokens as bf16. A tile of TALL rows by up to ACROSS panels stays in
 * registers. The order of the sums depends on the number of tokens only.
 */

#if BYTES == 64
#define TALL 8
#define ACROSS 3
#elif BYTES == 32
#define TALL 4
#define ACROSS 1
#else
#define TALL 2
#define ACROSS 1
#endif

/* Pack `width` columns of some tokens, in panels that are `next` apart. Zeros fill up the last panel and word. */
static INLINE void NAME(pack_tokens)(const int pairs, const float *from, int64_t step, int64_t tokens, int64_t width,
                                     float *to, int64_t next)
{
    for (int64_t t = 0; t < tokens; t += 1 + pairs, from += step * (1 + pairs), to += PANEL)
        for (int64_t c = 0; c < width; c += PANEL) {
            float edge[2 * PANEL];
            const float *first = from + c, *second = first + step;
            if (width - c < PANEL || t + pairs >= tokens) {
                const size_t bytes = 4 * (size_t)(width - c < PANEL ? width - c : PANEL);
                memset(edge, 0, sizeof edge);
                memcpy(edge, first, bytes);
                if (t + 1 < tokens)
                    memcpy(edge + PANEL, second, bytes);
                first = edge, second = edge + PANEL;
            }
            NAME(pack_line)(pairs, first, second, to + c / PANEL * next);
        }
}

/* out[r, q] += sum over words of a[r] * b[q]: TALL columns of a panel of a, Q panels of b that are `next` apart. Only
 * `rows` by `columns` of the results are written. */
static INLINE void NAME(outer_tile)(const int kind, const int Q, const float *a, const float *b, int64_t next,
                                    int64_t words, float *out, int64_t n, int64_t rows, int64_t columns, int fresh)
{
    vec sum[TALL * ACROSS * WIDE];
    float edge[TALL * ACROSS * PANEL];
#pragma GCC unroll 32
    for (int at = 0; at < TALL * Q * WIDE; at++)
        sum[at] = (vec){0};
    for (int64_t k = 0; k < words; k++) {
        vec weight[ACROSS * WIDE];
#pragma GCC unroll 32
        for (int w = 0; w < Q * WIDE; w++)
            weight[w] = NAME(load)(b + w / WIDE * next + k * PANEL + w % WIDE * LANES);
#pragma GCC unroll 32
        for (int r = 0; r < TALL; r++) {
            const vec x = NAME(same)(a[k * PANEL + r]);
#pragma GCC unroll 32
            for (int w = 0; w < Q * WIDE; w++)
                sum[r * Q * WIDE + w] = NAME(add_product)(kind, x, weight[w], sum[r * Q * WIDE + w]);
        }
    }
    if (rows >= TALL && columns >= Q * PANEL) {
#pragma GCC unroll 32
        for (int r = 0; r < TALL; r++)
#pragma GCC unroll 32
            for (int w = 0; w < Q * WIDE; w++) {
                float *to = out + r * n + w * LANES;
                NAME(store)(to, fresh ? sum[r * Q * WIDE + w] : NAME(load)(to) + sum[r * Q * WIDE + w]);
            }
        return;
    }
#pragma GCC unroll 32
    for (int at = 0; at < TALL * Q * WIDE; at++)
        NAME(store)(edge + at * LANES, sum[at]);
    for (int64_t r = 0; r < TALL && r < rows; r++)
        for (int64_t c = 0; c < Q * PANEL && c < columns; c++)
            out[r * n + c] = edge[r * Q * PANEL + c] + (fresh ? 0.0f : out[r * n + c]);
}

/* Some tokens, at most DEPTH words of them. */
static INLINE void NAME(outer_piece)(const int kind, const struct outer *q, const float *a, const float *b,
                                     int64_t tokens, int fresh)
{
    const int pairs = kind == PAIRS;
    const int64_t words = pairs ? (tokens + 1) / 2 : tokens, next = words * PANEL;
    float *group = (float *)q->scratch, *packed = group + GROUP * DEPTH * PANEL;
    NAME(pack_tokens)(pairs, b, q->b_step, tokens, q->n, packed, next);
    for (int64_t top = 0; top < q->m; top += GROUP * PANEL) {
        const int64_t high = q->m - top < GROUP * PANEL ? q->m - top : GROUP * PANEL;
        NAME(pack_tokens)(pairs, a + top, q->a_step, tokens, high, group, next);
        for (int64_t r = 0; r < high; r += TALL) {
            const float *rows = group + r / PANEL * next + r % PANEL;
            float *out = q->out + (top + r) * q->n;
            int64_t c = 0;
            for (; q->n - c > (ACROSS - 1) * PANEL; c += ACROSS * PANEL)
                NAME(outer_tile)(kind, ACROSS, rows, packed + c / PANEL * next, next, words, out + c, q->n, high - r,
                                 q->n - c, fresh);
            for (; c < q->n; c += PANEL)
                NAME(outer_tile)(kind, 1, rows, packed + c / PANEL * next, next, words, out + c, q->n, high - r,
                                 q->n - c, fresh);
        }
    }
}

static void NAME(outer)(const struct outer *q)
{
    const int pairs = DOT_BF16 && q->kind == BF16;
    const int64_t piece = pairs ? 2 * DEPTH : DEPTH;
    for (int64_t t = 0; t < q->tokens; t += piece) {
        const int64_t tokens = q->tokens - t < piece ? q->tokens - t : piece;
        if (pairs)
            NAME(outer_piece)(PAIRS, q, q->a + t * q->a_step, q->b + t * q->b_step, tokens, q->fresh && !t);
        else
            NAME(outer_piece)(FP32, q, q->a + t * q->a_step, q->b + t * q->b_step, tokens, q->fresh && !t);
    }
}
