/* Random shapes through every function of native.c, each buffer as long as it must be, no longer: for the
 * sanitizers. Prints the number of runs. With an argument, that many threads run at once, on the same weights. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "native.c"

static int below(int n) { return rand() % n; }

static float *filled(int64_t count)
{
    float *x = malloc(4 * (size_t)count);
    for (int64_t at = 0; at < count; at++)
        x[at] = (float)below(2001) / 1000.0f - 1.0f;
    return x;
}

/* A weight of `kind` with any finite values, packed. */
static void *packed(int kind, int64_t groups, int64_t n, int64_t k, int turned)
{
    const size_t count = (size_t)(groups * n * k);
    void *to = malloc((size_t)polyseme_packed_size(kind, groups, n, k)), *weight = filled((int64_t)count);
    if (kind == INT8)
        for (size_t at = 0; at < count; at++)
            ((int8_t *)weight)[at] = (int8_t)(below(255) - 127);
    if (kind == BF16)
        for (size_t at = 0; at < count; at++)
            ((uint16_t *)weight)[at] = (uint16_t)(0x3d00 + below(0x100) + 0x8000 * below(2));
    weight = realloc(weight, count * (kind == FP32 ? 4 : kind == BF16 ? 2 : 1));
    polyseme_pack(kind, weight, groups, n, k, turned ? 1 : k, turned ? n : 1, to);
    free(weight);
    return to;
}

static void *scratch(int kind, int64_t rows, int64_t k)
{
    return kind == FP32 ? NULL : malloc((size_t)polyseme_scratch_size(rows, k));
}

static void release(void **all, int count)
{
    for (int at = 0; at < count; at++)
        free(all[at]);
}

/* A layer forward, of x if `inputs`, else of z; saved, and then backward, if `save`. `weights` are those of input,
 * hidden and projection, which may be NULL. */
static void layer(int kind, int64_t inputs, int64_t m, int64_t d, void *const *weights, int save, int64_t batch,
                  int64_t steps)
{
    int64_t *sizes = malloc(8 * (size_t)steps + 8), tokens = 0, n = batch - below(2);
    for (int64_t t = 0; t < steps; t++, n -= n > 1 ? below(3) % n : 0)
        tokens += sizes[t] = n < 1 ? 1 : n;
    const int64_t z_rows = batch + below(40);
    float *x = inputs ? filled(tokens * inputs) : NULL, *z = filled(x ? z_rows * 4 * padded(m) : tokens * 4 * m);
    struct lstm l = {.kind = kind, .steps = steps, .batch = batch, .inputs = inputs, .cells = m, .outputs = d,
                     .z_rows = z_rows, .sizes = sizes,
                     .cell_clip = 0.5f, .output_clip = below(2) ? 0.5f : INFINITY,
                     .input = weights[0], .hidden = weights[1], .projection = weights[2],
                     .input_scales = filled(4 * padded(m)), .hidden_scales = filled(4 * padded(m)),
                     .projection_scales = filled(d), .first_h = filled(batch * d),
                     .first_c = filled(batch * m), .x = x, .z = z, .bias = filled(4 * m),
                     .d_output = filled(tokens * d),
                     .output = filled(tokens * d), .gates = save ? z : NULL, .memory = filled(tokens * m),
                     .raw = filled((save ? tokens : batch) * m), .last_h = filled(batch * d),
                     .last_c = filled(batch * m), .d_z = filled(tokens * 4 * m), .d_given = filled(tokens * d),
                     .recurred = filled(tokens * d)};
    l.scratch = kind == FP32 ? NULL : malloc((size_t)polyseme_lstm_scratch_size(&l));
    polyseme_lstm_forward(&l);
    if (x && !save && inputs == d) {
        struct lstm two[] = {l, l};
        two[1].x = l.output, two[1].output = filled(tokens * d);
        polyseme_lstm_read(two, 2, 1);
        free(two[1].output);
    }
    const int back = kind == BF16 ? BF16 : FP32;
    void *hidden = packed(back, 1, d, 4 * m, 1), *projection = packed(back, 1, m, d, 1);
    void *all[] = {sizes, x, z, (void *)l.input_scales, (void *)l.hidden_scales,
                   (void *)l.projection_scales, l.scratch, (void *)l.first_h, (void *)l.first_c, (void *)l.bias,
                   (void *)l.d_output, l.output, l.memory, l.raw, l.last_h, l.last_c, l.d_z, l.d_given, l.recurred,
                   hidden, projection};
    if (save) {
        l.kind = back, l.hidden = hidden, l.projection = l.projection ? projection : NULL;
        polyseme_lstm_backward(&l);
    }
    release(all, sizeof all / sizeof *all);
}

static void product(int kind, int64_t rows, int64_t n, int64_t k)
{
    float *a = filled(rows * k);
    struct product q = {kind, below(2), rows, k, n, a, packed(kind, 1, n, k, below(2)), filled(n), scratch(kind, rows, k),
                        filled(rows * n)};
    if (!below(9))
        a[below((int)(rows * k))] = below(2) ? INFINITY : NAN;
    polyseme_product(&q);
    polyseme_map(below(2), a, a, rows * k);
    release((void *[]){a, (void *)q.weight, (void *)q.scales, q.scratch, q.out}, 5);
}

static void dots(int kind, int64_t rows, int64_t width)
{
    uint16_t *halves = malloc(2 * (size_t)(rows * width));
    for (int64_t at = 0; at < rows * width; at++)
        halves[at] = (uint16_t)(below(0x7c00) + 0x8000 * below(2)); /* all that is finite */
    uint8_t *keep = below(2) ? malloc((size_t)rows) : NULL;
    for (int64_t at = 0; keep && at < rows; at++)
        keep[at] = (uint8_t)below(2);
    struct dots q = {kind, rows, width, kind == FP32 ? (void *)filled(rows * width) : halves, filled(width),
                     filled(rows), keep, 0.5f, filled(rows), filled((rows + TOGETHER - 1) / TOGETHER)};
    polyseme_dots(&q);
    release((void *[]){kind == FP32 ? (void *)q.vectors : NULL, halves, keep, (void *)q.query, (void *)q.lengths,
                       q.scores, q.tops}, 7);
}

static void above(int kind, int64_t rows, int64_t width, int64_t queries)
{
    const int64_t n = padded(queries);
    uint16_t *halves = malloc(2 * (size_t)(rows * width));
    for (int64_t at = 0; at < rows * width; at++)
        halves[at] = (uint16_t)(below(0x7c00) + 0x8000 * below(2));
    uint8_t *keep = below(2) ? malloc((size_t)rows) : NULL;
    for (int64_t at = 0; keep && at < rows; at++)
        keep[at] = (uint8_t)below(2);
    float *least = filled(n);
    for (int64_t at = 0; at < n; at++)
        least[at] = at >= queries ? INFINITY : below(2) ? -INFINITY : least[at];
    struct above q = {.kind = kind, .rows = rows, .width = width, .queries = queries,
                      .vectors = kind == FP32 ? (void *)filled(rows * width) : halves,
                      .packed = packed(FP32, 1, queries, width, 0), .offsets = filled(n), .least = least,
                      .lengths = filled(rows), .keep = keep,
                      .scratch = malloc((size_t)polyseme_above_scratch_size(queries, width)),
                      .indices = malloc(4 * (size_t)(rows * queries)), .scores = filled(rows * queries)};
    polyseme_above(&q);
    release((void *[]){kind == FP32 ? (void *)q.vectors : NULL, halves, keep, least, (void *)q.packed,
                       (void *)q.offsets, (void *)q.lengths, q.scratch, q.indices, q.scores}, 10);
}

static void squares_and_totals(int kind, int64_t rows, int64_t width, int64_t words)
{
    uint16_t *halves = malloc(2 * (size_t)(rows * width));
    int32_t *indices = malloc(4 * (size_t)rows);
    for (int64_t at = 0; at < rows * width; at++)
        halves[at] = (uint16_t)(below(0x7c00) + 0x8000 * below(2));
    for (int64_t at = 0; at < rows; at++)
        indices[at] = (int32_t)below((int)words);
    float *vectors = filled(rows * width);
    struct squares q = {.kind = kind, .rows = rows, .width = width, .vectors = kind == FP32 ? (void *)vectors : halves,
                        .packed = packed(FP32, 1, width, width, 0), .centre = filled(width),
                        .scratch = malloc((size_t)polyseme_squares_scratch_size(width)), .found = filled(rows)};
    struct totals t = {kind, rows, width, q.vectors, indices, filled(words * width)};
    polyseme_squares(&q);
    polyseme_totals(&t);
    release((void *[]){halves, indices, vectors, (void *)q.packed, (void *)q.centre, q.scratch, q.found, t.sums}, 8);
}

/* What one of several threads does: weights are shared, all else is its own. */
static void *in_a_thread(void *weights)
{
    for (int run = 0; run < 20; run++)
        layer(run % 2 ? INT8 : FP32, run % 3 ? 7 : 0, 40, 12, (void **)weights + (run % 2 ? 3 : 0),
              run % 6 == 0, 9, 5);
    return NULL;
}

static int threads(int count)
{
    pthread_t all[16];
    void *weights[6];
    for (int at = 0; at < 6; at++)
        weights[at] = packed(at < 3 ? FP32 : INT8, at % 3 < 2 ? 4 : 1, at % 3 < 2 ? 40 : 12,
                             at % 3 == 0 ? 7 : at % 3 == 1 ? 12 : 40, 0);
    for (int at = 0; at < count && at < 16; at++)
        pthread_create(all + at, NULL, in_a_thread, weights);
    for (int at = 0; at < count && at < 16; at++)
        pthread_join(all[at], NULL);
    release(weights, 6);
    return count;
}

int main(int count, char **arguments)
{
    const char *names[] = {"bf16", "vnni", "avx512", "avx2", "portable"};
    int runs = 0;
    if (count > 1)
        runs = threads(atoi(arguments[1]));
    for (int which = 0; which < 4 && count == 1; which++) {
        if (!polyseme_use(names[which]))
            continue;
        for (int run = 0; run < 150; run++, runs++) {
            const int64_t m = 1 + below(90), project = below(2), d = project ? 1 + below(40) : m;
            const int kind = below(3), save = kind == FP32 && below(2);
            const int64_t inputs = below(2) && !save ? 1 + below(50) : 0;
            void *weights[] = {packed(kind, 4, m, inputs, 0), packed(kind, 4, m, d, 0),
                               project ? packed(kind, 1, d, m, 0) : NULL};
            layer(kind, inputs, m, d, weights, save, 1 + below(run % 10 ? 30 : 220), below(9));
            release(weights, 3);
            product(kind, 1 + below(220), 1 + below(90), 1 + below(600));
            dots(below(2) ? FP32 : FP16, below(600), 1 + below(100));
            above(below(2) ? FP32 : FP16, below(600), 1 + below(run % 10 ? 100 : 1500), 1 + below(70));
            squares_and_totals(below(2) ? FP32 : FP16, below(600), 1 + below(run % 10 ? 100 : 700), 1 + below(70));
        }
    }
    printf("%d\n", runs);
}
