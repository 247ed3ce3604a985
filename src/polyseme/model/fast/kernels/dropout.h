/* Dropout without a mask in memory: whether a value is dropped follows from its number and a seed.
 *
 *     native.c  ->  dropout.h  ->  vector.h
 *
 * The gradient is the same function of the gradient from above. Every instruction set drops the same values.
 */

typedef uint32_t NAME(counts) __attribute__((vector_size(BYTES)));

/* The finaliser of MurmurHash3: each bit of h changes about half of the bits of the result. */
static INLINE NAME(counts) NAME(mix_bits)(NAME(counts) h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

static INLINE void NAME(drop_lanes)(const struct drop *q, NAME(counts) numbers, const float *x, float *out)
{
    const NAME(counts) bits = NAME(mix_bits)(NAME(mix_bits)(numbers ^ q->seed) ^ q->second_seed);
    NAME(store)(out, (vec)((ivec)(NAME(load)(x) * q->factor) & (ivec)(bits >= q->dropped)));
}

/* Values from `from` to `to`. */
static void NAME(drop)(const struct drop *q, int64_t from, int64_t to)
{
    NAME(counts) numbers;
    for (int lane = 0; lane < LANES; lane++)
        numbers[lane] = (uint32_t)from + (uint32_t)lane;
    for (; from + LANES <= to; from += LANES, numbers += LANES)
        NAME(drop_lanes)(q, numbers, q->x + from, q->out + from);
    if (from < to) {
        float edge[LANES] = {0};
        memcpy(edge, q->x + from, 4 * (size_t)(to - from));
        NAME(drop_lanes)(q, numbers, edge, edge);
        memcpy(q->out + from, edge, 4 * (size_t)(to - from));
    }
}
