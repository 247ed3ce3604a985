/* Runs every function of native.c with random shapes, for the sanitizers: each buffer has exactly the size that is
 * needed. Prints the number of runs. With an argument, that many threads run at once and share their weights. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "native.c"

static int pick(int n) { return rand() % n; }

static float *random_array(int64_t count)
{
    float *x = malloc(4 * (size_t)count);
    for (int64_t at = 0; at < count; at++)
        x[at] = (float)pick(2001) / 1000.0f - 1.0f;
    return x;
}

/* A packed weight of `kind` with random finite values. */
static void *pack_random(int kind, int64_t groups, int64_t n, int64_t k, int transposed)
{
    const size_t count = (size_t)(groups * n * k);
    void *to = malloc((size_t)polyseme_packed_size(kind, groups, n, k)), *weight = random_array((int64_t)count);
    if (kind == INT8)
        for (size_t at = 0; at < count; at++)
            ((int8_t *)weight)[at] = (int8_t)(pick(255) - 127);
    if (kind == BF16)
        for (size_t at = 0; at < count; at++)
            ((uint16_t *)weight)[at] = (uint16_t)(0x3d00 + pick(0x100) + 0x8000 * pick(2));
    weight = realloc(weight, count * (kind == FP32 ? 4 : kind == BF16 ? 2 : 1));
    polyseme_pack(kind, weight, groups, n, k, transposed ? 1 : k, transposed ? n : 1, to);
    free(weight);
    return to;
}

static void *make_scratch(int kind, int64_t rows, int64_t k)
{
    return kind == FP32 ? NULL : malloc((size_t)polyseme_scratch_size(rows, k));
}

static void release(void **buffers, int count)
{
    for (int at = 0; at < count; at++)
        free(buffers[at]);
}

/* Run a layer forward, from x if `inputs` is not 0, from z otherwise; with `save` also backward. `weights` are the
 * packed input, hidden and projection weights; the projection may be NULL. */
static void run_layer(int kind, int64_t inputs, int64_t m, int64_t d, void *const *weights, int save, int64_t batch,
                      int64_t steps)
{
    int64_t *sizes = malloc(8 * (size_t)steps + 8), tokens = 0, n = batch - pick(2);
    for (int64_t t = 0; t < steps; t++, n -= n > 1 ? pick(3) % n : 0)
        tokens += sizes[t] = n < 1 ? 1 : n;
    const int64_t z_rows = batch + pick(40);
    float *x = inputs ? random_array(tokens * inputs) : NULL;
    float *z = random_array(x ? (z_rows + 1) * 4 * padded(m) : tokens * 4 * m);
    struct lstm l = {.kind = kind, .steps = steps, .batch = batch, .inputs = inputs, .cells = m, .outputs = d,
                     .z_rows = z_rows, .sizes = sizes,
                     .cell_clip = 0.5f, .output_clip = pick(2) ? 0.5f : INFINITY,
                     .input = weights[0], .hidden = weights[1], .projection = weights[2],
                     .input_scales = random_array(4 * padded(m)), .hidden_scales = random_array(4 * padded(m)),
                     .projection_scales = random_array(d), .first_h = random_array(batch * d),
                     .first_c = random_array(batch * m), .x = x, .z = z, .bias = random_array(4 * m),
                     .d_output = random_array(tokens * d),
                     .output = random_array(tokens * d), .gates = save ? z : NULL, .memory = random_array(tokens * m),
                     .raw = random_array((save ? tokens : batch) * m), .last_h = random_array(batch * d),
                     .last_c = random_array(batch * m), .d_z = random_array(tokens * 4 * m),
                     .d_given = random_array(tokens * d), .recurred = random_array(tokens * d)};
    l.scratch = kind == FP32 ? NULL : malloc((size_t)polyseme_lstm_scratch_size(&l));
    polyseme_lstm_forward(&l);
    if (x && !save && inputs == d) {
        struct lstm two[] = {l, l};
        two[1].x = l.output, two[1].output = random_array(tokens * d);
        int64_t *numbers = malloc(8 * (size_t)tokens + 8);
        for (int64_t at = 0; at < tokens; at++)
            numbers[at] = pick(7);
        float *known = random_array(7 * inputs);
        struct stack stack = {two, 2, 1, tokens, 7, known, pick(2) ? numbers : NULL, x};
        if (!polyseme_read(&stack, 1, 2))
            abort();
        release((void *[]){numbers, known}, 2);
        free(two[1].output);
    }
    const int back = kind == BF16 ? BF16 : FP32;
    void *hidden = pack_random(back, 1, d, 4 * m, 1), *projection = pack_random(back, 1, m, d, 1);
    void *buffers[] = {sizes, x, z, (void *)l.input_scales, (void *)l.hidden_scales,
                       (void *)l.projection_scales, l.scratch, (void *)l.first_h, (void *)l.first_c, (void *)l.bias,
                       (void *)l.d_output, l.output, l.memory, l.raw, l.last_h, l.last_c, l.d_z, l.d_given, l.recurred,
                       hidden, projection};
    if (save) {
        l.kind = back, l.hidden = hidden, l.projection = l.projection ? projection : NULL;
        polyseme_lstm_backward(&l);
    }
    release(buffers, sizeof buffers / sizeof *buffers);
}

static void run_product(int kind, int64_t rows, int64_t n, int64_t k)
{
    float *a = random_array(rows * k);
    struct product q = {kind, pick(2), rows, k, n, a, pack_random(kind, 1, n, k, pick(2)), random_array(n),
                        make_scratch(kind, rows, k), random_array(rows * n)};
    if (!pick(9))
        a[pick((int)(rows * k))] = pick(2) ? INFINITY : NAN;
    polyseme_product(&q);
    polyseme_map(pick(2), a, a, rows * k);
    release((void *[]){a, (void *)q.weight, (void *)q.scales, q.scratch, q.out}, 5);
}

static void run_gradients(int kind, int64_t rows, int64_t size, int64_t words)
{
    const int64_t samples = 1 + pick((int)words), a_step = size + pick(3), b_step = words + pick(3);
    struct outer o = {kind, pick(2), rows, size, words, a_step, b_step, random_array(rows * a_step),
                      random_array(rows * b_step), malloc((size_t)polyseme_outer_scratch_size(words)),
                      random_array(size * words)};
    polyseme_outer(&o);
    int64_t *labels = malloc(8 * (size_t)rows);
    for (int64_t at = 0; at < rows; at++)
        labels[at] = pick((int)words);
    float *weight = random_array(words * size);
    void *packed = malloc((size_t)polyseme_packed_size(kind, 1, samples, size));
    void *transposed = malloc((size_t)polyseme_packed_size(kind, 1, size, samples));
    if (kind == BF16) {
        polyseme_pack_rounded(weight, 1, samples, size, size, 1, packed);
        polyseme_pack_rounded(weight, 1, size, samples, 1, size, transposed);
    } else {
        polyseme_pack(kind, weight, 1, samples, size, size, 1, packed);
        polyseme_pack(kind, weight, 1, size, samples, 1, size, transposed);
    }
    struct loss l = {.kind = kind, .rows = rows, .size = size, .samples = samples, .scale = 0.5f,
                     .outputs = random_array(rows * size), .weight = weight, .bias = random_array(words),
                     .labels = labels, .packed = packed, .transposed = transposed,
                     .scratch = malloc((size_t)polyseme_loss_scratch_size(rows, size, samples)),
                     .sums = random_array(rows), .margins = random_array(rows), .d_outputs = random_array(rows * size),
                     .d_weight = random_array(words * size), .d_bias = random_array(words)};
    polyseme_loss(&l);
    release((void *[]){(void *)o.a, (void *)o.b, o.scratch, o.out, labels, weight, packed, transposed, (void *)l.outputs,
                       (void *)l.bias, l.scratch, l.sums, l.margins, l.d_outputs, l.d_weight, l.d_bias}, 16);
}

static void run_dots(int kind, int64_t rows, int64_t width)
{
    uint16_t *halves = malloc(2 * (size_t)(rows * width));
    for (int64_t at = 0; at < rows * width; at++)
        halves[at] = (uint16_t)(pick(0x7c00) + 0x8000 * pick(2)); /* any finite value */
    uint8_t *keep = pick(2) ? malloc((size_t)rows) : NULL;
    for (int64_t at = 0; keep && at < rows; at++)
        keep[at] = (uint8_t)pick(2);
    struct dots q = {kind, rows, width, kind == FP32 ? (void *)random_array(rows * width) : halves,
                     random_array(width), random_array(rows), keep, 0.5f, random_array(rows),
                     random_array((rows + TOGETHER - 1) / TOGETHER)};
    polyseme_dots(&q);
    release((void *[]){kind == FP32 ? (void *)q.vectors : NULL, halves, keep, (void *)q.query, (void *)q.lengths,
                       q.scores, q.tops}, 7);
}

static void run_above(int kind, int64_t rows, int64_t width, int64_t queries)
{
    const int64_t n = padded(queries);
    uint16_t *halves = malloc(2 * (size_t)(rows * width));
    for (int64_t at = 0; at < rows * width; at++)
        halves[at] = (uint16_t)(pick(0x7c00) + 0x8000 * pick(2));
    uint8_t *keep = pick(2) ? malloc((size_t)rows) : NULL;
    for (int64_t at = 0; keep && at < rows; at++)
        keep[at] = (uint8_t)pick(2);
    float *least = random_array(n);
    for (int64_t at = 0; at < n; at++)
        least[at] = at >= queries ? INFINITY : pick(2) ? -INFINITY : least[at];
    struct above q = {.kind = kind, .rows = rows, .width = width, .queries = queries,
                      .vectors = kind == FP32 ? (void *)random_array(rows * width) : halves,
                      .packed = pack_random(FP32, 1, queries, width, 0), .offsets = random_array(n), .least = least,
                      .lengths = random_array(rows), .keep = keep,
                      .scratch = malloc((size_t)polyseme_above_scratch_size(queries, width)),
                      .indices = malloc(4 * (size_t)(rows * queries)), .scores = random_array(rows * queries)};
    polyseme_above(&q);
    release((void *[]){kind == FP32 ? (void *)q.vectors : NULL, halves, keep, least, (void *)q.packed,
                       (void *)q.offsets, (void *)q.lengths, q.scratch, q.indices, q.scores}, 10);
}

static void run_squares_and_totals(int kind, int64_t rows, int64_t width, int64_t words)
{
    uint16_t *halves = malloc(2 * (size_t)(rows * width));
    int32_t *indices = malloc(4 * (size_t)rows);
    for (int64_t at = 0; at < rows * width; at++)
        halves[at] = (uint16_t)(pick(0x7c00) + 0x8000 * pick(2));
    for (int64_t at = 0; at < rows; at++)
        indices[at] = (int32_t)pick((int)words);
    float *vectors = random_array(rows * width);
    struct squares q = {.kind = kind, .rows = rows, .width = width, .vectors = kind == FP32 ? (void *)vectors : halves,
                        .packed = pack_random(FP32, 1, width, width, 0), .centre = random_array(width),
                        .scratch = malloc((size_t)polyseme_squares_scratch_size(width)), .found = random_array(rows)};
    struct totals t = {kind, rows, width, q.vectors, indices, random_array(words * width)};
    polyseme_squares(&q);
    polyseme_totals(&t);
    release((void *[]){halves, indices, vectors, (void *)q.packed, (void *)q.centre, q.scratch, q.found, t.sums}, 8);
}

static void run_windows(int64_t words, int64_t characters, int64_t width, int64_t size)
{
    const int64_t columns = width + pick(12), step = size + pick(5);
    int64_t *chars = malloc(8 * (size_t)(words * columns)), *counts = malloc(8 * (size_t)words);
    for (int64_t at = 0; at < words * columns; at++)
        chars[at] = pick((int)characters);
    for (int64_t word = 0; word < words; word++)
        counts[word] = 1 + pick((int)(columns - width + 1));
    struct windows q = {words, columns, size, width, step, chars, counts, random_array(characters * width * size),
                        random_array((words - 1) * step + size), malloc(4 * (size_t)(words * size))};
    polyseme_windows(&q);
    q.counts = NULL;
    polyseme_windows_backward(&q);
    release((void *[]){chars, counts, q.parts, q.values, q.first}, 5);
}

static void run_filters(int64_t words, int64_t characters, int64_t panels)
{
    const int64_t size = panels * FILTERS, widest = 1 + pick(5), columns = widest + pick(12);
    int64_t *chars = malloc(8 * (size_t)(words * columns)), *lengths = malloc(8 * (size_t)words);
    int64_t *widths = malloc(8 * (size_t)(size / PANEL));
    for (int64_t at = 0; at < words * columns; at++)
        chars[at] = pick((int)characters);
    for (int64_t word = 0; word < words; word++)
        lengths[word] = pick((int)(columns - widest + 1));
    for (int64_t at = 0; at < size / PANEL; at++)
        widths[at] = 1 + pick((int)widest);
    struct filters f = {words, columns, size, characters, pick(2), chars, lengths, widths,
                        random_array(widest * characters * size), random_array(size), random_array(words * size)};
    polyseme_filter(&f, 1 + pick(3));
    release((void *[]){chars, lengths, widths, (void *)f.table, (void *)f.bias, f.out}, 6);
}

static void run_highways(int kind, int64_t rows, int64_t size, int64_t threads)
{
    struct highway h = {kind, rows, size, random_array(rows * size), pack_random(kind, 1, size, size, 0),
                        pack_random(kind, 1, size, size, 0), random_array(size), random_array(size),
                        random_array(size), random_array(size),
                        malloc((size_t)(threads * polyseme_highway_scratch_size(size))),
                        random_array(2 * HIGHWAY_ROWS * size), random_array(rows * size)};
    polyseme_highway(&h, threads);
    release((void *[]){(void *)h.x, (void *)h.transform, (void *)h.carry, (void *)h.transform_scales,
                       (void *)h.carry_scales, (void *)h.transform_bias, (void *)h.carry_bias, h.scratch, h.memory,
                       h.out}, 10);
}

static void run_updates(int kind, int64_t count, int64_t threads)
{
    struct weight *weights = malloc((size_t)count * sizeof *weights);
    for (int64_t at = 0; at < count; at++) {
        const int64_t values = at ? pick(100) : pick(2 * UPDATED + 9);
        weights[at] = (struct weight){values, random_array(values), random_array(values),
                                      kind == ADAMW ? random_array(values) : NULL, random_array(values), 0.1f, 0.9f, 0.5f};
        for (int64_t value = 0; value < values; value++)
            weights[at].second[value] *= weights[at].second[value];
    }
    struct update q = {kind, count, weights, 0.5f, 0.9f, 0.99f, 1e-8f, 0.1f};
    double *sums = malloc(8 * (size_t)polyseme_square_sum_count(&q));
    if (!(polyseme_square_sum(&q, threads, sums) >= 0.0))
        abort();
    polyseme_update(&q, threads);
    for (int64_t at = 0; at < count; at++)
        release((void *[]){(void *)weights[at].gradient, weights[at].values, weights[at].first, weights[at].second}, 4);
    release((void *[]){weights, sums}, 2);
}

static void run_drops(int64_t count, int64_t values, int64_t threads)
{
    struct drop *arrays = malloc((size_t)count * sizeof *arrays);
    for (int64_t at = 0; at < count; at++)
        arrays[at] = (struct drop){values, (uint32_t)rand(), (uint32_t)rand(), 1u << 30, 1.5f, random_array(values),
                                   malloc(4 * (size_t)values)};
    polyseme_drop(arrays, count, threads);
    for (int64_t at = 0; at < count; at++)
        release((void *[]){(void *)arrays[at].x, arrays[at].out}, 2);
    free(arrays);
}

/* fp32 rows or columns that are adjacent, packed as they are and rounded: panels in which no value may lie behind the
 * last one. */
static void run_packs(int64_t groups, int64_t n, int64_t k, int transposed)
{
    float *weight = random_array(groups * n * k);
    for (int kind = FP32; kind <= BF16; kind++) {
        void *to = malloc((size_t)polyseme_packed_size(kind, groups, n, k));
        if (kind == FP32)
            polyseme_pack(kind, weight, groups, n, k, transposed ? 1 : k, transposed ? n : 1, to);
        else
            polyseme_pack_rounded(weight, groups, n, k, transposed ? 1 : k, transposed ? n : 1, to);
        free(to);
    }
    free(weight);
}

/* The work of one of several threads: they share the weights and nothing else. */
static void *run_in_thread(void *weights)
{
    for (int run = 0; run < 20; run++)
        run_layer(run % 2 ? INT8 : FP32, run % 3 ? 7 : 0, 40, 12, (void **)weights + (run % 2 ? 3 : 0),
                  run % 6 == 0, 9, 5);
    return NULL;
}

static int run_threads(int count)
{
    pthread_t ids[16];
    void *weights[6];
    for (int at = 0; at < 6; at++)
        weights[at] = pack_random(at < 3 ? FP32 : INT8, at % 3 < 2 ? 4 : 1, at % 3 < 2 ? 40 : 12,
                                  at % 3 == 0 ? 7 : at % 3 == 1 ? 12 : 40, 0);
    for (int at = 0; at < count && at < 16; at++)
        pthread_create(ids + at, NULL, run_in_thread, weights);
    for (int at = 0; at < count && at < 16; at++)
        pthread_join(ids[at], NULL);
    release(weights, 6);
    return count;
}

int main(int argc, char **argv)
{
    const char *names[] = {"bf16", "vnni", "avx512", "avx2", "portable"};
    int runs = 0;
    if (argc > 1)
        runs = run_threads(atoi(argv[1]));
    for (size_t set = 0; set < sizeof names / sizeof *names && argc == 1; set++) {
        if (!polyseme_use(names[set]))
            continue;
        for (int run = 0; run < 150; run++, runs++) {
            const int64_t m = 1 + pick(90), project = pick(2), d = project ? 1 + pick(40) : m;
            const int kind = pick(3), save = kind != INT8 && pick(2);
            const int64_t inputs = pick(2) && !save ? 1 + pick(50) : 0;
            void *weights[] = {pack_random(kind, 4, m, inputs, 0), pack_random(kind, 4, m, d, 0),
                               project ? pack_random(kind, 1, d, m, 0) : NULL};
            run_layer(kind, inputs, m, d, weights, save, 1 + pick(run % 10 ? 30 : 220), pick(9));
            release(weights, 3);
            run_gradients(kind == BF16 ? BF16 : FP32, 1 + pick(700), 1 + pick(90), 1 + pick(300));
            run_windows(1 + pick(40), 1 + pick(30), 1 + pick(5), 1 + pick(150));
            run_filters(1 + pick(40), 1 + pick(30), 1 + pick(3));
            run_highways(kind, 1 + pick(100), PANEL * (1 + pick(5)), 1 + pick(3));
            run_drops(1 + pick(3), 1 + pick(300), 1 + pick(3));
            run_packs(1, 1 + pick(90), 1 + pick(300), pick(2));
            if (run % 5 == 0)
                run_updates(pick(2), 1 + pick(5), 1 + pick(3));
            run_product(kind, 1 + pick(220), 1 + pick(90), 1 + pick(600));
            run_dots(pick(2) ? FP32 : FP16, pick(600), 1 + pick(100));
            run_above(pick(2) ? FP32 : FP16, pick(600), 1 + pick(run % 10 ? 100 : 1500), 1 + pick(70));
            run_squares_and_totals(pick(2) ? FP32 : FP16, pick(600), 1 + pick(run % 10 ? 100 : 700), 1 + pick(70));
        }
    }
    printf("%d\n", runs);
}
