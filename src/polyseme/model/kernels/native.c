/* The time loop of an LSTM and its products, for CPUs; called by native.py.
 *
 *     kernels/lstm.py  ->  kernels/native.py  ->  native.c  ->  vector.h, product.h, lstm.h
 *
 * The three headers are compiled once for every instruction set; the best one that the machine has is chosen
 * when the first function is called. No threads, no allocation, no other state: callers bring the memory, and
 * any number of threads may call at once.
 */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#define PANEL 16  /* columns of a panel of packed weights, in every instruction set */
#define GROUP 4   /* panels worked on together: the four gates */
#define DEPTH 256 /* length of a piece of a sum: a panel's piece stays in the first cache */
#define CHUNK 192 /* rows for which a panel is read once */
#define HIGH 24   /* rows of a tile of gates */
#define AHEAD 32  /* how far a single panel is fetched ahead */

/* A layer of one direction. All matrices are row-major and without gaps; B sentences, N packed tokens, M cells,
 * D outputs. Packed means laid out by polyseme_pack. No clip is written as infinity.
 *
 *             forward                                    backward
 * hidden      packed (4 * M, D), its gates in groups     packed transpose (D, 4M)
 * projection  packed (D, M), or NULL                     packed transpose (M, D), or NULL
 * z           in   (N, 4M) the gates' share of the input -; may be where `gates` is
 * bias        in   (4M), or NULL                         -
 * output      out  (N, D)                                in, as forward left it
 * gates       out  (N, 4M), or NULL: nothing is saved    in, as forward left it
 * memory      out  (N, M); unused if nothing is saved    in, as forward left it
 * raw         out  (N, M); (B, M) if nothing is saved;   -
 *             unused without projection
 * last_h, _c  out  (B, D), (B, M) the last state         in: its gradient, out: the first state's
 * d_output    -                                          in   (N, D)
 * d_z         -                                          out  (N, 4M)
 * d_given     -                                          out  (N, D) gradient of the unclipped outputs
 * recurred    -                                          out  (N, D) what recurred into each step
 */
struct lstm {
    int64_t steps, batch, cells, outputs;
    const int64_t *sizes; /* sentences that still run at each step, falling; at most `batch` */
    float cell_clip, output_clip;
    const float *hidden, *projection, *first_h, *first_c, *z, *bias, *d_output;
    float *output, *gates, *memory, *raw, *last_h, *last_c, *d_z, *d_given, *recurred;
};

/* Sentences from n to `running` ended with the step before: what they gave and hold is their last state. */
static void keep_ended(const struct lstm *l, int64_t n, int64_t running, const float *h, const float *c)
{
    const int64_t m = l->cells, d = l->outputs;
    memcpy(l->last_h + n * d, h + n * d, 4 * (size_t)((running - n) * d));
    if (c != l->last_c)
        memcpy(l->last_c + n * m, c + n * m, 4 * (size_t)((running - n) * m));
}

struct kernels {
    const char *name;
    void (*map)(int, const float *, float *, int64_t);
    void (*product)(const float *, int64_t, int64_t, const float *, int64_t, float *);
    void (*forward)(const struct lstm *);
    void (*backward)(const struct lstm *);
};

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, ISA)
#define KERNELS(name) {name, NAME(map), NAME(product), NAME(forward), NAME(backward)}

/* ROWS is the height of a tile, ALONE the height from which one panel keeps the machine busy, STRIPS how many
 * panels a tile of each height takes: at least 8 sums under way, and all of them in registers. */
#if defined(__x86_64__)

#define ISA avx512
#define BYTES 64
#define ROWS 6
#define ALONE 7
#define STRIPS STRIP(1, 4) STRIP(2, 4) STRIP(3, 4) STRIP(4, 4) STRIP(5, 4) STRIP(6, 4)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512")
#endif
#include "vector.h"
#include "product.h"
#include "lstm.h"
static const struct kernels avx512 = KERNELS("avx512");
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef ISA
#undef BYTES
#undef ROWS
#undef ALONE
#undef STRIPS

#define ISA avx2
#define BYTES 32
#define ROWS 6
#define ALONE 4
#define STRIPS STRIP(1, 4) STRIP(2, 2) STRIP(3, 2) STRIP(4, 1) STRIP(5, 1) STRIP(6, 1)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#include "vector.h"
#include "product.h"
#include "lstm.h"
static const struct kernels avx2 = KERNELS("avx2");
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef ISA
#undef BYTES
#undef ROWS
#undef ALONE
#undef STRIPS

#endif

#define ISA portable
#define BYTES 16
#if defined(__aarch64__)
#define ROWS 6
#define ALONE 2
#define STRIPS STRIP(1, 4) STRIP(2, 1) STRIP(3, 1) STRIP(4, 1) STRIP(5, 1) STRIP(6, 1)
#else
#define ROWS 3
#define ALONE 2
#define STRIPS STRIP(1, 2) STRIP(2, 1) STRIP(3, 1)
#endif
#include "vector.h"
#include "product.h"
#include "lstm.h"
static const struct kernels portable = KERNELS("portable");

static const struct kernels *chosen; /* written once, always with the same value, unless a test forces another */

static const struct kernels *named(const char *name)
{
    if (!strcmp(name, "portable"))
        return &portable;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!strcmp(name, "avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
    if (!strcmp(name, "avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return &avx512;
#endif
    return NULL;
}

static const struct kernels *best(void)
{
    const struct kernels *found = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
    const char *const names[] = {"avx512", "avx2", "portable"};
    for (int at = 0; !found; at++)
        found = named(names[at]);
    __atomic_store_n(&chosen, found, __ATOMIC_RELEASE);
    return found;
}

/* Changes with struct lstm and the functions below, so that an old library is not taken for this one. */
int polyseme_interface(void) { return 1; }

/* The instruction set in use. */
const char *polyseme_instruction_set(void) { return best()->name; }

/* Use the instruction set of that name from now on: 1, or 0 if the machine does not have it. */
int polyseme_use(const char *name)
{
    const struct kernels *wanted = named(name);
    if (wanted)
        __atomic_store_n(&chosen, wanted, __ATOMIC_RELEASE);
    return wanted != NULL;
}

/* Floats that polyseme_pack writes. */
int64_t polyseme_packed_size(int64_t groups, int64_t n, int64_t k)
{
    return groups * ((n + PANEL - 1) / PANEL) * PANEL * k;
}

/* Pack a weight of groups * n results by k: element (g, row, column) stands at g * n * row_step + row * row_step
 * + column * column_step. Panels go by columns first, then by groups: the four gates of a cell stand together. */
void polyseme_pack(const float *weight, int64_t groups, int64_t n, int64_t k, int64_t row_step,
                   int64_t column_step, float *packed)
{
    for (int64_t from = 0; from < n; from += PANEL) {
        const int64_t width = n - from < PANEL ? n - from : PANEL;
        for (int64_t g = 0; g < groups; g++, packed += k * PANEL) {
            const float *rows = weight + (g * n + from) * row_step;
            for (int64_t top = 0; top < k; top += PANEL) {
                const int64_t end = k < top + PANEL ? k : top + PANEL;
                if (width < PANEL)
                    memset(packed + top * PANEL, 0, 4 * (size_t)((end - top) * PANEL));
                if (row_step == 1) {
                    for (int64_t at = top; at < end; at++)
                        memcpy(packed + at * PANEL, rows + at * column_step, 4 * (size_t)width);
                    continue;
                }
                for (int64_t r = 0; r < width; r++)
                    for (int64_t at = top; at < end; at++)
                        packed[at * PANEL + r] = rows[r * row_step + at * column_step];
            }
        }
    }
}

/* out (rows, n) += a (rows, k) * packed weight (n, k)^T. */
void polyseme_product(const float *a, int64_t rows, int64_t k, const float *packed, int64_t n, float *out)
{
    best()->product(a, rows, k, packed, n, out);
}

/* y = sigmoid(x), or tanh(x) if `function` is 1. */
void polyseme_map(int function, const float *x, float *y, int64_t count) { best()->map(function, x, y, count); }

void polyseme_lstm_forward(const struct lstm *l) { best()->forward(l); }

void polyseme_lstm_backward(const struct lstm *l) { best()->backward(l); }
