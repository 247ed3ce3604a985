/* The time loop of an LSTM and its products, and the products of exact search, for CPUs; called by native.py.
 *
 *     lstm.py, dots.py  ->  native.py  ->  native.c  ->  stored.h, isa.h  ->  vector.h, int8.h, product.h, lstm.h, read.h, unpack.h, pack.h,
 *     gradients.py, loss.py, updates.py, dropout.py                   encode.h, windows.h, gradients.h, loss.h, updates.h,
 *                                                                     dropout.h, dots.h
 *
 * isa.h is compiled once for every instruction set; the best one that the CPU supports is selected by the first
 * call. No allocation: callers provide the memory, and any number of threads may call at once. The only other state are
 * the threads of workers.h.
 */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef HAS /* a test with EMULATED defines it, and emulates AVX-512 */
#define HAS(feature) __builtin_cpu_supports(feature)
#endif
#define INLINE inline __attribute__((always_inline))
#define PANEL 16  /* columns of a panel of packed weights, in every instruction set */
#define GROUP 4   /* panels that are computed together: the four gates */
#define DEPTH 256 /* values of a partial sum: that part of a panel fits the L1 cache */
#define CHUNK 192 /* rows that share one read of a panel */
#define FILTERS 64 /* filters computed together at most, in every instruction set */
#define HIGHWAY_ROWS 48 /* rows of a highway whose products stay in the L2 cache */
#define HIGH 24   /* rows of a tile of gates */
#define AHEAD 32  /* prefetch distance of a single panel */
#define FETCHED 4096 /* prefetch distance of stored vectors in bytes: the hardware prefetcher stops at page ends */
#define SCORES (3 << 19) /* scores of a softmax that are in memory at once, unless the vocabulary is large */
#define TOGETHER 256 /* stored vectors per maximum */

/* Kinds of packed weights, with 1, 2 and 4 weights in a word of 4 bytes; stored vectors are FP32 or FP16. PAIRS are the
 * words of BF16 where the machine multiplies two bf16 at once (DOT_BF16): rows are rounded to bf16, too. */
enum { FP32, BF16, INT8, FP16, PAIRS };

/* Bytes of a panel of weights for k values of a row; for FP32, BF16 and PAIRS also of the first k values of a longer row, if k is
 * even. A panel of INT8 ends with a word for each column: -128 times the sum of its weights. */
static INLINE int64_t panel_bytes(int kind, int64_t k)
{
    return 4 * PANEL * (kind == FP32 || kind == PAIRS ? k : kind == BF16 ? (k + 1) / 2 : (k + 3) / 4 + 1);
}

/* Bytes of a quantised row: its scale, 4 bytes of nothing, and 2 bytes a value for up to four values more. A row
 * rounded to bf16 needs less. */
static INLINE int64_t row_bytes(int64_t k) { return 8 + (k + 3) / 4 * 8; }

/* out (rows, n) += a (rows, k) * weight (n, k)^T, the weight packed; with `fresh`, out is = instead. For int8 only:
 * scales (n) of the weight's rows; for int8 and bf16: scratch of polyseme_scratch_size(rows, k) bytes. */
struct product {
    int64_t kind, fresh, rows, k, n;
    const float *a;
    const void *weight;
    const float *scales;
    char *scratch;
    float *out;
};

/* out (m, n) += a (tokens, m)^T * b (tokens, n), or = if `fresh`: the gradient of a weight. `a_step` and `b_step` are the
 * values from one token to the next; scratch has polyseme_outer_scratch_size(n) bytes. */
struct outer {
    int64_t kind, fresh, tokens, m, n, a_step, b_step;
    const float *a, *b;
    char *scratch;
    float *out;
};

/* The loss of `rows` targets, each log(e^label + sum of e^score over the samples) - label, and the gradients of `scale`
 * times their sum. Of the words, the first `samples` are the ones that every target is compared with; a target that is
 * one of them is left out. D outputs, S samples, U words.
 *
 * outputs in (rows, D)   weight in (U, D)   bias in (U)   labels in (rows) the word of each target
 * packed  in weight (S, D), packed          transposed  in its transpose (D, S), packed; both of `kind`, FP32 or BF16
 * sums, margins  out (rows): the loss is log(sum) + margin
 * d_outputs      out (rows, D)     d_weight, d_bias  in/out (U, D), (U): gradients are added
 * scratch polyseme_loss_scratch_size bytes */
struct loss {
    int64_t kind, rows, size, samples;
    float scale;
    const float *outputs, *weight, *bias;
    const int64_t *labels;
    const void *packed, *transposed;
    char *scratch;
    float *sums, *margins, *d_outputs, *d_weight, *d_bias;
};

/* Targets whose scores are in memory at once. */
static INLINE int64_t loss_rows(int64_t rows, int64_t samples)
{
    const int64_t fitting = SCORES / samples, most = fitting < HIGH ? HIGH : fitting > CHUNK ? CHUNK : fitting;
    return rows < most ? rows : most;
}

/* A layer of one direction. All matrices are row-major and without gaps; B sentences, N packed tokens, M cells,
 * D outputs, I inputs, Z rows of z at a time. Packed means: by polyseme_pack. Without a clip it is infinity.
 * Forward, the input's share of the gates is passed as z, or computed here from x, for some time steps at once.
 *
 *             forward                                    backward
 * kind        of the weights                             FP32 or BF16
 * input       packed (4 * M, I), its gates in groups     -
 * hidden      packed (4 * M, D), its gates in groups     packed transpose (D, 4M)
 * projection  packed (D, M), or NULL                     packed transpose (M, D), or NULL
 * …_scales    in   of INT8, as wide as the packed weight -
 * scratch     of INT8 and BF16, polyseme_lstm_scratch_size bytes
 * x           in   (N, I), or NULL                       -
 * z           with x: memory (Z + 1, 4 * M'), M' = M up   -; may be the same as `gates`
 *             to the next whole panel; without: in (N, 4M)
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
    int64_t kind, steps, batch, inputs, cells, outputs, z_rows; /* z_rows: Z, at least `batch` */
    const int64_t *sizes; /* sentences still running at each step, falling; at most `batch` */
    float cell_clip, output_clip, forget; /* `forget` is added to the bias of the second gate */
    const void *input, *hidden, *projection;
    const float *input_scales, *hidden_scales, *projection_scales;
    char *scratch;
    const float *first_h, *first_c, *x, *bias, *d_output;
    float *z, *output, *gates, *memory, *raw, *last_h, *last_c, *d_z, *d_given, *recurred;
};

/* A stack of layers for inference, each with the output of the one before as its x; with `residual`, from the second
 * layer on, x is added to the output when all of it is there. With `numbers`, the x of the first layer, (tokens, inputs),
 * is filled here: row by row from `vectors` (known, inputs). */
struct stack {
    const struct lstm *layers;
    int64_t count, residual, tokens, known;
    const float *vectors;
    const int64_t *numbers;
    float *x;
};

/* One direction of a packed batch to an array for each sentence: out[sentence] is (layers, tokens, 2 * width), or
 * (tokens, 2 * width) with weights; this direction fills its half of the last axis. <S> and </S> are left out. */
struct unpack {
    int64_t steps, layers, width, direction; /* direction 0 reads forward, 1 backward */
    int64_t alone; /* the only layer of a mix if its weight is 1, else -1 */
    const int64_t *sizes, *order, *lengths; /* of each step; sentences by falling length; their tokens incl. <S>, </S> */
    const float *const *sources; /* for each layer (N, width) */
    const float *weights; /* of each layer, or NULL for all of them */
    float *const *out;
};

/* The filters of words over their characters: out (words, size) = the strongest of the first lengths[word] + 1 windows of
 * each filter, plus bias, and 0 instead of less with `relu`. A part of a filter is at row (position in the filter) *
 * characters + character of the table; `widths` of each PANEL filters are the positions that count. */
struct filters {
    int64_t words, columns, size, characters, relu; /* size: filters, a multiple of FILTERS */
    const int64_t *chars, *lengths, *widths; /* chars (words, columns): window + width <= columns for every window */
    const float *table, *bias;
    float *out;
};

/* Filters of one width over words in training: the strongest of the first counts[word] windows of each filter, and its
 * number. parts (characters, width, size) is what each character adds to each filter at each position of it. Backward,
 * the gradient of a value is added to the parts of its window.
 *
 *             forward                        backward
 * chars       in   (words, columns): window + width <= columns for every window
 * counts      in   (words)                   -
 * parts       in   (characters, width, size) in/out, the gradient
 * values      out  (words, size)             in, the gradient; rows are `step` apart
 * first       out  (words, size)             in, as forward left it */
struct windows {
    int64_t words, columns, size, width, step;
    const int64_t *chars, *counts;
    float *parts, *values;
    int32_t *first;
};

/* A highway: out (rows, size) = g * relu(transform x) + (1 - g) * x with g = sigmoid(carry x). size is a multiple of
 * PANEL; the weights are packed. memory: 2 * HIGHWAY_ROWS * size; scratch: for each thread, of INT8 and BF16. */
struct highway {
    int64_t kind, rows, size;
    const float *x;
    const void *transform, *carry;
    const float *transform_scales, *carry_scales, *transform_bias, *carry_bias;
    char *scratch;
    float *memory, *out;
};

/* The gradient of a table (rows, width) from that of the rows that were looked up: out = 0, then for each of `count`
 * numbers in order out[numbers[at]] += gradient[at], but for the row `padding`. */
struct lookup {
    int64_t rows, width, count, padding; /* padding: -1 if every row is trained */
    const int64_t *numbers;
    const float *gradient;
    float *out;
};

/* A weight that an optimiser changes, and what the optimiser remembers of its gradients: for ADAMW the moving means of
 * the gradient (`first`) and of its square, for ADAGRAD the sum of its squares. */
struct weight {
    int64_t count;
    const float *gradient;
    float *values, *first, *second;
    float rate, kept, root; /* the step's rate; for ADAMW the share that decay leaves, the root of the second's correction */
};

enum { ADAMW, ADAGRAD };
#define UPDATED (1 << 15) /* values of a weight that one thread changes at a time */

/* A step for `count` weights. Their gradients are first multiplied by `share`. */
struct update {
    int64_t kind, count;
    const struct weight *weights;
    float share, beta1, beta2, epsilon, decay;
};

/* out = x * factor, or 0 for about `dropped` of 2^32 values: by their numbers and the seeds. */
struct drop {
    int64_t count;
    uint32_t seed, second_seed, dropped;
    float factor;
    const float *x;
    float *out;
};

/* Cells in whole panels. */
static INLINE int64_t padded(int64_t cells) { return (cells + PANEL - 1) / PANEL * PANEL; }

#include "stored.h"
#include "workers.h"

/* Sentences from n to `running` ended with the step before: save their output and memory as final state. */
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
    void (*product)(const struct product *);
    void (*forward)(const struct lstm *);
    void (*read)(const struct lstm *);
    void (*backward)(const struct lstm *);
    void (*outer)(const struct outer *);
    void (*loss)(const struct loss *);
    void (*dots)(const struct dots *);
    void (*above)(struct above *);
    void (*squares)(const struct squares *);
    void (*totals)(const struct totals *);
    void (*unpack)(const struct unpack *);
    void (*filter)(const struct filters *);
    void (*highway)(const struct highway *, int64_t, int64_t, char *);
    void (*scan)(const struct windows *);
    void (*copy_panel)(const float *, int64_t, int64_t, int64_t, float *);
    void (*round_panel)(const float *, int64_t, int64_t, int64_t, uint32_t *);
    void (*update)(const struct update *, const struct weight *, int64_t, int64_t);
    double (*square_sum)(const float *, int64_t);
    void (*drop)(const struct drop *, int64_t, int64_t);
};

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, ISA)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* ROWS is the height of a tile, ALONE the height from which one panel keeps the machine busy, STRIPS how many
 * panels a tile of each height takes: at least 8 sums under way, and all of them in registers;
 * STRIPS_INT8 how many vectors of sums. */
#if defined(__x86_64__)

/* Compile what stands between these for instructions that the rest of the library does without. */
#define PRAGMA_(x) _Pragma(#x)
#define PRAGMA(x) PRAGMA_(x)
#if defined(__clang__)
#define BEGIN_TARGET(features) PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define END_TARGET PRAGMA(clang attribute pop)
#define AVX512 "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"
#else
#define BEGIN_TARGET(features) PRAGMA(GCC push_options) PRAGMA(GCC target(features))
#define END_TARGET PRAGMA(GCC pop_options)
#define AVX512 "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512"
#endif

#define ISA bf16
#define TARGET AVX512 ",avx512vnni,avx512bf16"
#define VNNI 1
#define DOT_BF16 1
#include "avx512.h"

#define ISA vnni
#define TARGET AVX512 ",avx512vnni"
#define VNNI 1
#define DOT_BF16 0
#include "avx512.h"

#define ISA avx512
#define TARGET AVX512
#define VNNI 0
#define DOT_BF16 0
#include "avx512.h"

#define ISA avx2
#define BYTES 32
#define ROWS 6
#define ALONE 4
#define STRIPS STRIP(1, 4) STRIP(2, 2) STRIP(3, 2) STRIP(4, 1) STRIP(5, 1) STRIP(6, 1)
#define VNNI 0
#define DOT_BF16 0
#define STRIPS_INT8 STRIP(1, 8) STRIP(2, 4) STRIP(3, 4) STRIP(4, 2) STRIP(5, 2) STRIP(6, 2)
BEGIN_TARGET("avx2,fma,f16c")
#include "isa.h"
END_TARGET

#endif

#define ISA portable
#define BYTES 16
#define VNNI 0
#define DOT_BF16 0
#if defined(__aarch64__)
#define ROWS 6
#define ALONE 2
#define STRIPS STRIP(1, 4) STRIP(2, 1) STRIP(3, 1) STRIP(4, 1) STRIP(5, 1) STRIP(6, 1)
#define STRIPS_INT8 STRIP(1, 8) STRIP(2, 4) STRIP(3, 4) STRIP(4, 4) STRIP(5, 4) STRIP(6, 4)
#else
#define ROWS 3
#define ALONE 2
#define STRIPS STRIP(1, 2) STRIP(2, 1) STRIP(3, 1)
#define STRIPS_INT8 STRIP(1, 4) STRIP(2, 4) STRIP(3, 4)
#endif
#include "isa.h"

static const struct kernels *chosen; /* written once, always with the same value, unless a test selects another */

static const struct kernels *named(const char *name)
{
    if (!strcmp(name, "portable"))
        return &portable;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!strcmp(name, "avx2") && HAS("avx2") && HAS("fma") && HAS("f16c"))
        return &avx2;
    const int wide = HAS("avx512f") && HAS("avx512dq") &&
                     HAS("avx512vl") && HAS("avx512bw");
    if (!strcmp(name, "avx512") && wide)
        return &avx512;
    if (!strcmp(name, "vnni") && wide && HAS("avx512vnni"))
        return &vnni;
    if (!strcmp(name, "bf16") && wide && HAS("avx512vnni") && HAS("avx512bf16"))
        return &bf16;
#endif
    return NULL;
}

static const struct kernels *best(void)
{
    const struct kernels *found = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
    const char *const names[] = {"bf16", "vnni", "avx512", "avx2", "portable"};
    for (int at = 0; !found; at++)
        found = named(names[at]);
    __atomic_store_n(&chosen, found, __ATOMIC_RELEASE);
    return found;
}

/* Increased with every change of the structs and functions below, so that an old library is refused. */
int polyseme_interface(void) { return 14; }

/* The instruction set in use. */
const char *polyseme_instruction_set(void) { return best()->name; }

/* Select an instruction set by name: 1, or 0 if the CPU does not support it. */
int polyseme_use(const char *name)
{
    const struct kernels *wanted = named(name);
    if (wanted)
        __atomic_store_n(&chosen, wanted, __ATOMIC_RELEASE);
    return wanted != NULL;
}

/* Bytes that polyseme_pack writes. */
int64_t polyseme_packed_size(int kind, int64_t groups, int64_t n, int64_t k)
{
    return groups * ((n + PANEL - 1) / PANEL) * panel_bytes(kind, k);
}

/* Scratch bytes for int8 and bf16 products of `rows` rows of k values. */
int64_t polyseme_scratch_size(int64_t rows, int64_t k) { return (rows < CHUNK ? rows : CHUNK) * row_bytes(k); }

/* Scratch bytes for a layer of int8 or bf16, forward or backward. */
int64_t polyseme_lstm_scratch_size(const struct lstm *l)
{
    const int64_t wider = l->cells > l->outputs ? l->cells : l->outputs;
    const int64_t first = polyseme_scratch_size(l->z_rows, l->inputs), then = l->batch * row_bytes(wider);
    const int64_t back = polyseme_scratch_size(l->batch, 4 * l->cells), most = first > then ? first : then;
    return most > back ? most : back;
}

/* A panel of fp32, whose columns from `width` on the caller has cleared. */
static void pack_panel(const float *rows, int64_t width, int64_t k, int64_t row_step, int64_t column_step,
                       float *packed)
{
    if (width == PANEL && (row_step == 1 || column_step == 1)) {
        best()->copy_panel(rows, k, row_step, column_step, packed);
        return;
    }
    for (int64_t r = 0; r < width; r++)
        for (int64_t at = 0; at < k; at++)
            packed[at * PANEL + r] = rows[r * row_step + at * column_step];
}

/* A panel of elements of `size` bytes, 1 or 2: consecutive elements along k share a word. */
static void pack_narrow_panel(const char *rows, size_t size, int64_t width, int64_t k, int64_t row_step,
                              int64_t column_step, char *packed)
{
    const int64_t together = 4 / (int64_t)size;
    for (int64_t r = 0; r < width; r++)
        for (int64_t at = 0; at < k; at++)
            memcpy(packed + (at / together * PANEL + r) * 4 + at % together * (int64_t)size,
                   rows + (r * row_step + at * column_step) * (int64_t)size, size);
}

/* After a panel of int8: -128 times the sum of each column, the initial value of the sums with VNNI. */
static void add_column_sums(char *packed, int64_t k)
{
    const int64_t words = (k + 3) / 4;
    int32_t sums[PANEL] = {0};
    for (int64_t at = 0; at < words * PANEL * 4; at++)
        sums[at / 4 % PANEL] -= 128 * (int8_t)packed[at];
    memcpy(packed + words * PANEL * 4, sums, sizeof sums);
}

/* The bits of an fp32 rounded to bf16, to the nearest, halves to even; NaN stays NaN. */
static INLINE uint32_t round_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t nan = (bits & INT32_MAX) > 0x7f800000 ? UINT32_MAX : 0;
    return (nan & 0x7fc0) | (~nan & (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A panel of fp32 rounded to bf16, two values in a word. */
static void pack_rounded_panel(const float *rows, int64_t width, int64_t k, int64_t row_step, int64_t column_step,
                               uint32_t *packed)
{
    if (width == PANEL && (row_step == 1 || column_step == 1)) {
        best()->round_panel(rows, k, row_step, column_step, packed);
        return;
    }
    memset(packed, 0, (size_t)panel_bytes(BF16, k));
    for (int64_t r = 0; r < width; r++)
        for (int64_t at = 0; at < k; at++)
            packed[at / 2 * PANEL + r] |= round_bits(rows[r * row_step + at * column_step]) << at % 2 * 16;
}

/* polyseme_pack of fp32, rounded to bf16. */
void polyseme_pack_rounded(const float *weight, int64_t groups, int64_t n, int64_t k, int64_t row_step,
                           int64_t column_step, void *packed)
{
    const int64_t panel = panel_bytes(BF16, k);
    char *to = packed;
    for (int64_t from = 0; from < n; from += PANEL) {
        const int64_t width = n - from < PANEL ? n - from : PANEL;
        for (int64_t g = 0; g < groups; g++, to += panel)
            pack_rounded_panel(weight + (g * n + from) * row_step, width, k, row_step, column_step, (uint32_t *)to);
    }
}

/* Pack a weight of groups * n results by k, of fp32, bf16 or int8: element (g, row, column) is at
 * g * n * row_step + row * row_step + column * column_step. Panels are ordered by columns, then by groups: the
 * four gates of a cell are adjacent. */
void polyseme_pack(int kind, const void *weight, int64_t groups, int64_t n, int64_t k, int64_t row_step,
                   int64_t column_step, void *packed)
{
    const int64_t panel = panel_bytes(kind, k);
    const size_t size = kind == FP32 ? 4 : kind == BF16 ? 2 : 1;
    char *to = packed;
    for (int64_t from = 0; from < n; from += PANEL) {
        const int64_t width = n - from < PANEL ? n - from : PANEL;
        for (int64_t g = 0; g < groups; g++, to += panel) {
            const char *rows = (const char *)weight + (g * n + from) * row_step * (int64_t)size;
            if (width < PANEL || kind != FP32)
                memset(to, 0, (size_t)panel);
            if (kind == FP32)
                pack_panel((const float *)rows, width, k, row_step, column_step, (float *)to);
            else
                pack_narrow_panel(rows, size, width, k, row_step, column_step, to);
            if (kind == INT8)
                add_column_sums(to, k);
        }
    }
}

void polyseme_product(const struct product *q) { best()->product(q); }

/* y = sigmoid(x), or tanh(x) if `function` is 1. */
void polyseme_map(int function, const float *x, float *y, int64_t count) { best()->map(function, x, y, count); }

void polyseme_lstm_forward(const struct lstm *l) { best()->forward(l); }

static void read_stack(void *what)
{
    const struct stack *s = what;
    const struct lstm *first = s->layers;
    for (int64_t at = 0; at < s->tokens && s->numbers; at++)
        memcpy(s->x + at * first->inputs, s->vectors + s->numbers[at] * first->inputs, 4 * (size_t)first->inputs);
    for (int64_t number = 0; number < s->count; number++) {
        const struct lstm *l = s->layers + number;
        best()->read(l);
        for (int64_t at = 0; s->residual && number && at < s->tokens * l->outputs; at++)
            l->output[at] += l->x[at];
    }
}

/* Run some stacks, up to `threads` at once; 0 without running any if a number is not that of a vector. */
int polyseme_read(struct stack *stacks, int64_t count, int64_t threads)
{
    struct job jobs[2 * WORKERS];
    for (int64_t from = 0; from < count; from++)
        for (int64_t at = 0; at < stacks[from].tokens && stacks[from].numbers; at++)
            if (stacks[from].numbers[at] < 0 || stacks[from].numbers[at] >= stacks[from].known)
                return 0;
    for (int64_t from = 0; from < count; from += 2 * WORKERS) {
        const int64_t some = count - from < 2 * WORKERS ? count - from : 2 * WORKERS;
        for (int64_t at = 0; at < some; at++)
            jobs[at] = (struct job){read_stack, stacks + from + at};
        run_jobs(jobs, some, threads);
    }
    return 1;
}

static void unpack_direction(void *what) { best()->unpack(what); }

/* Unpack both directions, at once with 2 or more threads. */
void polyseme_unpack(struct unpack *directions, int64_t count, int64_t threads)
{
    struct job jobs[2 * WORKERS];
    for (int64_t from = 0; from < count; from += 2 * WORKERS) {
        const int64_t some = count - from < 2 * WORKERS ? count - from : 2 * WORKERS;
        for (int64_t at = 0; at < some; at++)
            jobs[at] = (struct job){unpack_direction, directions + from + at};
        run_jobs(jobs, some, threads);
    }
}

static void filter_words(void *what) { best()->filter(what); }

/* The filters of all words, which up to `threads` threads share. */
void polyseme_filter(const struct filters *f, int64_t threads)
{
    struct filters parts[WORKERS];
    struct job jobs[WORKERS];
    const int64_t count = threads < 1 ? 1 : threads < WORKERS ? threads : WORKERS;
    for (int64_t at = 0; at < count; at++) {
        const int64_t from = f->words * at / count;
        parts[at] = *f;
        parts[at].words = f->words * (at + 1) / count - from;
        parts[at].chars += from * f->columns, parts[at].lengths += from, parts[at].out += from * f->size;
        jobs[at] = (struct job){filter_words, parts + at};
    }
    run_jobs(jobs, count, count);
}

void polyseme_windows(const struct windows *q) { best()->scan(q); }

/* The gradient of polyseme_windows: each filter of a word has another window, so this is scalar in every instruction set. */
void polyseme_windows_backward(const struct windows *q)
{
    for (int64_t word = 0; word < q->words; word++) {
        const int32_t *first = q->first + word * q->size;
        const float *d_values = q->values + word * q->step;
        for (int64_t at = 0; at < q->width; at++) {
            const int64_t *chars = q->chars + word * q->columns + at;
            for (int64_t filter = 0; filter < q->size; filter++)
                q->parts[(chars[first[filter]] * q->width + at) * q->size + filter] += d_values[filter];
        }
    }
}

struct highway_part {
    const struct highway *highway;
    int64_t first, columns;
    char *scratch;
};

static void run_highway(void *what)
{
    const struct highway_part *part = what;
    if (part->columns)
        best()->highway(part->highway, part->first, part->columns, part->scratch);
}

/* Scratch bytes of a highway for one thread. */
int64_t polyseme_highway_scratch_size(int64_t size) { return polyseme_scratch_size(HIGHWAY_ROWS, size); }

/* A highway, whose columns up to `threads` threads share: each reads a part of the weights. */
void polyseme_highway(const struct highway *h, int64_t threads)
{
    struct highway_part parts[WORKERS];
    struct job jobs[WORKERS];
    const int64_t count = threads < 1 ? 1 : threads < WORKERS ? threads : WORKERS, panels = h->size / PANEL;
    for (int64_t at = 0; at < count; at++) {
        const int64_t first = panels * at / count * PANEL, end = panels * (at + 1) / count * PANEL;
        parts[at] = (struct highway_part){h, first, end - first,
                                          h->scratch ? h->scratch + at * polyseme_highway_scratch_size(h->size) : NULL};
        jobs[at] = (struct job){run_highway, parts + at};
    }
    run_jobs(jobs, count, count);
}

void polyseme_lstm_backward(const struct lstm *l) { best()->backward(l); }

/* Scratch bytes of polyseme_outer: some panels of one factor, and the other one. */
int64_t polyseme_outer_scratch_size(int64_t n) { return 4 * DEPTH * (GROUP * PANEL + padded(n)); }

void polyseme_outer(const struct outer *q) { best()->outer(q); }

/* Scratch bytes of polyseme_loss: a block of scores, outputs and factors, and what the products need. */
int64_t polyseme_loss_scratch_size(int64_t rows, int64_t size, int64_t samples)
{
    const int64_t block = loss_rows(rows, samples), outer = polyseme_outer_scratch_size(size);
    const int64_t product = polyseme_scratch_size(block, size > samples ? size : samples);
    return 4 * block * (samples + size + 2) + (outer > product ? outer : product);
}

void polyseme_loss(const struct loss *q) { best()->loss(q); }

void polyseme_dots(const struct dots *q) { best()->dots(q); }

/* Bytes that polyseme_above needs beside. */
int64_t polyseme_above_scratch_size(int64_t queries, int64_t width)
{
    return 4 * rows_together(width) * (padded(queries) + width);
}

void polyseme_above(struct above *q) { best()->above(q); }

/* Bytes that polyseme_squares needs beside. */
int64_t polyseme_squares_scratch_size(int64_t width) { return polyseme_above_scratch_size(width, width); }

void polyseme_squares(const struct squares *q) { best()->squares(q); }

void polyseme_totals(const struct totals *q) { best()->totals(q); }

struct update_part {
    const struct update *update;
    int64_t number, parts; /* this part, of all */
    double *sums;          /* of the squares of each stretch, or NULL: change the weights */
};

/* The stretches of all weights are numbered; each thread takes as many that follow each other. */
static int64_t count_stretches(const struct update *q)
{
    int64_t total = 0;
    for (int64_t at = 0; at < q->count; at++)
        total += (q->weights[at].count + UPDATED - 1) / UPDATED;
    return total;
}

static void run_update(void *what)
{
    const struct update_part *part = what;
    const struct update *q = part->update;
    const int64_t total = count_stretches(q);
    const int64_t begin = total * part->number / part->parts, end = total * (part->number + 1) / part->parts;
    int64_t number = 0;
    for (const struct weight *w = q->weights; w < q->weights + q->count && number < end; w++)
        for (int64_t from = 0; from < w->count; from += UPDATED, number++) {
            const int64_t to = w->count < from + UPDATED ? w->count : from + UPDATED;
            if (number < begin || number >= end)
                continue;
            if (part->sums)
                part->sums[number] = best()->square_sum(w->gradient + from, to - from);
            else
                best()->update(q, w, from, to);
        }
}

static void share_update(const struct update *q, int64_t threads, double *sums)
{
    struct update_part parts[WORKERS];
    struct job jobs[WORKERS];
    const int64_t count = threads < 1 ? 1 : threads < WORKERS ? threads : WORKERS;
    for (int64_t at = 0; at < count; at++) {
        parts[at] = (struct update_part){q, at, count, sums};
        jobs[at] = (struct job){run_update, parts + at};
    }
    run_jobs(jobs, count, count);
}

/* Change all weights, which up to `threads` threads share. */
void polyseme_update(const struct update *q, int64_t threads) { share_update(q, threads, NULL); }

/* Values of `sums` of polyseme_square_sum. */
int64_t polyseme_square_sum_count(const struct update *q) { return count_stretches(q); }

/* The sum of the squares of all gradients; the same bits for any number of threads. */
double polyseme_square_sum(const struct update *q, int64_t threads, double *sums)
{
    double sum = 0.0;
    share_update(q, threads, sums);
    for (int64_t at = 0; at < count_stretches(q); at++)
        sum += sums[at];
    return sum;
}

struct lookup_part {
    const struct lookup *lookup;
    int64_t first, end; /* rows of the table */
};

static void run_lookup(void *what)
{
    const struct lookup_part *part = what;
    const struct lookup *q = part->lookup;
    memset(q->out + part->first * q->width, 0, 4 * (size_t)((part->end - part->first) * q->width));
    for (int64_t at = 0; at < q->count; at++) {
        const int64_t row = q->numbers[at];
        if (row < part->first || row >= part->end || row == q->padding)
            continue;
        const float *from = q->gradient + at * q->width;
        float *to = q->out + row * q->width;
        for (int64_t column = 0; column < q->width; column++)
            to[column] += from[column];
    }
}

/* The gradient of a table, whose rows up to `threads` threads share. */
void polyseme_lookup_backward(const struct lookup *q, int64_t threads)
{
    struct lookup_part parts[WORKERS];
    struct job jobs[WORKERS];
    const int64_t count = threads < 1 ? 1 : threads < WORKERS ? threads : WORKERS;
    for (int64_t at = 0; at < count; at++) {
        parts[at] = (struct lookup_part){q, q->rows * at / count, q->rows * (at + 1) / count};
        jobs[at] = (struct job){run_lookup, parts + at};
    }
    run_jobs(jobs, count, count);
}

static void run_drop(void *what)
{
    const struct drop *q = what;
    best()->drop(q, 0, q->count);
}

/* Drop values of some arrays, up to `threads` at once. */
void polyseme_drop(struct drop *arrays, int64_t count, int64_t threads)
{
    struct job jobs[WORKERS];
    for (int64_t from = 0; from < count; from += WORKERS) {
        const int64_t some = count - from < WORKERS ? count - from : WORKERS;
        for (int64_t at = 0; at < some; at++)
            jobs[at] = (struct job){run_drop, arrays + from + at};
        run_jobs(jobs, some, threads);
    }
}
