/* Panels of packed weights, from fp32 whose rows or columns are adjacent.
 *
 *     native.c, gradients.h  ->  pack.h  ->  vector.h
 *
 * A training step packs all weights anew. Where values along k are adjacent, a panel is a transpose of its rows, which
 * AVX-512 makes in registers.
 */

/* x rounded to bf16, to the nearest, halves to even, in the upper half of each lane; NaN stays NaN. */
static INLINE ivec NAME(upper_half)(vec x)
{
    const ivec bits = (ivec)x, rounded = (bits + 0x7fff + (bits >> 16 & 1)) & (int32_t)0xffff0000;
    const ivec nan = (bits & INT32_MAX) > 0x7f800000;
    return (nan & 0x7fc00000) | (~nan & rounded);
}

/* PANEL columns of a token, or with `pairs` of two tokens, to a line of words. */
static INLINE void NAME(pack_line)(const int pairs, const float *first, const float *second, float *to)
{
    for (int at = 0; at < PANEL; at += LANES) {
        vec x = NAME(load)(first + at);
        if (pairs)
            x = (vec)((NAME(upper_half)(x) >> 16 & 0xffff) | NAME(upper_half)(NAME(load)(second + at)));
        NAME(store)(to + at, x);
    }
}

#if BYTES == 64
/* Transpose PANEL rows of PANEL words, in place. */
static INLINE void NAME(transpose)(ivec *rows)
{
#pragma GCC unroll 4
    for (int step = PANEL / 2; step; step /= 2) {
        ivec low, high; /* indices of two rows: words of the first, and from PANEL on of the second */
        for (int lane = 0; lane < PANEL; lane++) {
            low[lane] = lane & step ? PANEL + lane - step : lane;
            high[lane] = lane & step ? PANEL + lane : lane + step;
        }
#pragma GCC unroll 16
        for (int r = 0; r < PANEL; r++) {
            if (r & step)
                continue;
            const ivec first = rows[r], second = rows[r + step];
            rows[r] = (ivec)_mm512_permutex2var_epi32((__m512i)first, (__m512i)low, (__m512i)second);
            rows[r + step] = (ivec)_mm512_permutex2var_epi32((__m512i)first, (__m512i)high, (__m512i)second);
        }
    }
}

/* Words of bf16 from twice as many values of fp32. */
static INLINE ivec NAME(round_pairs)(const float *x)
{
    const ivec first = NAME(upper_half)(NAME(load)(x)), second = NAME(upper_half)(NAME(load)(x + LANES));
    ivec even;
    for (int lane = 0; lane < LANES; lane++)
        even[lane] = 2 * lane;
    const ivec low = (ivec)_mm512_permutex2var_epi32((__m512i)first, (__m512i)even, (__m512i)second);
    const ivec high = (ivec)_mm512_permutex2var_epi32((__m512i)first, (__m512i)(even + 1), (__m512i)second);
    return (low >> 16 & 0xffff) | high;
}
#endif

/* A panel of fp32: PANEL columns that are adjacent (row_step 1), or whose values of k are (column_step 1). */
static void NAME(copy_panel)(const float *rows, int64_t k, int64_t row_step, int64_t column_step, float *packed)
{
    int64_t top = 0;
    if (row_step == 1) {
        for (; top < k; top++)
            memcpy(packed + top * PANEL, rows + top * column_step, 4 * PANEL);
        return;
    }
#if BYTES == 64
    for (; top + PANEL <= k; top += PANEL) {
        ivec words[PANEL];
#pragma GCC unroll 16
        for (int r = 0; r < PANEL; r++)
            words[r] = (ivec)NAME(load)(rows + r * row_step + top);
        NAME(transpose)(words);
#pragma GCC unroll 16
        for (int r = 0; r < PANEL; r++)
            NAME(store)(packed + (top + r) * PANEL, (vec)words[r]);
    }
#endif
    for (; top < k; top += PANEL) {
        const int64_t end = k < top + PANEL ? k : top + PANEL;
        for (int r = 0; r < PANEL; r++)
            for (int64_t at = top; at < end; at++)
                packed[at * PANEL + r] = rows[r * row_step + at];
    }
}

/* The same rounded to bf16, two values of k in a word. */
static void NAME(round_panel)(const float *rows, int64_t k, int64_t row_step, int64_t column_step, uint32_t *packed)
{
    const float zeros[PANEL] = {0};
    int64_t top = 0;
    if (row_step == 1) {
        for (; top < k; top += 2, packed += PANEL)
            NAME(pack_line)(1, rows + top * column_step, top + 1 < k ? rows + (top + 1) * column_step : zeros, (float *)packed);
        return;
    }
#if BYTES == 64
    for (; top + 2 * PANEL <= k; top += 2 * PANEL, packed += PANEL * PANEL) {
        ivec words[PANEL];
#pragma GCC unroll 16
        for (int r = 0; r < PANEL; r++)
            words[r] = NAME(round_pairs)(rows + r * row_step + top);
        NAME(transpose)(words);
#pragma GCC unroll 16
        for (int r = 0; r < PANEL; r++)
            NAME(store)((float *)packed + r * PANEL, (vec)words[r]);
    }
#endif
    for (; top < k; top += 2 * PANEL) {
        const int64_t count = k - top < 2 * PANEL ? k - top : 2 * PANEL;
        uint32_t words[PANEL][PANEL];
        for (int r = 0; r < PANEL; r++) {
            float values[2 * PANEL] = {0};
            uint32_t bits[2 * PANEL];
            uint16_t halves[2 * PANEL];
            memcpy(values, rows + r * row_step + top, 4 * (size_t)count);
            for (int at = 0; at < 2 * PANEL; at += LANES) {
                const ivec rounded = NAME(upper_half)(NAME(load)(values + at));
                memcpy(bits + at, &rounded, sizeof rounded);
            }
            for (int at = 0; at < 2 * PANEL; at++)
                halves[at] = (uint16_t)(bits[at] >> 16);
            memcpy(words[r], halves, sizeof halves);
        }
        for (int w = 0; 2 * w < count; w++, packed += PANEL)
            for (int r = 0; r < PANEL; r++)
                packed[r] = words[r][w];
    }
}
