/* The strongest window of each filter over the characters of a word, and its gradient, for training.
 *
 *     native.c  ->  windows.h  ->  vector.h
 *
 * struct windows in native.c describes inputs and outputs. Of equal windows the first counts.
 */

#define STRETCH 4 /* vectors of filters whose sums are under way at once */

/* `count` vectors of filters from `from` on, for one word; `count` is known to the compiler. */
static INLINE void NAME(scan_word)(const struct windows *q, const int count, int64_t word, int64_t from)
{
    const int64_t *chars = q->chars + word * q->columns;
    vec most[STRETCH] = {{0}};
    ivec first[STRETCH] = {{0}};
    for (int64_t window = 0; window < q->counts[word]; window++) {
        vec sum[STRETCH] = {{0}};
        for (int64_t at = 0; at < q->width; at++) {
            const float *part = q->parts + (chars[window + at] * q->width + at) * q->size + from;
#pragma GCC unroll 8
            for (int v = 0; v < count; v++)
                sum[v] = at ? sum[v] + NAME(load)(part + v * LANES) : NAME(load)(part + v * LANES);
        }
#pragma GCC unroll 8
        for (int v = 0; v < count; v++) {
            const ivec better = ((ivec){0} + (window ? 0 : -1)) | (sum[v] > most[v]) | (sum[v] != sum[v]);
            most[v] = NAME(choose)(better, sum[v], most[v]);
            first[v] = (better & (int32_t)window) | (~better & first[v]);
        }
    }
    for (int v = 0; v < count; v++) {
        NAME(store)(q->values + word * q->step + from + v * LANES, most[v]);
        memcpy(q->first + word * q->size + from + v * LANES, first + v, sizeof *first);
    }
}

/* One filter of one word. */
static void NAME(scan_alone)(const struct windows *q, int64_t word, int64_t filter)
{
    const int64_t *chars = q->chars + word * q->columns;
    float most = 0.0f;
    int32_t first = 0;
    for (int64_t window = 0; window < q->counts[word]; window++) {
        float sum = 0.0f;
        for (int64_t at = 0; at < q->width; at++) {
            const float part = q->parts[(chars[window + at] * q->width + at) * q->size + filter];
            sum = at ? sum + part : part;
        }
        if (!window || sum > most || sum != sum)
            most = sum, first = (int32_t)window;
    }
    q->values[word * q->step + filter] = most;
    q->first[word * q->size + filter] = first;
}

/* Some filters of all words, so that the parts of frequent characters stay in the cache. */
static void NAME(scan)(const struct windows *q)
{
    int64_t from = 0;
    for (; from + STRETCH * LANES <= q->size; from += STRETCH * LANES)
        for (int64_t word = 0; word < q->words; word++)
            NAME(scan_word)(q, STRETCH, word, from);
    for (; from + LANES <= q->size; from += LANES)
        for (int64_t word = 0; word < q->words; word++)
            NAME(scan_word)(q, 1, word, from);
    for (; from < q->size; from++)
        for (int64_t word = 0; word < q->words; word++)
            NAME(scan_alone)(q, word, from);
}

#undef STRETCH
