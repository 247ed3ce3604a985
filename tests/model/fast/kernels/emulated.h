/* AVX-512 instructions of native.c by plain C, so that its code for them runs on any x86 machine. */

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

/* Unsigned bytes of x times signed bytes of y, four of them added. */
static inline __m512i emulated_dot(__m512i sum, __m512i x, __m512i y)
{
    const quarters a = (quarters)x, b = (quarters)y;
    words total = (words)sum;
    EACH(at, 64) total[at / 4] += (uint8_t)a[at] * b[at];
    return (__m512i)total;
}

#define _mm512_fmadd_ps(x, y, z) emulated_fma(x, y, z)
#define _mm512_min_ps(x, y) emulated_min(x, y, x)
#define _mm512_max_ps(x, y) emulated_max(x, y, x)
#define _mm512_madd_epi16(x, y) emulated_madd(x, y)
#define _mm512_dpbusd_epi32(sum, x, y) emulated_dot(sum, x, y)
