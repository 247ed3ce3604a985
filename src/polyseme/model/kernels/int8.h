/* Products of rows with packed int8 weights: rows quantised one by one, sums of whole numbers.
 *
 *     native.c  ->  int8.h  ->  vector.h
 *
 * A row is its scale, max |x| / 127, and the whole numbers nearest to x / scale, halves away from zero: from -127
 * to 127, stored as 16 bits, or with VNNI as 8 bits with 128 added. The sums are exact and all else is rounded in
 * the same order, so the results are the same bits in every instruction set and whatever the other rows are.
 *
 * With VNNI a vector of sums holds PANEL columns. Without, it holds two sums for a column, of the first and of the
 * second two of each four values, since the machine multiplies 16 bits and adds the products in twos.
 */

#if VNNI
#define SUMS 1
#else
#define SUMS 2
#endif
#define PER (SUMS * WIDE) /* vectors of sums for a panel */
#if BYTES == 64
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif BYTES == 32
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#endif
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

/* Four weights of each of some columns, and four values of a row as often as there are columns. */
static INLINE ivec NAME(four_weights)(const char *b)
{
    ivec x;
#if VNNI
    memcpy(&x, b, sizeof x);
#elif BYTES == 64
    x = (ivec)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)b));
#elif BYTES == 32
    x = (ivec)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)b));
#else
    typedef int8_t bytes __attribute__((vector_size(BYTES / 2)));
    typedef int16_t shorts __attribute__((vector_size(BYTES)));
    bytes narrow;
    memcpy(&narrow, b, sizeof narrow);
    x = (ivec)__builtin_convertvector(narrow, shorts);
#endif
    return x;
}

static INLINE ivec NAME(four_values)(const char *a)
{
#if VNNI
    int32_t four;
    memcpy(&four, a, sizeof four);
    return four - (ivec){0};
#else
    typedef int64_t longs __attribute__((vector_size(BYTES)));
    int64_t four;
    memcpy(&four, a, sizeof four);
    return (ivec)(four - (longs){0});
#endif
}

/* sum + the products of values and weights, in fours with VNNI, else in twos. */
static INLINE ivec NAME(dot)(ivec sum, ivec x, ivec weight)
{
#if VNNI
    return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)weight);
#elif BYTES == 64
    return sum + (ivec)_mm512_madd_epi16((__m512i)x, (__m512i)weight);
#elif BYTES == 32
    return sum + (ivec)_mm256_madd_epi16((__m256i)x, (__m256i)weight);
#elif defined(__SSE2__)
    return sum + (ivec)_mm_madd_epi16((__m128i)x, (__m128i)weight);
#else
    return sum + ((x << 16) >> 16) * ((weight << 16) >> 16) + (x >> 16) * (weight >> 16);
#endif
}

/* R rows by W vectors of sums, both known to the compiler, to sum[R][W]. */
static INLINE void NAME(tile_int8)(const int R, const int W, const char *a, int64_t lda, const char *b,
                                   int64_t ldb, int64_t fours, ivec *sum)
{
    ivec shift[GROUP * 2];
#pragma GCC unroll 32
    for (int at = 0; at < R * W; at++)
        sum[at] = (ivec){0};
#pragma GCC unroll 32
    for (int w = 0; w < W; w++)
        shift[w] = (ivec){0};
    for (int64_t at = 0; at < fours; at++) {
        ivec weight[GROUP * 2];
        __builtin_prefetch(b + (at + AHEAD) * 4 * PANEL);
#pragma GCC unroll 32
        for (int w = 0; w < W; w++) {
            weight[w] = NAME(four_weights)(b + (w / PER) * ldb + at * 4 * PANEL + (w % PER) * (4 * PANEL / PER));
            if (VNNI) /* what the 128 that was added to each value brings */
                shift[w] = NAME(dot)(shift[w], (ivec){0} - 0x7f7f7f80, weight[w]);
        }
#pragma GCC unroll 32
        for (int r = 0; r < R; r++) {
            const ivec x = NAME(four_values)(a + r * lda + at * (VNNI ? 4 : 8));
#pragma GCC unroll 32
            for (int w = 0; w < W; w++)
                sum[r * W + w] = NAME(dot)(sum[r * W + w], x, weight[w]);
        }
    }
#pragma GCC unroll 32
    for (int at = 0; at < R * W && VNNI; at++)
        sum[at] -= shift[at % W];
}

/* The sums of LANES columns, from SUMS vectors. */
static INLINE vec NAME(whole)(const ivec *sum)
{
#if SUMS == 2
    const ivec both = PICK(sum[0], sum[1], EVEN) + PICK(sum[0], sum[1], ODD);
    return __builtin_convertvector(both, vec);
#else
    return __builtin_convertvector(sum[0], vec);
#endif
}

/* The same from vector v of a block of panels on: out[r, column] += sum * (scale of the row * scale of the column). */
static INLINE void NAME(part_int8)(const int R, const int W, int v, const char *a, const char *b, int64_t k,
                                   const float *scales, float *out, int64_t ldr)
{
    const int64_t lda = row_bytes(k), ldb = panel_bytes(INT8, k);
    ivec sum[ROWS * GROUP * 2];
    NAME(tile_int8)(R, W, a + 8, lda, b + v / PER * ldb + v % PER * (4 * PANEL / PER), ldb, (k + 3) / 4, sum);
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
        float scale;
        memcpy(&scale, a + r * lda, sizeof scale);
#pragma GCC unroll 32
        for (int w = 0; w < W; w += SUMS) {
            const int column = (v + w) / SUMS * LANES;
            float *to = out + r * ldr + column;
            const vec scaled = NAME(whole)(sum + r * W + w) * (scale * NAME(load)(scales + column));
            NAME(store)(to, NAME(load)(to) + scaled);
        }
    }
}

/* R rows by `panels` panels, W vectors of sums at a time, the rest one by one. */
#define STRIP(R, W)                                                                                          \
    case R:                                                                                                  \
        for (; v + W <= panels * PER; v += W)                                                                \
            NAME(part_int8)(R, W, v, a, b, k, scales, out, ldr);                                             \
        for (; v < panels * PER; v += SUMS)                                                                  \
            NAME(part_int8)(R, SUMS, v, a, b, k, scales, out, ldr);                                             \
        break;

static void NAME(strip_int8)(int rows, int panels, const char *a, const char *b, int64_t k, const float *scales,
                             float *out, int64_t ldr)
{
    int v = 0;
    switch (rows) {
        STRIPS_INT8
    }
}
#undef STRIP

/* Rows in strips, panel by panel: out[r, p, column], r being ldr apart. */
static void NAME(block_int8)(int64_t rows, int panels, const char *a, const char *b, int64_t k,
                             const float *scales, float *out, int64_t ldr)
{
    const int64_t strips = (rows + ROWS - 1) / ROWS;
    const int together = rows > ROWS ? 1 : panels; /* few rows: one pass over all weights */
    for (int p = 0; p < panels; p += together) {
        for (int64_t s = 0, from = 0; s < strips; s++) {
            const int64_t to = rows * (s + 1) / strips;
            NAME(strip_int8)((int)(to - from), together, a + from * row_bytes(k), b + p * panel_bytes(INT8, k), k,
                             scales + p * PANEL, out + from * ldr + p * PANEL, ldr);
            from = to;
        }
    }
}

/* One row: its values times `times`, doubled and cut to whole numbers, are rounded by halving them. */
static INLINE void NAME(quantise_row)(const float *x, int64_t k, float times, char *to)
{
    for (int64_t at = 0; at < k; at++) {
        const int32_t twice = (int32_t)(x[at] * times), value = (twice + 1 + (twice >> 31)) >> 1;
#if VNNI
        ((uint8_t *)to)[at] = (uint8_t)(value + 128);
#else
        ((int16_t *)to)[at] = (int16_t)value;
#endif
    }
}

/* Rows (n, k) to rows of row_bytes(k). Not finite: the scale is no number. Below 1e-30 a row counts as zero. */
static void NAME(quantise)(const float *x, int64_t n, int64_t k, char *to)
{
    for (int64_t r = 0; r < n; r++, x += k, to += row_bytes(k)) {
        int32_t top = 0; /* of the magnitudes as bits, which are in order: infinity and NaN stand above all */
        for (int64_t at = 0; at < k; at++) {
            int32_t bits;
            memcpy(&bits, x + at, sizeof bits);
            bits &= INT32_MAX;
            top = bits > top ? bits : top;
        }
        float most, scale = 0.0f;
        memcpy(&most, &top, sizeof most);
        memset(to, VNNI ? 128 : 0, (size_t)row_bytes(k));
        if (most > 1e-30f && most < INFINITY) {
            NAME(quantise_row)(x, k, 254.0f / most, to + 8);
            scale = most / 127.0f;
        } else if (!(most < INFINITY))
            scale = NAN;
        memcpy(to, &scale, sizeof scale);
    }
}

#undef SUMS
#undef PER
#undef EVEN
#undef ODD
#undef PICK
