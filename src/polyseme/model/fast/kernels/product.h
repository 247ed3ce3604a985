/* Products of rows with packed weights: out (rows, n) += a (rows, k) * weight (n, k)^T.
 *
 *     native.c  ->  product.h  ->  vector.h, int8.h
 *
 * Packed weights are panels of PANEL columns of the result. A panel is a run of words of 4 bytes, PANEL of them
 * side by side: a word holds one fp32 of its column, or two bf16 or four int8 that are consecutive along k, with
 * zeros after the last one. A tile of the result, ROWS or fewer rows by some panels, stays in registers. Each result
 * is summed over k in pieces of DEPTH values, in the same order for any number of rows: a sentence gets the same
 * bits in every batch. With bf16 the bits are those of fp32 with the same weights, unless the machine multiplies
 * pairs of bf16 (DOT_BF16): then the rows are rounded to bf16 as well, and two of their values share a word.
 */

/* The weights of LANES columns at `at`, which is even for `odd` = 0: `b` points to the first word of the lanes. */
static INLINE vec NAME(weight)(const int kind, const char *b, int64_t at, int odd)
{
    if (kind == FP32 || kind == PAIRS)
        return NAME(load)((const float *)b + (at + odd) * PANEL);
    const ivec both = (ivec)NAME(load)((const float *)b + at / 2 * PANEL);
    return odd ? (vec)(both & (int32_t)0xffff0000) : (vec)(both << 16); /* a bf16 is the upper half of an fp32 */
}

/* sum + x * weight, lane by lane; words of PAIRS hold two values each, whose products are both added. */
static INLINE vec NAME(add_product)(const int kind, vec x, vec weight, vec sum)
{
#if DOT_BF16
    if (kind == PAIRS)
        return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)weight);
#endif
    (void)kind;
    return NAME(fma)(x, weight, sum);
}

/* One k of R rows by Q panels. */
static INLINE void NAME(tile_step)(const int kind, const int R, const int Q, const float *a, int64_t lda,
                                   const char *b, int64_t ldb, int64_t at, const int odd, vec *sum)
{
    vec weight[GROUP * WIDE];
#pragma GCC unroll 32
    for (int w = 0; w < Q * WIDE; w++)
        weight[w] = NAME(weight)(kind, b + (w / WIDE) * ldb + (w % WIDE) * BYTES, at, odd);
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
        const vec x = NAME(same)(a[r * lda + at + odd]);
#pragma GCC unroll 32
        for (int w = 0; w < Q * WIDE; w++)
            sum[r * Q * WIDE + w] = NAME(add_product)(kind, x, weight[w], sum[r * Q * WIDE + w]);
    }
}

/* out[r, q] += sum over k of a[r, k] * b[q, k], or = if `fresh`: R rows by Q panels, both known to the compiler. `soon`
 * is a panel that is fetched meanwhile. */
static INLINE void NAME(tile)(const int kind, const int R, const int Q, const float *a, int64_t lda, const char *b,
                              int64_t ldb, int64_t k, const char *soon, float *out, int64_t ldr, int64_t ldq, int fresh)
{
    vec sum[ROWS * GROUP * WIDE];
#pragma GCC unroll 32
    for (int at = 0; at < R * Q * WIDE; at++)
        sum[at] = (vec){0};
    for (int64_t at = 0; at + 1 < k; at += 2) {
        if (Q == 1) {
            __builtin_prefetch(b + panel_bytes(kind, at + AHEAD));
            if (kind == FP32 || kind == PAIRS)
                __builtin_prefetch(b + panel_bytes(kind, at + 1 + AHEAD));
        } else if (BYTES == 64) { /* to the second-level cache: the first one is full of the weights in use */
            __builtin_prefetch(soon + panel_bytes(kind, at), 0, 2);
            if (kind == FP32 || kind == PAIRS)
                __builtin_prefetch(soon + panel_bytes(kind, at + 1), 0, 2);
        }
        NAME(tile_step)(kind, R, Q, a, lda, b, ldb, at, 0, sum);
        NAME(tile_step)(kind, R, Q, a, lda, b, ldb, at, 1, sum);
    }
    if (k & 1)
        NAME(tile_step)(kind, R, Q, a, lda, b, ldb, k - 1, 0, sum);
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 32
        for (int w = 0; w < Q * WIDE; w++) {
            float *to = out + r * ldr + (w / WIDE) * ldq + (w % WIDE) * LANES;
            NAME(store)(to, fresh ? sum[r * Q * WIDE + w] : NAME(load)(to) + sum[r * Q * WIDE + w]);
        }
    }
}

/* R rows by `panels` panels: Q at a time, for enough independent sums, the rest one by one. */
#define STRIP(R, Q)                                                                                          \
    case R:                                                                                                  \
        for (; panels >= Q; panels -= Q, b += Q * ldb, out += Q * ldq)                                       \
            NAME(tile)(kind, R, Q, a, lda, b, ldb, k, soon, out, ldr, ldq, fresh);                           \
        for (; panels; panels--, b += ldb, out += ldq)                                                       \
            NAME(tile)(kind, R, 1, a, lda, b, ldb, k, soon, out, ldr, ldq, fresh);                           \
        break;

static INLINE void NAME(strip_of)(const int kind, int rows, int panels, const float *a, int64_t lda, const char *b,
                                  int64_t ldb, int64_t k, const char *soon, float *out, int64_t ldr, int64_t ldq, int fresh)
{
    switch (rows) {
        STRIPS
    }
}
#undef STRIP

static void NAME(strip)(int kind, int rows, int panels, const float *a, int64_t lda, const char *b, int64_t ldb,
                        int64_t k, const char *soon, float *out, int64_t ldr, int64_t ldq, int fresh)
{
    if (kind == PAIRS)
        NAME(strip_of)(PAIRS, rows, panels, a, lda, b, ldb, k, soon, out, ldr, ldq, fresh);
    else if (kind == BF16)
        NAME(strip_of)(BF16, rows, panels, a, lda, b, ldb, k, soon, out, ldr, ldq, fresh);
    else
        NAME(strip_of)(FP32, rows, panels, a, lda, b, ldb, k, soon, out, ldr, ldq, fresh);
}

/* Rows in strips of nearly the same height, each at most ROWS high; panel by panel if the strips are high. Each of the
 * first strips fetches one of the panels that are likely to be next. */
static void NAME(block)(int kind, int64_t rows, int panels, const float *a, int64_t lda, const char *b,
                        int64_t ldb, int64_t k, float *out, int64_t ldr, int64_t ldq, int fresh)
{
    const int64_t strips = (rows + ROWS - 1) / ROWS;
    const int together = rows / strips < ALONE ? panels : 1;
    for (int at = 0; at < panels; at += together) {
        for (int64_t s = 0, from = 0; s < strips; s++) {
            const int64_t to = rows * (s + 1) / strips;
            NAME(strip)(kind, (int)(to - from), together, a + from * lda, lda, b + at * ldb, ldb, k,
                        s < together ? b + (at + together + s) * ldb : b, out + from * ldr + at * ldq, ldr, ldq, fresh);
            from = to;
        }
    }
}

/* A panel of bf16, at most DEPTH long, as fp32. */
static void NAME(widen)(const char *b, int64_t k, float *wide)
{
    for (int64_t at = 0; at < k; at += 2)
        for (int w = 0; w < 2 * WIDE; w++)
            NAME(store)(wide + at * PANEL + w * LANES, NAME(weight)(BF16, b + w % WIDE * BYTES, at, w / WIDE));
}

/* `block` for weights of any type: with many rows it pays to widen a panel once. */
static void NAME(block_any)(int kind, int64_t rows, int panels, const float *a, int64_t lda, const char *b,
                            int64_t ldb, int64_t k, float *out, int64_t ldr, int64_t ldq, int fresh)
{
    float wide[DEPTH * PANEL];
    if (kind == FP32 || kind == PAIRS || rows <= 2 * ROWS) {
        NAME(block)(kind, rows, panels, a, lda, b, ldb, k, out, ldr, ldq, fresh);
        return;
    }
    for (int p = 0; p < panels; p++) {
        NAME(widen)(b + p * ldb, k, wide);
        NAME(block)(FP32, rows, 1, a, lda, (const char *)wide, 0, k, out + p * ldq, ldr, ldq, fresh);
    }
}

/* The same into a separate tile over all of k: (rows, panels, PANEL), to which the product is added.
 * The rows are as NAME(rows_for) gave them; scales (panels, PANEL) are for int8 only. */
static INLINE void NAME(into_tile)(int kind, int64_t rows, int panels, const char *a, const char *b, int64_t k,
                                   const float *scales, float *out)
{
    const int64_t ldb = panel_bytes(kind, k);
    if (DOT_BF16 && kind == BF16) {
        kind = PAIRS;
        k = (k + 1) / 2;
    }
    if (kind == INT8) {
        NAME(block_int8)(rows, panels, a, b, k, scales, out, GROUP * PANEL, 0);
        return;
    }
    for (int64_t at = 0; at < k; at += DEPTH) {
        const int64_t depth = k - at < DEPTH ? k - at : DEPTH;
        NAME(block_any)(kind, rows, panels, (const float *)a + at, k, b + panel_bytes(kind, at), ldb, depth, out,
                    GROUP * PANEL, PANEL, 0);
    }
}

/* Rows (n, k) rounded to bf16, to the nearest, halves to even; a zero after an odd k. NaN stays NaN. */
static void NAME(round_to_bf16)(const float *x, int64_t n, int64_t k, uint16_t *to)
{
    for (int64_t r = 0; r < n; r++, x += k, to += (k + 1) / 2 * 2) {
        if (k & 1)
            to[k] = 0;
        for (int64_t at = 0; at < k; at++) {
            uint32_t bits;
            memcpy(&bits, x + at, sizeof bits);
            const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
            to[at] = (uint16_t)((bits & INT32_MAX) > 0x7f800000 ? 0x7fc0 : rounded);
        }
    }
}

/* What `into_tile` reads of rows (n, k): themselves, or for int8 and pairs of bf16 their rounded values, written
 * to `scratch`. */
static const char *NAME(rows_for)(int kind, const float *a, int64_t n, int64_t k, char *scratch)
{
    if (kind == INT8)
        NAME(quantise)(a, n, k, scratch);
    else if (DOT_BF16 && kind == BF16)
        NAME(round_to_bf16)(a, n, k, (uint16_t *)scratch);
    else
        return (const char *)a;
    return scratch;
}

/* Bytes from one row that `rows_for` gives to the next. */
static INLINE int64_t NAME(row_step)(int kind, int64_t k)
{
    return kind == INT8 ? row_bytes(k) : DOT_BF16 && kind == BF16 ? (k + 1) / 2 * 4 : 4 * k;
}

/* Some rows by the panels from p on, at most GROUP of them, over a piece of k; the last may be incomplete. */
static void NAME(product_part)(const struct product *q, const char *a, int64_t rows, int64_t p, int64_t at,
                               int64_t depth, float *out)
{
    const int64_t whole = q->n / PANEL, ldb = panel_bytes(q->kind, q->k), width = q->n - p * PANEL;
    const int panels = (int)(whole - p < GROUP ? whole - p : GROUP);
    const char *b = (const char *)q->weight + p * ldb + (at ? panel_bytes(q->kind, at) : 0);
    float scales[PANEL] = {0};
    const int fresh = q->fresh && !at; /* the first piece of k is written, the others are added */
    if (panels && q->kind == INT8)
        NAME(block_int8)(rows, panels, a, b, q->k, q->scales + p * PANEL, out, q->n, fresh);
    else if (panels)
        NAME(block_any)(q->kind, rows, panels, (const float *)a + at, q->k, b, ldb, depth, out, q->n, PANEL,
                        fresh);
    if (panels)
        return;
    if (q->kind == INT8)
        memcpy(scales, q->scales + p * PANEL, 4 * (size_t)width);
    for (int64_t r = 0; r < rows; r++) { /* the last, incomplete panel */
        float tile[PANEL], *to = out + r * q->n;
        if (q->kind == INT8)
            NAME(block_int8)(1, 1, a + r * row_bytes(q->k), b, q->k, scales, tile, PANEL, 1);
        else
            NAME(strip)(q->kind, 1, 1, (const float *)a + r * q->k + at, q->k, b, ldb, depth, b, tile, PANEL, PANEL,
                        1);
        for (int64_t c = 0; c < width; c++)
            to[c] = fresh ? tile[c] : to[c] + tile[c];
    }
}

/* out (rows, n) += a (rows, k) * packed weight, or = if it is to be fresh. */
static void NAME(product)(const struct product *q)
{
    struct product words = *q; /* as the tiles see it: of pairs, k counts words */
    if (DOT_BF16 && q->kind == BF16) {
        words.kind = PAIRS;
        words.k = (q->k + 1) / 2;
    }
    const int64_t whole = q->n / PANEL, k = words.k, piece = q->kind == INT8 ? k : DEPTH;
    for (int64_t top = 0; top < q->rows; top += CHUNK) {
        const int64_t high = q->rows - top < CHUNK ? q->rows - top : CHUNK;
        const char *a = NAME(rows_for)(q->kind, q->a + top * q->k, high, q->k, q->scratch);
        for (int64_t at = 0; at < k; at += piece)
            for (int64_t p = 0; p * PANEL < q->n; p += p < whole && whole - p < GROUP ? whole - p : GROUP)
                NAME(product_part)(&words, a, high, p, at, k - at < piece ? k - at : piece,
                                   q->out + top * q->n + p * PANEL);
    }
}
