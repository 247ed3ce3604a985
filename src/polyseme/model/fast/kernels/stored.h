/* Tasks on stored vectors, of fp16 or fp32, memory-mapped: scores, norms, sums.
 *
 *     native.c  ->  stored.h  ->  dots.h
 */

/* scores[row] = (vectors[row] . query - offset) / lengths[row], or -infinity where keep[row] is 0, for `rows`
 * vectors of `width` values; tops[n] is the best score of the n-th TOGETHER rows. */
struct dots {
    int64_t kind, rows, width;
    const void *vectors;
    const float *query, *lengths;
    const uint8_t *keep; /* or NULL: all */
    float offset;
    float *scores, *tops;
};

/* Scores as of struct dots, of many queries at once, that are above the limit of each query: `found` of them,
 * scores[at] of the row indices[at] / queries and the query indices[at] % queries. The queries (queries, width) are
 * packed as FP32; offsets and least are as long as their panels, infinity behind the last query's least. */
struct above {
    int64_t kind, rows, width, queries, found;
    const void *vectors, *packed;
    const float *offsets, *least, *lengths;
    const uint8_t *keep; /* or NULL: all */
    float *scratch;      /* polyseme_above_scratch_size bytes */
    int32_t *indices;    /* memory for rows * queries values, which must fit int32 */
    float *scores;
};

/* Rows that many queries are compared with at a time: with the next ones they fit the L2 cache. */
static INLINE int64_t rows_together(int64_t width)
{
    const int64_t rows = CHUNK * DEPTH / width;
    return rows > CHUNK ? CHUNK : rows < HIGH ? HIGH : rows;
}

/* found[row] = |(vectors[row] - centre) * turn|^2. The turn (width, width) has zeros above its diagonal, and is packed
 * as FP32, its columns as results. */
struct squares {
    int64_t kind, rows, width;
    const void *vectors, *packed;
    const float *centre;
    float *scratch; /* polyseme_squares_scratch_size bytes */
    float *found;
};

/* sums[indices[row]] += vectors[row], for `rows` vectors of `width` values. */
struct totals {
    int64_t kind, rows, width;
    const void *vectors;
    const int32_t *indices;
    float *sums;
};
