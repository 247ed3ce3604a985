/* Random shapes through every function of native.c, each buffer as long as it must be and no longer: for the
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

static float *packed(const float *weight, int64_t groups, int64_t n, int64_t k, int turned)
{
    float *to = malloc(4 * (size_t)polyseme_packed_size(groups, n, k));
    polyseme_pack(weight, groups, n, k, turned ? 1 : k, turned ? n : 1, to);
    return to;
}

static void release(float **all, int count)
{
    for (int at = 0; at < count; at++)
        free(all[at]);
}

static void layer(int64_t m, int64_t d, int project, int save, int64_t batch, int64_t steps)
{
    int64_t *sizes = malloc(8 * (size_t)steps + 8), tokens = 0, n = batch - below(2);
    for (int64_t t = 0; t < steps; t++, n -= n > 1 ? below(3) % n : 0)
        tokens += sizes[t] = n < 1 ? 1 : n;
    float *hidden = filled(4 * m * d), *projection = filled(m * d), *z = filled(tokens * 4 * m);
    float *f[] = {packed(hidden, 4, m, d, 0),
                  packed(projection, 1, d, m, 0),
                  packed(hidden, 1, d, 4 * m, 1),
                  packed(projection, 1, m, d, 1),
                  filled(batch * d),
                  filled(batch * m),
                  filled(4 * m),
                  filled(tokens * d),
                  filled(tokens * d),
                  filled(tokens * m),
                  filled((save ? tokens : batch) * m),
                  filled(batch * d),
                  filled(batch * m),
                  filled(tokens * 4 * m),
                  filled(tokens * d),
                  filled(tokens * d),
                  hidden,
                  projection,
                  z};
    struct lstm l = {steps, batch, m,    d,    sizes, 0.5f, below(2) ? 0.5f : INFINITY, f[0], project ? f[1] : NULL,
                     f[4],  f[5],  z,    f[6], f[7],  f[8], save ? z : NULL, f[9], f[10], f[11],
                     f[12], f[13], f[14], f[15]};
    polyseme_lstm_forward(&l);
    if (save) {
        l.hidden = f[2], l.projection = project ? f[3] : NULL;
        polyseme_lstm_backward(&l);
    }
    release(f, sizeof f / sizeof *f);
    free(sizes);
}

static void product(int64_t rows, int64_t n, int64_t k)
{
    float *weight = filled(n * k), *a = filled(rows * k), *out = filled(rows * n), *b = packed(weight, 1, n, k, 0);
    polyseme_product(a, rows, k, b, n, out);
    polyseme_map(below(2), a, a, rows * k);
    release((float *[]){weight, a, out, b}, 4);
}

int main(void)
{
    const char *names[] = {"avx512", "avx2", "portable"};
    int runs = 0;
    for (int which = 0; which < 3; which++) {
        if (!polyseme_use(names[which]))
            continue;
        for (int run = 0; run < 150; run++, runs++) {
            const int64_t m = 1 + below(90), project = below(2), d = project ? 1 + below(40) : m;
            layer(m, d, (int)project, below(2), 1 + below(run % 10 ? 30 : 220), below(9));
            product(1 + below(220), 1 + below(90), 1 + below(600));
        }
    }
    printf("%d\n", runs);
}
