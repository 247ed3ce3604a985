/* Stored vectors against one query or many, for exact search: one sequential read of all vectors.
 *
 *     native.c  ->  dots.h  ->  vector.h, product.h
 *
 * For one query a vector is summed in 2 * PANEL sums, for many as in product.h; in every instruction set
 * and at every index: the same vector gets the same bits everywhere.
 */

/* LANES numbers of fp16 as fp32. Without an instruction for it: shifted into place they are 2^112 times too small,
 * which is exact also for the smallest; index files hold no infinity. */
static INLINE vec NAME(widened)(const uint16_t *from)
{
#if BYTES == 64 && !defined(EMULATED)
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#elif BYTES == 32
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#else
    typedef uint16_t narrow __attribute__((vector_size(BYTES / 2)));
    narrow x;
    memcpy(&x, from, sizeof x);
    const ivec bits = __builtin_convertvector(x, ivec);
    const vec size = (vec)((bits & 0x7fff) << 13) * 0x1p112f;
    return (vec)((ivec)size | (bits & 0x8000) << 16);
#endif
}

static INLINE void NAME(dot_step)(const int kind, const void *row, const float *query, vec *sum)
{
#pragma GCC unroll 32
    for (int w = 0; w < WIDE; w++) {
        const vec x = kind == FP32 ? NAME(load)((const float *)row + w * LANES)
                                   : NAME(widened)((const uint16_t *)row + w * LANES);
        sum[w] = NAME(fma)(x, NAME(load)(query + w * LANES), sum[w]);
    }
}

/* The sum of PANEL values, by adding halves. */
static INLINE float NAME(halved)(float *parts)
{
#pragma GCC unroll 4
    for (int half = PANEL / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int lane = 0; lane < half; lane++)
            parts[lane] += parts[lane + half];
    return parts[0];
}

static INLINE float NAME(row_dot)(const int kind, const char *row, const float *query, int64_t width)
{
    const int64_t size = kind == FP32 ? 4 : 2;
    vec sum[2 * WIDE];
    float parts[PANEL], rest[PANEL] = {0}, asked[PANEL] = {0};
    int64_t at = 0;
#pragma GCC unroll 32
    for (int w = 0; w < 2 * WIDE; w++)
        sum[w] = (vec){0};
    for (; at + 2 * PANEL <= width; at += 2 * PANEL) {
        NAME(dot_step)(kind, row + at * size, query + at, sum);
        NAME(dot_step)(kind, row + (at + PANEL) * size, query + at + PANEL, sum + WIDE);
    }
    for (; at < width; at += PANEL) { /* zeros after the last value */
        const int64_t left = width - at < PANEL ? width - at : PANEL;
        memcpy(rest, row + at * size, (size_t)(left * size));
        memset((char *)rest + left * size, 0, sizeof rest - (size_t)(left * size));
        memcpy(asked, query + at, 4 * (size_t)left);
        memset(asked + left, 0, 4 * (size_t)(PANEL - left));
        NAME(dot_step)(kind, rest, asked, sum);
    }
#pragma GCC unroll 32
    for (int w = 0; w < WIDE; w++)
        NAME(store)(parts + w * LANES, sum[w] + sum[w + WIDE]);
    return NAME(halved)(parts);
}

static INLINE void NAME(dots_of)(const int kind, const struct dots *q)
{
    const int64_t step = q->width * (kind == FP32 ? 4 : 2);
    for (int64_t first = 0; first < q->rows; first += TOGETHER) {
        const int64_t end = q->rows < first + TOGETHER ? q->rows : first + TOGETHER;
        float best = -INFINITY;
        for (int64_t row = first; row < end; row++) {
            float score = -INFINITY;
            for (int64_t at = 0; at < step && row + FETCHED / step < q->rows; at += 64)
                __builtin_prefetch((const char *)q->vectors + row * step + FETCHED + at);
            if (!q->keep || q->keep[row]) {
                const float dot = NAME(row_dot)(kind, (const char *)q->vectors + row * step, q->query, q->width);
                score = (dot - q->offset) / q->lengths[row];
            }
            q->scores[row] = score;
            best = score > best ? score : best;
        }
        q->tops[first / TOGETHER] = best;
    }
}

static void NAME(dots)(const struct dots *q)
{
    if (q->kind == FP32)
        NAME(dots_of)(FP32, q);
    else
        NAME(dots_of)(FP16, q);
}

/* `count` numbers of fp16 as fp32. */
static void NAME(widen_halves)(const uint16_t *from, int64_t count, float *to)
{
    uint16_t rest[LANES] = {0};
    float wide[LANES];
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        NAME(store)(to + at, NAME(widened)(from + at));
    memcpy(rest, from + at, 2 * (size_t)(count - at));
    NAME(store)(wide, NAME(widened)(rest));
    memcpy(to + at, wide, 4 * (size_t)(count - at));
}

/* `rows` stored vectors from `from` on as fp32, in `wide` unless they are that already. */
static const float *NAME(wide_rows)(int64_t kind, const char *from, int64_t rows, int64_t width, float *wide)
{
    if (kind == FP32)
        return (const float *)from;
    NAME(widen_halves)((const uint16_t *)from, rows * width, wide);
    return wide;
}

/* out (rows, n) = a (rows, width) * packed queries; meanwhile `lines` cache lines from `next` on are prefetched,
 * evenly: the products hide the latency. */
static void NAME(many_dots)(const struct above *q, const float *a, int64_t rows, int64_t n, const char *next,
                            int64_t lines, float *out)
{
    const int64_t width = q->width, ldb = panel_bytes(FP32, width), strips = (rows + ROWS - 1) / ROWS;
    const int64_t panels = n / PANEL, together = rows / strips < ALONE ? panels : 1;
    const int64_t steps = (width + DEPTH - 1) / DEPTH * (panels / together) * strips;
    int64_t step = 0, line = 0;
    for (int64_t at = 0; at < width; at += DEPTH) {
        const int64_t depth = width - at < DEPTH ? width - at : DEPTH;
        for (int64_t p = 0; p < panels; p += together) {
            const char *b = (const char *)q->packed + p * ldb + panel_bytes(FP32, at);
            for (int64_t s = 0, from = 0; s < strips; s++) {
                const int64_t to = rows * (s + 1) / strips;
                for (step++; line * steps < lines * step; line++)
                    __builtin_prefetch(next + 64 * line, 0, 2);
                NAME(strip)(FP32, (int)(to - from), (int)together, a + from * width + at, width, b, ldb, depth, b,
                            out + from * n + p * PANEL, n, PANEL, !at);
                from = to;
            }
        }
    }
}

/* Store the scores of a row above the limit of their query: dots (n) above least * length + offset. */
static INLINE void NAME(note_above)(struct above *q, int64_t row, int64_t n, const float *dots)
{
    const float length = q->lengths[row];
    ivec some = {0};
    int32_t any[LANES], found = 0;
    for (int64_t at = 0; at < n; at += LANES) {
        const vec bound = NAME(fma)(NAME(load)(q->least + at), NAME(same)(length), NAME(load)(q->offsets + at));
        some |= NAME(load)(dots + at) > bound;
    }
    memcpy(any, &some, sizeof any);
    for (int lane = 0; lane < LANES; lane++)
        found |= any[lane];
    for (int64_t at = 0; found && at < q->queries; at++) {
        const float score = (dots[at] - q->offsets[at]) / length;
        q->indices[q->found] = (int32_t)(row * q->queries + at);
        q->scores[q->found] = score;
        q->found += score > q->least[at];
    }
}

static void NAME(above)(struct above *q)
{
    const int64_t n = padded(q->queries), most = rows_together(q->width);
    const int64_t step = q->width * (q->kind == FP32 ? 4 : 2);
    float *out = q->scratch, *wide = out + most * n;
    q->found = 0;
    for (int64_t first = 0; first < q->rows; first += most) {
        const int64_t left = q->rows - first, rows = left < most ? left : most;
        const int64_t more = left - rows < most ? left - rows : most;
        const char *from = (const char *)q->vectors + first * step;
        NAME(many_dots)(q, NAME(wide_rows)(q->kind, from, rows, q->width, wide), rows, n, from + rows * step,
                        more * step / 64, out);
        for (int64_t row = 0; row < rows; row++)
            if (!q->keep || q->keep[first + row])
                NAME(note_above)(q, first + row, n, out + row * n);
    }
}

/* The sum of the squares of n numbers, n whole panels. */
static INLINE float NAME(sum_of_squares)(const float *x, int64_t n)
{
    vec sum[WIDE];
    float parts[PANEL];
#pragma GCC unroll 32
    for (int w = 0; w < WIDE; w++)
        sum[w] = (vec){0};
    for (int64_t at = 0; at < n; at += PANEL)
#pragma GCC unroll 32
        for (int w = 0; w < WIDE; w++) {
            const vec some = NAME(load)(x + at + w * LANES);
            sum[w] = NAME(fma)(some, some, sum[w]);
        }
#pragma GCC unroll 32
    for (int w = 0; w < WIDE; w++)
        NAME(store)(parts + w * LANES, sum[w]);
    return NAME(halved)(parts);
}

/* A panel of the turn has zeros above its first column: the product starts there. */
static void NAME(squares)(const struct squares *q)
{
    const int64_t width = q->width, n = padded(width), most = rows_together(width), ldb = panel_bytes(FP32, width);
    const int64_t step = width * (q->kind == FP32 ? 4 : 2);
    float *out = q->scratch, *moved = out + most * n;
    for (int64_t first = 0; first < q->rows; first += most) {
        const int64_t rows = q->rows - first < most ? q->rows - first : most, strips = (rows + ROWS - 1) / ROWS;
        const float *wide = NAME(wide_rows)(q->kind, (const char *)q->vectors + first * step, rows, width, moved);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t at = 0; at < width; at++)
                moved[row * width + at] = wide[row * width + at] - q->centre[at];
        memset(out, 0, 4 * (size_t)(rows * n));
        for (int64_t left = 0; left < width; left += PANEL)
            for (int64_t at = left; at < width; at += DEPTH) {
                const char *b = (const char *)q->packed + left / PANEL * ldb + panel_bytes(FP32, at);
                const int64_t depth = width - at < DEPTH ? width - at : DEPTH;
                for (int64_t s = 0, from = 0, to; s < strips; s++, from = to) {
                    to = rows * (s + 1) / strips;
                    NAME(strip)(FP32, (int)(to - from), 1, moved + from * width + at, width, b, ldb, depth, b,
                                out + from * n + left, n, PANEL, 0);
                }
            }
        for (int64_t row = 0; row < rows; row++)
            q->found[first + row] = NAME(sum_of_squares)(out + row * n, n);
    }
}

/* The rows of the sums are in random order: prefetch those of the next vectors. */
static void NAME(totals)(const struct totals *q)
{
    const int64_t width = q->width, step = width * (q->kind == FP32 ? 4 : 2), ahead = 4;
    float wide[TOGETHER];
    for (int64_t row = 0; row < q->rows; row++) {
        const char *from = (const char *)q->vectors + row * step;
        float *to = q->sums + q->indices[row] * width;
        for (int64_t at = 0; at < width && row + ahead < q->rows; at += 16)
            __builtin_prefetch(q->sums + q->indices[row + ahead] * width + at, 1);
        for (int64_t at = 0; at < width; at += TOGETHER) {
            const int64_t some = width - at < TOGETHER ? width - at : TOGETHER;
            const float *x = NAME(wide_rows)(q->kind, from + at * (step / width), 1, some, wide);
            for (int64_t lane = 0; lane < some; lane++)
                to[at + lane] += x[lane];
        }
    }
}
