/* One layer of one direction of an LSTM over packed sentences, forward and backward.
 *
 *     native.c  ->  lstm.h  ->  product.h, vector.h
 *
 * The weights may be fp32, bf16 or int8; gates, memory and clips are fp32. The backward pass takes fp32 and bf16.
 *
 * struct lstm in native.c describes inputs and outputs. The gates of up to HIGH sentences and PANEL cells are
 * computed in one tile that fits the L1 cache: product, activations and memory in one pass.
 */

static INLINE void NAME(take)(float *tile, const float *from, int64_t width)
{
    if (width == PANEL)
        memcpy(tile, from, 4 * PANEL);
    else {
        memset(tile, 0, 4 * PANEL);
        memcpy(tile, from, 4 * (size_t)width);
    }
}

static INLINE void NAME(give)(float *to, const float *tile, int64_t width)
{
    memcpy(to, tile, 4 * (size_t)(width == PANEL ? PANEL : width));
}

/* One sentence, PANEL cells: gates before activation to new memory and raw output; if `save`, the gates become
 * i, f, o, g in place. */
static INLINE void NAME(cell)(float *gates, const float *bias, const float *before, float *memory, float *raw,
                              float limit, const int save)
{
    for (int at = 0; at < PANEL; at += LANES) {
        const vec i = NAME(sigmoid)(NAME(load)(gates + at) + NAME(load)(bias + at));
        const vec f = NAME(sigmoid)(NAME(load)(gates + PANEL + at) + NAME(load)(bias + PANEL + at));
        const vec o = NAME(sigmoid)(NAME(load)(gates + 2 * PANEL + at) + NAME(load)(bias + 2 * PANEL + at));
        const vec g = NAME(tanh)(NAME(load)(gates + 3 * PANEL + at) + NAME(load)(bias + 3 * PANEL + at));
        const vec c = NAME(clip)(f * NAME(load)(before + at) + i * g, limit);
        if (save) {
            NAME(store)(gates + at, i);
            NAME(store)(gates + PANEL + at, f);
            NAME(store)(gates + 2 * PANEL + at, o);
            NAME(store)(gates + 3 * PANEL + at, g);
        }
        NAME(store)(memory + at, c);
        NAME(store)(raw + at, o * NAME(tanh)(c));
    }
}

/* The input's share of the gates for the cells from `from` on, gate by gate. With x it was computed here, panel by
 * panel and padded, so that it is contiguous. */
static INLINE void NAME(take_gates)(const struct lstm *l, const float *z, int64_t from, int64_t width, float *tile)
{
    if (l->x)
        for (int at = 0; at < 4 * PANEL; at += LANES)
            NAME(store)(tile + at, NAME(load)(z + 4 * from + at));
    else
        for (int g = 0; g < 4; g++)
            NAME(take)(tile + g * PANEL, z + g * l->cells + from, width);
}

static INLINE int64_t NAME(z_step)(const struct lstm *l) { return 4 * (l->x ? padded(l->cells) : l->cells); }

/* `rows` sentences, the cells from `from` on: z and the recurrent output to memory and raw output (and saved gates). */
static void NAME(forward_tile)(const struct lstm *l, int64_t rows, int64_t from, const float *z, const char *h,
                               const float *before, float *gates, float *memory, float *raw)
{
    const int64_t m = l->cells, width = m - from < PANEL ? m - from : PANEL, step = NAME(z_step)(l);
    const char *weight = (const char *)l->hidden + from / PANEL * 4 * panel_bytes(l->kind, l->outputs);
    const float *scales = l->kind == INT8 ? l->hidden_scales + 4 * from : NULL;
    float tile[HIGH * GROUP * PANEL], bias[GROUP * PANEL] = {0}, old[PANEL], new[PANEL], out[PANEL];
    for (int g = 0; g < 4 && l->bias; g++)
        NAME(take)(bias + g * PANEL, l->bias + g * m + from, width);
    for (int at = 0; at < PANEL; at++)
        bias[PANEL + at] += l->forget;
    for (int64_t r = 0; r < rows; r++)
        NAME(take_gates)(l, z + r * step, from, width, tile + r * 4 * PANEL);
    NAME(into_tile)(l->kind, rows, 4, h, weight, l->outputs, scales, tile);
    for (int64_t r = 0; r < rows; r++) {
        NAME(take)(old, before + r * m + from, width);
        if (gates)
            NAME(cell)(tile + r * 4 * PANEL, bias, old, new, out, l->cell_clip, 1);
        else
            NAME(cell)(tile + r * 4 * PANEL, bias, old, new, out, l->cell_clip, 0);
        NAME(give)(memory + r * m + from, new, width);
        NAME(give)(raw + r * m + from, out, width);
        for (int g = 0; g < 4 && gates; g++)
            NAME(give)(gates + r * 4 * m + g * m + from, tile + (r * 4 + g) * PANEL, width);
    }
}

/* All cells of n sentences at one time step. */
static void NAME(forward_step)(const struct lstm *l, int64_t n, const float *z, const float *h,
                               const float *before, float *gates, float *memory, float *raw)
{
    const int64_t m = l->cells, step = NAME(row_step)(l->kind, l->outputs);
    const char *rows = NAME(rows_for)(l->kind, h, n, l->outputs, l->scratch);
    for (int64_t top = 0; top < n; top += CHUNK) {
        const int64_t end = n < top + CHUNK ? n : top + CHUNK;
        for (int64_t from = 0; from < m; from += PANEL)
            for (int64_t r = top; r < end; r += HIGH)
                NAME(forward_tile)(l, end - r < HIGH ? end - r : HIGH, from, z + r * NAME(z_step)(l), rows + r * step,
                                   before + r * m, gates ? gates + r * 4 * m : NULL, memory + r * m, raw + r * m);
    }
}

static void NAME(clip_all)(float *x, int64_t count, float limit)
{
    for (int64_t at = 0; at < count; at++)
        x[at] = x[at] > limit ? limit : x[at] < -limit ? -limit : x[at];
}

/* Compute z for as many steps from t on as fit, whose tokens start at `row`; returns the number of tokens. */
static int64_t NAME(make_z)(const struct lstm *l, int64_t t, int64_t row)
{
    int64_t tokens = l->sizes[t];
    while (++t < l->steps && tokens + l->sizes[t] <= l->z_rows)
        tokens += l->sizes[t];
    NAME(product)(&(struct product){l->kind, 1, tokens, l->inputs, NAME(z_step)(l), l->x + row * l->inputs,
                                    l->input, l->input_scales, l->scratch, l->z});
    return tokens;
}

/* The whole layer. Sentences that end write their last output and memory to last_h and last_c. */
static void NAME(forward)(const struct lstm *l)
{
    const int64_t m = l->cells, d = l->outputs;
    const float *h = l->first_h, *c = l->first_c;
    int64_t row = 0, running = l->batch, first = 0, end = l->x ? 0 : INT64_MAX; /* z has the rows from first to end */
    for (int64_t t = 0; t < l->steps; t++) {
        const int64_t n = l->sizes[t];
        keep_ended(l, n, running, h, c);
        if (row == end && n) {
            first = end;
            end += NAME(make_z)(l, t, row);
        }
        float *output = l->output + row * d, *raw = l->projection ? l->raw + (l->gates ? row * m : 0) : output;
        float *memory = l->gates ? l->memory + row * m : l->last_c;
        NAME(forward_step)(l, n, l->z + (row - first) * NAME(z_step)(l), h, c, l->gates ? l->gates + row * 4 * m : NULL,
                           memory, raw);
        if (l->projection) {
            NAME(product)(&(struct product){l->kind, 1, n, m, d, raw, l->projection, l->projection_scales,
                                            l->scratch, output});
            NAME(clip_all)(output, n * d, l->output_clip);
        }
        h = output, c = memory, running = n, row += n;
    }
    keep_ended(l, 0, running, h, c);
}

/* One sentence, PANEL cells: from the gradient of the raw output to those of the gates and, in d_c, the memory. */
static INLINE void NAME(cell_backward)(const float *gates, const float *before, const float *memory,
                                       const float *d_raw, float *d_c, float *d_gates, float limit)
{
    for (int at = 0; at < PANEL; at += LANES) {
        const vec i = NAME(load)(gates + at), f = NAME(load)(gates + PANEL + at);
        const vec o = NAME(load)(gates + 2 * PANEL + at), g = NAME(load)(gates + 3 * PANEL + at);
        const vec c = NAME(load)(memory + at), bent = NAME(tanh)(c), d = NAME(load)(d_raw + at);
        vec dc = d * o * (1.0f - bent * bent) + NAME(load)(d_c + at);
        dc = NAME(unclipped)(dc, c, limit);
        NAME(store)(d_gates + at, dc * g * (i * (1.0f - i)));
        NAME(store)(d_gates + PANEL + at, dc * NAME(load)(before + at) * (f * (1.0f - f)));
        NAME(store)(d_gates + 2 * PANEL + at, d * bent * (o * (1.0f - o)));
        NAME(store)(d_gates + 3 * PANEL + at, dc * i * (1.0f - g * g));
        NAME(store)(d_c + at, dc * f);
    }
}

/* `rows` sentences, GROUP panels of cells from `from` on, backward. */
static void NAME(backward_tile)(const struct lstm *l, int64_t rows, int64_t from, int64_t row, const float *before,
                                const char *d_given, float *d_c)
{
    const int64_t m = l->cells, d = l->outputs, left = (m - from + PANEL - 1) / PANEL;
    const int panels = (int)(left < GROUP ? left : GROUP);
    float tile[HIGH * GROUP * PANEL], gates[4 * PANEL], d_gates[4 * PANEL], old[PANEL], c[PANEL], dc[PANEL];
    if (l->projection) {
        memset(tile, 0, 4 * (size_t)(rows * GROUP * PANEL));
        NAME(into_tile)(l->kind, rows, panels, d_given,
                        (const char *)l->projection + from / PANEL * panel_bytes(l->kind, d), d, NULL, tile);
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int p = 0; p < panels; p++) {
            const int64_t cell = from + p * PANEL, width = m - cell < PANEL ? m - cell : PANEL;
            float *d_raw = tile + (r * GROUP + p) * PANEL;
            if (!l->projection)
                NAME(take)(d_raw, l->d_given + (row + r) * d + cell, width);
            for (int g = 0; g < 4; g++)
                NAME(take)(gates + g * PANEL, l->gates + ((row + r) * 4 + g) * m + cell, width);
            NAME(take)(old, before + r * m + cell, width);
            NAME(take)(c, l->memory + (row + r) * m + cell, width);
            NAME(take)(dc, d_c + r * m + cell, width);
            NAME(cell_backward)(gates, old, c, d_raw, dc, d_gates, l->cell_clip);
            NAME(give)(d_c + r * m + cell, dc, width);
            for (int g = 0; g < 4; g++)
                NAME(give)(l->d_z + ((row + r) * 4 + g) * m + cell, d_gates + g * PANEL, width);
        }
    }
}

/* The gradient of the output of a step: from above and from the next step, zero where it was clipped. */
static void NAME(given)(const struct lstm *l, int64_t n, int64_t row)
{
    const int64_t count = n * l->outputs;
    const float limit = l->projection ? l->output_clip : INFINITY;
    const float *output = l->output + row * l->outputs, *above = l->d_output + row * l->outputs;
    float *given = l->d_given + row * l->outputs;
    for (int64_t at = 0; at < count; at++) {
        const int clipped = (output[at] >= limit) | (output[at] <= -limit);
        given[at] = clipped ? 0.0f : l->last_h[at] + above[at];
    }
}

/* The whole layer, last step first; last_h and last_c hold the gradients of the state, and become those of
 * the state before the first step. */
static void NAME(backward)(const struct lstm *l)
{
    const int64_t m = l->cells, d = l->outputs;
    int64_t row = 0;
    for (int64_t t = 0; t < l->steps; t++)
        row += l->sizes[t];
    for (int64_t t = l->steps - 1; t >= 0; t--) {
        const int64_t n = l->sizes[t], earlier = t ? l->sizes[t - 1] : 0;
        row -= n;
        const float *before = t ? l->memory + (row - earlier) * m : l->first_c;
        NAME(given)(l, n, row);
        const char *rows = l->projection ? NAME(rows_for)(l->kind, l->d_given + row * d, n, d, l->scratch) : NULL;
        const int64_t step = NAME(row_step)(l->kind, d);
        for (int64_t top = 0; top < n; top += CHUNK) {
            const int64_t end = n < top + CHUNK ? n : top + CHUNK;
            for (int64_t from = 0; from < m; from += GROUP * PANEL)
                for (int64_t r = top; r < end; r += HIGH)
                    NAME(backward_tile)(l, end - r < HIGH ? end - r : HIGH, from, row + r, before + r * m,
                                        rows ? rows + r * step : NULL, l->last_c + r * m);
        }
        NAME(product)(&(struct product){l->kind, 1, n, 4 * m, d, l->d_z + row * 4 * m, l->hidden, NULL, l->scratch,
                                        l->last_h});
        memcpy(l->recurred + row * d, t ? l->output + (row - earlier) * d : l->first_h, 4 * (size_t)(n * d));
    }
}
