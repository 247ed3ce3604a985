/* Products of rows with packed weights: out (rows, n) += a (rows, k) * weight (n, k)^T.
 *
 *     native.c  ->  product.h  ->  vector.h
 *
 * Packed weights are panels of PANEL columns of the result: for every k the PANEL weights of its columns,
 * zeros behind the last one. A tile of the result, ROWS or fewer rows by some panels, stays in registers.
 * Each result is summed over k in DEPTH long pieces, in the same order whatever the number of rows: a
 * sentence gets the same bits in every batch.
 */

/* out[r, q] += sum over k of a[r, k] * b[q, k]: R rows by Q panels, both known to the compiler. */
static INLINE void NAME(tile)(const int R, const int Q, const float *a, int64_t lda, const float *b,
                              int64_t ldb, int64_t k, float *out, int64_t ldr, int64_t ldq)
{
    vec sum[ROWS * GROUP * WIDE];
#pragma GCC unroll 32
    for (int at = 0; at < R * Q * WIDE; at++)
        sum[at] = (vec){0};
    for (int64_t at = 0; at < k; at++) {
        vec weight[GROUP * WIDE];
        if (Q == 1) /* several panels at once are streams enough for the machine to fetch ahead by itself */
            __builtin_prefetch(b + (at + AHEAD) * PANEL);
#pragma GCC unroll 32
        for (int w = 0; w < Q * WIDE; w++)
            weight[w] = NAME(load)(b + (w / WIDE) * ldb + at * PANEL + (w % WIDE) * LANES);
#pragma GCC unroll 32
        for (int r = 0; r < R; r++) {
            const vec x = NAME(same)(a[r * lda + at]);
#pragma GCC unroll 32
            for (int w = 0; w < Q * WIDE; w++)
                sum[r * Q * WIDE + w] += x * weight[w];
        }
    }
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 32
        for (int w = 0; w < Q * WIDE; w++) {
            float *to = out + r * ldr + (w / WIDE) * ldq + (w % WIDE) * LANES;
            NAME(store)(to, NAME(load)(to) + sum[r * Q * WIDE + w]);
        }
    }
}

/* R rows by `panels` panels: Q at a time, so that enough sums are under way, the rest one by one. */
#define STRIP(R, Q)                                                                                          \
    case R:                                                                                                  \
        for (; panels >= Q; panels -= Q, b += Q * ldb, out += Q * ldq)                                       \
            NAME(tile)(R, Q, a, lda, b, ldb, k, out, ldr, ldq);                                              \
        for (; panels; panels--, b += ldb, out += ldq)                                                       \
            NAME(tile)(R, 1, a, lda, b, ldb, k, out, ldr, ldq);                                              \
        break;

static void NAME(strip)(int rows, int panels, const float *a, int64_t lda, const float *b, int64_t ldb,
                        int64_t k, float *out, int64_t ldr, int64_t ldq)
{
    switch (rows) {
        STRIPS
    }
}
#undef STRIP

/* Rows in strips of nearly the same height, each at most ROWS high; panel by panel if the strips are high. */
static void NAME(block)(int64_t rows, int panels, const float *a, int64_t lda, const float *b, int64_t ldb,
                        int64_t k, float *out, int64_t ldr, int64_t ldq)
{
    const int64_t strips = (rows + ROWS - 1) / ROWS;
    const int together = rows / strips < ALONE ? panels : 1;
    for (int at = 0; at < panels; at += together) {
        for (int64_t s = 0, from = 0; s < strips; s++) {
            const int64_t to = rows * (s + 1) / strips;
            NAME(strip)((int)(to - from), together, a + from * lda, lda, b + at * ldb, ldb, k,
                        out + from * ldr + at * ldq, ldr, ldq);
            from = to;
        }
    }
}

/* The same into a tile of its own over all of k: (rows, panels, PANEL), to which the product is added. */
static INLINE void NAME(into_tile)(int64_t rows, int panels, const float *a, int64_t lda, const float *b,
                                   int64_t k, float *out)
{
    for (int64_t at = 0; at < k; at += DEPTH) {
        const int64_t depth = k - at < DEPTH ? k - at : DEPTH;
        NAME(block)(rows, panels, a + at, lda, b + at * PANEL, k * PANEL, depth, out, GROUP * PANEL, PANEL);
    }
}

/* out (rows, n) += a (rows, k) * packed weight. */
static void NAME(product)(const float *a, int64_t rows, int64_t k, const float *b, int64_t n, float *out)
{
    const int64_t whole = n / PANEL, ldb = k * PANEL;
    for (int64_t top = 0; top < rows; top += CHUNK) {
        const int64_t high = rows - top < CHUNK ? rows - top : CHUNK;
        for (int64_t at = 0; at < k; at += DEPTH) {
            const int64_t depth = k - at < DEPTH ? k - at : DEPTH;
            const float *x = a + top * k + at, *weight = b + at * PANEL;
            for (int64_t p = 0; p < whole; p += GROUP)
                NAME(block)(high, (int)(whole - p < GROUP ? whole - p : GROUP), x, k, weight + p * ldb, ldb,
                            depth, out + top * n + p * PANEL, n, PANEL);
            for (int64_t r = 0; r < high && whole * PANEL < n; r++) { /* the last, incomplete panel */
                float tile[PANEL] = {0}, *to = out + (top + r) * n + whole * PANEL;
                NAME(strip)(1, 1, x + r * k, k, weight + whole * ldb, ldb, depth, tile, PANEL, PANEL);
                for (int64_t c = 0; c < n - whole * PANEL; c++)
                    to[c] += tile[c];
            }
        }
    }
}
