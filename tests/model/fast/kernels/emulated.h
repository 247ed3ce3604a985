/* Plain C in place of the AVX-512 instructions of native.c, so that its code for AVX-512 runs on any x86 machine. */

#include <immintrin.h>
#include <stdint.h>

#define EMULATED 1
#define HAS(feature) 1

#define EACH(at, count) for (int at = 0; at < (count); at++)
#define FLOATS(name, value)                                                                                  \
    static inline __m512 name(__m512 x, __m512 y, __m512 z)                                                  \
    {                                                                                                        \
        (void)z;                                                                                             \
        EACH(at, 16) x[at] = (value);                                                                        \
        return x;                                                                                            \
    }
FLOATS(emulated_fma, __builtin_fmaf(x[at], y[at], z[at]))
FLOATS(emulated_min, x[at] < y[at] ? x[at] : y[at])
FLOATS(emulated_max, x[at] > y[at] ? x[at] : y[at])
FLOATS(emulated_sqrt, __builtin_sqrtf(x[at]))

typedef int32_t words __attribute__((vector_size(64)));
typedef int16_t halves __attribute__((vector_size(64)));
typedef int8_t quarters __attribute__((vector_size(64)));

static inline __m512i emulated_madd(__m512i x, __m512i y)
{
    const halves a = (halves)x, b = (halves)y;
    words sum;
    EACH(at, 16) sum[at] = a[2 * at] * b[2 * at] + a[2 * at + 1] * b[2 * at + 1];
    return (__m512i)sum;
}

/* Multiply unsigned bytes of x by signed bytes of y and add groups of four products. */
static inline __m512i emulated_dot(__m512i sum, __m512i x, __m512i y)
{
    const quarters a = (quarters)x, b = (quarters)y;
    words total = (words)sum;
    EACH(at, 64) total[at / 4] += (uint8_t)a[at] * b[at];
    return (__m512i)total;
}

/* Multiply pairs of bf16, each the upper half of an fp32, and add both products, the odd one first. */
static inline __m512 emulated_dot_bf16(__m512 sum, words x, words y)
{
    EACH(at, 16)
    {
        const words a = {x[at] & (int32_t)0xffff0000, x[at] << 16}, b = {y[at] & (int32_t)0xffff0000, y[at] << 16};
        const __m512 left = (__m512)a, right = (__m512)b;
        sum[at] = __builtin_fmaf(left[1], right[1], __builtin_fmaf(left[0], right[0], sum[at]));
    }
    return sum;
}

/* Words of x and, from index 16 on, of y. */
static __attribute__((noinline)) __m512i emulated_pick(__m512i x, __m512i indices, __m512i y)
{
    const words a = (words)x, b = (words)y, at_each = (words)indices;
    words picked;
    EACH(at, 16) picked[at] = at_each[at] & 16 ? b[at_each[at] & 15] : a[at_each[at] & 15];
    return (__m512i)picked;
}

#define _mm512_dpbf16_ps(sum, x, y) emulated_dot_bf16(sum, (words)(x), (words)(y))
#define _mm512_fmadd_ps(x, y, z) emulated_fma(x, y, z)
#define _mm512_min_ps(x, y) emulated_min(x, y, x)
#define _mm512_max_ps(x, y) emulated_max(x, y, x)
#define _mm512_sqrt_ps(x) emulated_sqrt(x, x, x)
#define _mm512_madd_epi16(x, y) emulated_madd(x, y)
#define _mm512_dpbusd_epi32(sum, x, y) emulated_dot(sum, x, y)
#define _mm512_permutex2var_epi32(x, indices, y) emulated_pick(x, indices, y)
