/* Vectors of fp32 and their exp, sigmoid and tanh, for the instruction set that native.c has defined.
 *
 *     native.c  ->  vector.h, int8.h, product.h, lstm.h, dots.h   (once for each instruction set)
 *
 * In: ISA, the suffix of every name, and BYTES, the size of a vector register. No include guard: it is
 * included several times. PANEL columns, the width of packed weights, are WIDE vectors in every instruction set.
 */

#define LANES (BYTES / 4)
#define WIDE (PANEL / LANES)
#define vec NAME(vec)
#define ivec NAME(ivec)
typedef float vec __attribute__((vector_size(BYTES)));
typedef int32_t ivec __attribute__((vector_size(BYTES)));

static INLINE vec NAME(load)(const float *from)
{
    vec x;
    memcpy(&x, from, sizeof x); /* one unaligned load */
    return x;
}

static INLINE void NAME(store)(float *to, vec x) { memcpy(to, &x, sizeof x); }

/* x in every lane; subtracting 0 changes no x, unlike adding it, so it costs no instruction. */
static INLINE vec NAME(same)(float x) { return x - (vec){0}; }

/* x * y + z, rounded once if the CPU can. All else is compiled without such contractions
 * (-ffp-contract=off), so that it gives the same bits in every instruction set. */
static INLINE vec NAME(fma)(vec x, vec y, vec z)
{
#if BYTES == 64
    return (vec)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z);
#elif BYTES == 32
    return (vec)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
#elif defined(__aarch64__)
    return (vec)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y);
#else
    return x * y + z;
#endif
}

static INLINE vec NAME(choose)(ivec mask, vec yes, vec no)
{
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

/* Clip to ±limit; NaN stays NaN, since minimum and maximum instructions return their second operand then. */
static INLINE vec NAME(clip)(vec x, float limit)
{
#if BYTES == 64
    x = (vec)_mm512_min_ps((__m512)NAME(same)(limit), (__m512)x);
    return (vec)_mm512_max_ps((__m512)NAME(same)(-limit), (__m512)x);
#elif BYTES == 32
    x = (vec)_mm256_min_ps((__m256)NAME(same)(limit), (__m256)x);
    return (vec)_mm256_max_ps((__m256)NAME(same)(-limit), (__m256)x);
#else
    x = NAME(choose)(x > limit, NAME(same)(limit), x);
    return NAME(choose)(x < -limit, NAME(same)(-limit), x);
#endif
}

/* x where |value| < limit or is NaN, else 0: the gradient of `clip`. */
static INLINE vec NAME(unclipped)(vec x, vec value, float limit)
{
    return (vec)((ivec)x & ~((value >= limit) | (value <= -limit)));
}

/* e^x as *scale * (1 + *part) for |x| <= 87: *scale = 2^round(x / ln 2), *part = e^rest - 1. */
static INLINE void NAME(power)(vec x, vec *scale, vec *part)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    vec shifted = NAME(fma)(x, NAME(same)(1.44269504f), NAME(same)(shift));
    vec whole = shifted - shift;
    vec rest = NAME(fma)(whole, NAME(same)(-0.693145752f), x); /* ln 2 in two parts, the first exact */
    rest = NAME(fma)(whole, NAME(same)(-1.42860682e-6f), rest);
    /* Least relative error of e^r - 1 for |r| < ln 2 / 2. */
    vec p = NAME(fma)(rest, NAME(same)(0.00138824969f), NAME(same)(0.00836664718f));
    p = NAME(fma)(p, rest, NAME(same)(0.0416672044f));
    p = NAME(fma)(p, rest, NAME(same)(0.166665420f));
    p = NAME(fma)(p, rest, NAME(same)(0.49999997f));
    *part = NAME(fma)(rest * rest, p, rest);
    *scale = (vec)(((ivec)shifted + 127) << 23);
}

static INLINE vec NAME(sigmoid)(vec x)
{
    vec scale, part;
    NAME(power)(NAME(clip)(-x, 87.0f), &scale, &part); /* beyond 87 the result would not be a normal number */
    return 1.0f / (1.0f + NAME(fma)(scale, part, scale));
}

/* tanh x = -e / (e + 2) with e = exp(-2|x|) - 1, small errors also where x is small. */
static INLINE vec NAME(tanh)(vec x)
{
    const ivec sign = (ivec)x & INT32_MIN;
    vec scale, part;
    vec twice = NAME(clip)((vec)((ivec)(x + x) | INT32_MIN), 40.0f); /* -2|x|; at -40 the result is 1 */
    NAME(power)(twice, &scale, &part);
    vec e = NAME(fma)(scale, part, scale - 1.0f);
    return (vec)(((ivec)(-e / (e + 2.0f)) & INT32_MAX) | sign);
}

static void NAME(map)(int function, const float *x, float *y, int64_t count)
{
    float tile[LANES] = {0};
    for (int64_t at = 0; at < count; at += LANES) {
        const size_t bytes = 4 * (size_t)(count - at < LANES ? count - at : LANES);
        memcpy(tile, x + at, bytes);
        vec value = NAME(load)(tile);
        NAME(store)(tile, function ? NAME(tanh)(value) : NAME(sigmoid)(value));
        memcpy(y + at, tile, bytes);
    }
}
