/* Products of rows with packed int8 weights: rows are quantised one by one, sums are integers.
 *
 *     native.c  ->  int8.h  ->  vector.h
 *
 * A row is its scale, max |x| / 127, and the integers nearest to x / scale, halves away from zero: from -127
 * to 127, stored as 16 bits, or with VNNI as 8 bits with 128 added. The sums are exact and all else is rounded in
 * the same order, so the results have the same bits in every instruction set and with any other rows.
 *
 * A vector of sums holds LANES columns. With VNNI the four values that share a word of the weight are multiplied at
 * once; else the first and third, then the second and fourth, which are adjacent in a row for that.
 */

#define shorts NAME(shorts)
#define AT_ONCE (VNNI ? 4 : 2) /* values multiplied at once */
#if BYTES == 32
#define IN_PLACE(x) __asm__("" : "+x"(x)) /* keeps x in its register and the order of sums: nothing is spilled */
#else
#define IN_PLACE(x)
#endif
typedef int16_t shorts __attribute__((vector_size(BYTES)));

/* Of the words at b, one for each of some columns, the weights of part 0 or 1: all four, or every second, widened. */
static INLINE ivec NAME(weights)(const char *b, const int part)
{
    ivec x;
    memcpy(&x, b, sizeof x);
    if (VNNI)
        return x;
    return part ? (ivec)((shorts)x >> 8) : (ivec)((shorts)((shorts)x << 8) >> 8);
}

/* The values at a for such weights, broadcast to all columns. */
static INLINE ivec NAME(values)(const char *a)
{
    int32_t word;
    memcpy(&word, a, sizeof word);
    return word - (ivec){0};
}

/* sum + the products of values and weights, four at a time with VNNI, else two. */
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

/* R rows by W vectors of sums, both known to the compiler, to sum[R][W]. `soon` are weights to be fetched meanwhile. */
static INLINE void NAME(tile_int8)(const int R, const int W, const char *a, int64_t lda, const char *b,
                                   int64_t ldb, int64_t fours, const char *soon, ivec *sum)
{
#pragma GCC unroll 32
    for (int at = 0; at < R * W; at++) {
        sum[at] = (ivec){0};
        if (VNNI) /* compensates for the 128 added to each value */
            memcpy(sum + at, b + at % W / WIDE * ldb + fours * 4 * PANEL + at % W % WIDE * BYTES, BYTES);
    }
    for (int64_t at = 0; at < fours; at++) {
        if (BYTES == 64) { /* to the second-level cache: the first one is full of the weights in use */
            __builtin_prefetch(soon + 2 * at * BYTES, 0, 2);
            __builtin_prefetch(soon + (2 * at + 1) * BYTES, 0, 2);
        } else
            __builtin_prefetch(b + (at + AHEAD) * 4 * PANEL);
#pragma GCC unroll 2
        for (int part = 0; part < 4 / AT_ONCE; part++) {
            ivec weight[GROUP * WIDE];
#pragma GCC unroll 32
            for (int w = 0; w < W; w++)
                weight[w] = NAME(weights)(b + (w / WIDE) * ldb + at * 4 * PANEL + (w % WIDE) * BYTES, part);
#pragma GCC unroll 32
            for (int r = 0; r < R; r++) {
                const ivec x = NAME(values)(a + r * lda + at * (16 / AT_ONCE) + part * 4);
#pragma GCC unroll 32
                for (int w = 0; w < W; w++) {
                    sum[r * W + w] = NAME(dot)(sum[r * W + w], x, weight[w]);
                    IN_PLACE(sum[r * W + w]);
                }
            }
        }
    }
}

/* The same from vector v of a block of panels on: out[r, column] += sum * (scale of the row * scale of the column),
 * or = if `fresh`. */
static INLINE void NAME(part_int8)(const int R, const int W, int v, const char *a, const char *b, int64_t k,
                                   const char *soon, const float *scales, float *out, int64_t ldr, int fresh)
{
    const int64_t lda = row_bytes(k), ldb = panel_bytes(INT8, k);
    ivec sum[ROWS * GROUP * WIDE];
    NAME(tile_int8)(R, W, a + 8, lda, b + v / WIDE * ldb + v % WIDE * BYTES, ldb, (k + 3) / 4,
                    soon + v / W * 2 * ((k + 3) / 4 * BYTES), sum);
#pragma GCC unroll 32
    for (int r = 0; r < R; r++) {
        float scale;
        memcpy(&scale, a + r * lda, sizeof scale);
#pragma GCC unroll 32
        for (int w = 0; w < W; w++) {
            float *to = out + r * ldr + (v + w) * LANES;
            const vec whole = __builtin_convertvector(sum[r * W + w], vec);
            const vec product = whole * (scale * NAME(load)(scales + (v + w) * LANES));
            NAME(store)(to, fresh ? product : NAME(load)(to) + product);
        }
    }
}

/* R rows by `panels` panels, W vectors of sums at a time, the rest one by one. */
#define STRIP(R, W)                                                                                          \
    case R:                                                                                                  \
        for (; v + W <= panels * WIDE; v += W)                                                               \
            NAME(part_int8)(R, W, v, a, b, k, soon, scales, out, ldr, fresh);                                    \
        for (; v < panels * WIDE; v++)                                                                       \
            NAME(part_int8)(R, 1, v, a, b, k, soon, scales, out, ldr, fresh);                                    \
        break;

static void NAME(strip_int8)(int rows, int panels, const char *a, const char *b, int64_t k, const char *soon,
                             const float *scales, float *out, int64_t ldr, int fresh)
{
    int v = 0;
    switch (rows) {
        STRIPS_INT8
    }
}
#undef STRIP

/* Rows in strips, panel by panel: out[r, p, column], r being ldr apart. */
static void NAME(block_int8)(int64_t rows, int panels, const char *a, const char *b, int64_t k,
                             const float *scales, float *out, int64_t ldr, int fresh)
{
    const int64_t strips = (rows + ROWS - 1) / ROWS;
    const int together = rows > ROWS && WIDE > 1 ? 1 : panels; /* one pass over all weights where sums fit registers */
    for (int p = 0; p < panels; p += together) {
        for (int64_t s = 0, from = 0; s < strips; s++) {
            const int64_t to = rows * (s + 1) / strips;
            const char *half = b + (p + together) * panel_bytes(INT8, k) + s * (panel_bytes(INT8, k) * together / 2);
            NAME(strip_int8)((int)(to - from), together, a + from * row_bytes(k), b + p * panel_bytes(INT8, k), k,
                             s < 2 ? half : b, scales + p * PANEL, out + from * ldr + p * PANEL, ldr, fresh);
            from = to;
        }
    }
}

/* One row: its values times `times`, doubled and truncated to integers, are rounded by halving them. */
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
#if !VNNI
    for (int64_t at = 0; at < (k + 3) / 4; at++) { /* of each four values the second and third are swapped */
        uint64_t four;
        memcpy(&four, to + 8 * at, sizeof four);
        four = (four & 0xffff00000000ffff) | (four & 0xffff0000) << 16 | (four >> 16 & 0xffff0000);
        memcpy(to + 8 * at, &four, sizeof four);
    }
#endif
}

/* Rows (n, k) to rows of row_bytes(k). If a value is not finite, the scale is NaN. Below 1e-30 a row counts as zero. */
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

#undef shorts
#undef AT_ONCE
#undef IN_PLACE
