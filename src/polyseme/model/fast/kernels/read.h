/* One layer of one direction of an LSTM for inference: nothing is saved for a backward pass.
 *
 *     native.c  ->  read.h  ->  lstm.h, product.h, int8.h, vector.h
 *
 * The same values as NAME(forward), bit for bit, for machines with vectors as wide as a panel. Products are written
 * to a tile and the input's share of the gates is added when a cell is computed, so that the tile is not filled first;
 * the memory and the outputs are read and written where they are. One sentence is bound by reading weights: its row is
 * multiplied by one panel after the other, as they stand in memory, with several sums along k (of integers, so that
 * their order does not matter), and the cells of some groups are computed together.
 */

#if BYTES == 64

#define GROUPS 4 /* groups of gates whose cells are computed together for one sentence */
#define FETCHED_WEIGHTS 4096 /* prefetch distance of weights in bytes: the hardware prefetcher stops at page ends */

/* PANEL cells of one sentence: the products of the four gates, the input's share z (NULL if the products have it) and
 * the bias to new memory; the output gate replaces the products. NAME(read_raw) ends it: two short chains of dependent
 * instructions, of which the machine has more under way at once. */
static INLINE void NAME(read_memory)(float *products, const float *z, const float *bias, const float *before,
                                     float *memory, float limit)
{
    vec gates[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const vec product = NAME(load)(products + g * PANEL);
        gates[g] = (z ? NAME(load)(z + g * PANEL) + product : product) + NAME(load)(bias + g * PANEL);
    }
    const vec i = NAME(sigmoid)(gates[0]), f = NAME(sigmoid)(gates[1]);
    NAME(store)(memory, NAME(clip)(f * NAME(load)(before) + i * NAME(tanh)(gates[3]), limit));
    NAME(store)(products, NAME(sigmoid)(gates[2]));
}

/* The raw output of PANEL cells from their output gate and new memory. */
static INLINE void NAME(read_raw)(const float *gate, const float *memory, float *raw)
{
    NAME(store)(raw, NAME(load)(gate) * NAME(tanh)(NAME(load)(memory)));
}

/* The cells of some sentences, `width` of them up to PANEL: products (rows, 4, PANEL) and z, rows `step` apart, to
 * memory and raw output, rows l->cells apart. */
static INLINE void NAME(read_cells)(const struct lstm *l, int64_t rows, int64_t width, float *products, const float *z,
                                    int64_t step, const float *bias, const float *before, float *memory, float *raw)
{
    const int64_t m = l->cells;
    float old[PANEL], new[PANEL], out[PANEL];
    if (width >= PANEL) {
        for (int64_t r = 0; r < rows; r++)
            NAME(read_memory)(products + r * 4 * PANEL, z ? z + r * step : NULL, bias, before + r * m, memory + r * m,
                              l->cell_clip);
        for (int64_t r = 0; r < rows; r++)
            NAME(read_raw)(products + r * 4 * PANEL, memory + r * m, raw + r * m);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        NAME(take)(old, before + r * m, width);
        NAME(read_memory)(products + r * 4 * PANEL, z ? z + r * step : NULL, bias, old, new, l->cell_clip);
        NAME(read_raw)(products + r * 4 * PANEL, new, out);
        NAME(give)(memory + r * m, new, width);
        NAME(give)(raw + r * m, out, width);
    }
}

#if VNNI
/* A quantised row by `panels` panels: out (panels, PANEL). */
static void NAME(row_int8)(int64_t panels, const char *a, const char *b, int64_t k, const float *scales, float *out)
{
    const int64_t fours = (k + 3) / 4;
    float scale;
    memcpy(&scale, a, sizeof scale);
    a += 8;
    for (int64_t p = 0; p < panels; p++, b += panel_bytes(INT8, k)) {
        ivec sum[4] = {{0}}, weight;
        int64_t at = 0;
        for (; at + 4 <= fours; at += 4) {
#pragma GCC unroll 4
            for (int s = 0; s < 4; s++) {
                __builtin_prefetch(b + (at + s) * 4 * PANEL + FETCHED_WEIGHTS);
                memcpy(&weight, b + (at + s) * 4 * PANEL, sizeof weight);
                sum[s] = NAME(dot)(sum[s], NAME(values)(a + (at + s) * 4), weight);
            }
        }
        for (; at < fours; at++) {
            memcpy(&weight, b + at * 4 * PANEL, sizeof weight);
            sum[0] = NAME(dot)(sum[0], NAME(values)(a + at * 4), weight);
        }
        memcpy(&weight, b + fours * 4 * PANEL, sizeof weight); /* compensates for the 128 added to each value */
        const vec whole = __builtin_convertvector((sum[0] + sum[1]) + (sum[2] + sum[3]) + weight, vec);
        NAME(store)(out + p * PANEL, whole * (scale * NAME(load)(scales + p * PANEL)));
    }
}
#endif

/* out (rows, GROUP * PANEL) = the rows by GROUP panels of gates; for several pieces of k the sum starts from z (rows
 * z_step apart), as the caller has told by `from_z`. */
static INLINE void NAME(read_products)(const struct lstm *l, int64_t rows, int64_t from, const char *h, const float *z,
                                       int64_t step, int from_z, float *out)
{
    const int64_t k = l->outputs;
    const char *weight = (const char *)l->hidden + from / PANEL * 4 * panel_bytes(l->kind, k);
    if (l->kind == INT8) {
        NAME(block_int8)(rows, 4, h, weight, k, l->hidden_scales + 4 * from, out, GROUP * PANEL, 1);
        return;
    }
    const int pairs = DOT_BF16 && l->kind == BF16;
    if (!from_z) {
        NAME(block_any)(pairs ? PAIRS : (int)l->kind, rows, 4, (const float *)h, pairs ? (k + 1) / 2 : k, weight,
                        panel_bytes(l->kind, k), pairs ? (k + 1) / 2 : k, out, GROUP * PANEL, PANEL, 1);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        memcpy(out + r * GROUP * PANEL, z + r * step, 4 * GROUP * PANEL);
    NAME(into_tile)((int)l->kind, rows, 4, h, weight, k, NULL, out);
}

/* All cells of n sentences at one time step; `bias` as NAME(lay_out_bias) wrote it. */
static void NAME(read_step)(const struct lstm *l, int64_t n, const float *bias, const float *z, const float *h,
                            const float *before, float *memory, float *raw)
{
    const int64_t m = l->cells, step = NAME(z_step)(l), row = NAME(row_step)(l->kind, l->outputs);
    const int64_t words = DOT_BF16 && l->kind == BF16 ? (l->outputs + 1) / 2 : l->outputs;
    const int from_z = l->kind != INT8 && words > DEPTH;
    const char *rows = NAME(rows_for)(l->kind, h, n, l->outputs, l->scratch);
    float tile[HIGH * GROUP * PANEL];
#if VNNI
    const int64_t whole = m / PANEL * PANEL;
    int64_t done = 0;
    for (; n == 1 && l->kind == INT8 && done < whole; done += GROUPS * PANEL) {
        const int64_t end = whole < done + GROUPS * PANEL ? whole : done + GROUPS * PANEL;
        NAME(row_int8)((end - done) / PANEL * 4, rows,
                       (const char *)l->hidden + done / PANEL * 4 * panel_bytes(INT8, l->outputs), l->outputs,
                       l->hidden_scales + 4 * done, tile);
        for (int64_t at = done; at < end; at += PANEL)
            NAME(read_memory)(tile + 4 * (at - done), z + 4 * at, bias + 4 * at, before + at, memory + at,
                              l->cell_clip);
        for (int64_t at = done; at < end; at += PANEL)
            NAME(read_raw)(tile + 4 * (at - done), memory + at, raw + at);
    }
    const int64_t start = done < whole ? done : whole;
#else
    const int64_t start = 0;
#endif
    for (int64_t top = 0; top < n; top += CHUNK) {
        const int64_t bottom = n < top + CHUNK ? n : top + CHUNK;
        for (int64_t from = start; from < m; from += PANEL) {
            for (int64_t r = top; r < bottom; r += HIGH) {
                const int64_t high = bottom - r < HIGH ? bottom - r : HIGH;
                const float *share = z + r * step + 4 * from;
                NAME(read_products)(l, high, from, rows + r * row, share, step, from_z, tile);
                NAME(read_cells)(l, high, m - from, tile, from_z ? NULL : share, step, bias + 4 * from,
                                 before + r * m + from, memory + r * m + from, raw + r * m + from);
            }
        }
    }
}

/* The bias in panels, gate by gate, with the constant of the forget gate: (panels, 4, PANEL). */
static void NAME(lay_out_bias)(const struct lstm *l, float *to)
{
    for (int64_t from = 0; from < l->cells; from += PANEL, to += 4 * PANEL) {
        const int64_t width = l->cells - from < PANEL ? l->cells - from : PANEL;
        memset(to, 0, 16 * PANEL);
        for (int g = 0; g < 4 && l->bias; g++)
            memcpy(to + g * PANEL, l->bias + g * l->cells + from, 4 * (size_t)width);
        for (int at = 0; at < PANEL; at++)
            to[PANEL + at] += l->forget;
    }
}

/* raw (n, M) to the clipped output (n, D). */
static void NAME(read_projection)(const struct lstm *l, int64_t n, const float *raw, float *output)
{
#if VNNI
    if (n == 1 && l->kind == INT8 && l->outputs % PANEL == 0) {
        const char *row = NAME(rows_for)(INT8, raw, 1, l->cells, l->scratch);
        NAME(row_int8)(l->outputs / PANEL, row, l->projection, l->cells, l->projection_scales, output);
        NAME(clip_all)(output, l->outputs, l->output_clip);
        return;
    }
#endif
    NAME(product)(&(struct product){l->kind, 1, n, l->cells, l->outputs, raw, l->projection, l->projection_scales,
                                    l->scratch, output});
    NAME(clip_all)(output, n * l->outputs, l->output_clip);
}

/* The whole layer from x; z has a row of 4 * M' values more, for the bias. */
static void NAME(read)(const struct lstm *l)
{
    const int64_t d = l->outputs;
    const float *h = l->first_h, *c = l->first_c;
    float *bias = l->z + l->z_rows * NAME(z_step)(l);
    int64_t row = 0, running = l->batch, first = 0, end = 0; /* z has the rows from first to end */
    NAME(lay_out_bias)(l, bias);
    for (int64_t t = 0; t < l->steps; t++) {
        const int64_t n = l->sizes[t];
        keep_ended(l, n, running, h, c);
        if (row == end && n) {
            first = end;
            end += NAME(make_z)(l, t, row);
        }
        float *output = l->output + row * d, *raw = l->projection ? l->raw : output;
        NAME(read_step)(l, n, bias, l->z + (row - first) * NAME(z_step)(l), h, c, l->last_c, raw);
        if (l->projection)
            NAME(read_projection)(l, n, raw, output);
        h = output, c = l->last_c, running = n, row += n;
    }
    keep_ended(l, 0, running, h, c);
}

#undef GROUPS
#undef FETCHED_WEIGHTS

#else

static void NAME(read)(const struct lstm *l) { NAME(forward)(l); }

#endif
