/* Words to vectors before any context: filters over characters by lookup tables, and highways.
 *
 *     native.c  ->  encode.h  ->  vector.h, product.h
 *
 * struct filters and struct highway in native.c describe inputs and outputs. Every word is computed by itself: it gets
 * the same bits in every batch and with any number of threads.
 */

#define STRETCH 4 /* vectors of filters whose sums are under way at once */

/* The strongest window of a word for STRETCH vectors of filters from `from` on, `width` characters wide or less. */
static INLINE void NAME(filter_word)(const struct filters *f, const int64_t *chars, int64_t windows, int64_t width,
                                     int64_t from, vec *most)
{
    for (int64_t window = 0; window < windows; window++) {
        vec sum[STRETCH] = {{0}};
        for (int64_t at = 0; at < width; at++) {
            const float *part = f->table + (at * f->characters + chars[window + at]) * f->size + from;
#pragma GCC unroll 8
            for (int v = 0; v < STRETCH; v++)
                sum[v] += NAME(load)(part + v * LANES);
        }
#pragma GCC unroll 8
        for (int v = 0; v < STRETCH; v++)
            most[v] = window ? NAME(choose)((most[v] > sum[v]) | (most[v] != most[v]), most[v], sum[v]) : sum[v];
    }
}

/* Filter by filter, so that the parts of frequent characters stay in the cache; f->size is a multiple of the step. */
static void NAME(filter)(const struct filters *f)
{
    for (int64_t from = 0; from < f->size; from += STRETCH * LANES) {
        int64_t width = 1;
        for (int64_t at = from / PANEL; at * PANEL < from + STRETCH * LANES; at++)
            width = f->widths[at] > width ? f->widths[at] : width;
        for (int64_t word = 0; word < f->words; word++) {
            vec most[STRETCH] = {{0}};
            NAME(filter_word)(f, f->chars + word * f->columns, f->lengths[word] + 1, width, from, most);
            for (int v = 0; v < STRETCH; v++) {
                const vec value = most[v] + NAME(load)(f->bias + from + v * LANES);
                NAME(store)(f->out + word * f->size + from + v * LANES,
                            f->relu ? NAME(choose)(value < 0.0f, (vec){0}, value) : value);
            }
        }
    }
}

/* The columns from `first` on, whole panels: some rows at a time, whose two products stay in the cache. */
static void NAME(highway)(const struct highway *h, int64_t first, int64_t columns, char *scratch)
{
    const int64_t size = h->size, offset = first / PANEL * panel_bytes((int)h->kind, size);
    float *new = h->memory + 2 * HIGHWAY_ROWS * first, *gate = new + HIGHWAY_ROWS * columns;
    for (int64_t top = 0; top < h->rows; top += HIGHWAY_ROWS) {
        const int64_t rows = h->rows - top < HIGHWAY_ROWS ? h->rows - top : HIGHWAY_ROWS;
        for (int64_t r = 0; r < rows; r++) {
            memcpy(new + r * columns, h->transform_bias + first, 4 * (size_t)columns);
            memcpy(gate + r * columns, h->carry_bias + first, 4 * (size_t)columns);
        }
        NAME(product)(&(struct product){h->kind, 0, rows, size, columns, h->x + top * size,
                                        (const char *)h->transform + offset,
                                        h->transform_scales ? h->transform_scales + first : NULL, scratch, new});
        NAME(product)(&(struct product){h->kind, 0, rows, size, columns, h->x + top * size,
                                        (const char *)h->carry + offset,
                                        h->carry_scales ? h->carry_scales + first : NULL, scratch, gate});
        for (int64_t r = 0; r < rows; r++)
            for (int64_t at = 0; at < columns; at += LANES) {
                const int64_t place = (top + r) * size + first + at;
                const vec x = NAME(load)(h->x + place), value = NAME(load)(new + r * columns + at);
                const vec g = NAME(sigmoid)(NAME(load)(gate + r * columns + at));
                const vec y = NAME(choose)(value < 0.0f, (vec){0}, value), step = y - x;
                NAME(store)(h->out + place, NAME(choose)(g < 0.5f, x + g * step, y - step * (1.0f - g)));
            }
    }
}

#undef STRETCH
