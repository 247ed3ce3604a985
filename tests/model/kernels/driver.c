/* Random shapes through every function of native.c, each buffer as long as it must be, no longer: for the
 * sanitizers. Prints the number of runs. */

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
    return kind == INT8 ? malloc((size_t)polyseme_scratch_size(rows, k)) : NULL;
}

static void release(void **all, int count)
{
    for (int at = 0; at < count; at++)
        free(all[at]);
}

static void layer(int kind, int64_t m, int64_t d, int project, int save, int64_t batch, int64_t steps)
{
    int64_t *sizes = malloc(8 * (size_t)steps + 8), tokens = 0, n = batch - below(2);
    for (int64_t t = 0; t < steps; t++, n -= n > 1 ? below(3) % n : 0)
        tokens += sizes[t] = n < 1 ? 1 : n;
    float *z = filled(tokens * 4 * m);
    struct lstm l = {.kind = kind, .steps = steps, .batch = batch, .cells = m, .outputs = d, .sizes = sizes,
                     .cell_clip = 0.5f, .output_clip = below(2) ? 0.5f : INFINITY,
                     .hidden = packed(kind, 4, m, d, 0), .projection = project ? packed(kind, 1, d, m, 0) : NULL,
                     .hidden_scales = filled(4 * m), .projection_scales = filled(d),
                     .scratch = scratch(kind, batch, d > m ? d : m), .first_h = filled(batch * d),
                     .first_c = filled(batch * m), .z = z, .bias = filled(4 * m), .d_output = filled(tokens * d),
                     .output = filled(tokens * d), .gates = save ? z : NULL, .memory = filled(tokens * m),
                     .raw = filled((save ? tokens : batch) * m), .last_h = filled(batch * d),
                     .last_c = filled(batch * m), .d_z = filled(tokens * 4 * m), .d_given = filled(tokens * d),
                     .recurred = filled(tokens * d)};
    polyseme_lstm_forward(&l);
    void *hidden = packed(FP32, 1, d, 4 * m, 1), *projection = packed(FP32, 1, m, d, 1);
    void *all[] = {sizes, z, (void *)l.hidden, (void *)l.projection, (void *)l.hidden_scales,
                   (void *)l.projection_scales, l.scratch, (void *)l.first_h, (void *)l.first_c, (void *)l.bias,
                   (void *)l.d_output, l.output, l.memory, l.raw, l.last_h, l.last_c, l.d_z, l.d_given, l.recurred,
                   hidden, projection};
    if (save) {
        l.hidden = hidden, l.projection = project ? projection : NULL;
        polyseme_lstm_backward(&l);
    }
    release(all, sizeof all / sizeof *all);
}

static void product(int kind, int64_t rows, int64_t n, int64_t k)
{
    float *a = filled(rows * k);
    struct product q = {kind, rows, k, n, a, packed(kind, 1, n, k, below(2)), filled(n), scratch(kind, rows, k),
                        filled(rows * n)};
    if (!below(9))
        a[below((int)(rows * k))] = below(2) ? INFINITY : NAN;
    polyseme_product(&q);
    polyseme_map(below(2), a, a, rows * k);
    release((void *[]){a, (void *)q.weight, (void *)q.scales, q.scratch, q.out}, 5);
}

int main(void)
{
    const char *names[] = {"vnni", "avx512", "avx2", "portable"};
    int runs = 0;
    for (int which = 0; which < 4; which++) {
        if (!polyseme_use(names[which]))
            continue;
        for (int run = 0; run < 150; run++, runs++) {
            const int64_t m = 1 + below(90), project = below(2), d = project ? 1 + below(40) : m;
            const int kind = below(3), save = kind == FP32 && below(2);
            layer(kind, m, d, (int)project, save, 1 + below(run % 10 ? 30 : 220), below(9));
            product(kind, 1 + below(220), 1 + below(90), 1 + below(600));
        }
    }
    printf("%d\n", runs);
}
