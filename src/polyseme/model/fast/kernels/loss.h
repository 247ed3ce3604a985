/* The loss of a softmax over some words, and its gradients, in one pass over blocks of targets.
 *
 *     native.c  ->  loss.h  ->  product.h, gradients.h
 *
 * The scores of a block of targets by all words stay in the cache until the gradients are computed. struct loss in
 * native.c describes inputs and outputs.
 */

static INLINE vec NAME(exponential)(vec x)
{
    vec scale, part;
    NAME(power)(NAME(clip)(x, 87.0f), &scale, &part);
    return NAME(fma)(scale, part, scale);
}

/* The scores of one target: scores become e^(score - top) with `left_out` 0, returns their sum; *top is the highest
 * score incl. `label`. */
static float NAME(exponentials)(float *scores, const float *bias, int64_t count, int64_t left_out, float label,
                                float *top)
{
    vec most = NAME(same)(label), sums = {0};
    float lanes[LANES], sum = 0.0f;
    int64_t at = 0;
    if (left_out >= 0)
        scores[left_out] = -INFINITY;
    for (; at + LANES <= count; at += LANES) {
        const vec score = NAME(load)(scores + at) + NAME(load)(bias + at);
        NAME(store)(scores + at, score);
        most = NAME(choose)(score > most, score, most);
    }
    for (*top = label; at < count; at++) {
        scores[at] += bias[at];
        *top = scores[at] > *top ? scores[at] : *top;
    }
    NAME(store)(lanes, most);
    for (int lane = 0; lane < LANES; lane++)
        *top = lanes[lane] > *top ? lanes[lane] : *top;
    for (at = 0; at < count; at += LANES) {
        float tile[LANES] = {0};
        const int64_t width = count - at < LANES ? count - at : LANES;
        float *from = width < LANES ? memcpy(tile, scores + at, 4 * (size_t)width) : scores + at;
        NAME(store)(from, NAME(exponential)(NAME(load)(from) - *top));
        if (width == LANES)
            sums += NAME(load)(from);
        else {
            memcpy(scores + at, tile, 4 * (size_t)width);
            for (int64_t lane = 0; lane < width; lane++)
                sum += tile[lane];
        }
    }
    NAME(store)(lanes, sums);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    if (left_out >= 0) /* it was e^-87, nearly nothing */
        scores[left_out] = 0.0f;
    return sum;
}

static INLINE float NAME(inner_product)(const float *x, const float *y, int64_t count)
{
    vec sums = {0};
    float lanes[LANES], sum = 0.0f;
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        sums = NAME(fma)(NAME(load)(x + at), NAME(load)(y + at), sums);
    for (; at < count; at++)
        sum += x[at] * y[at];
    NAME(store)(lanes, sums);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

/* y += factor * x */
static INLINE void NAME(add_scaled)(float factor, const float *x, float *y, int64_t count)
{
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        NAME(store)(y + at, NAME(fma)(NAME(same)(factor), NAME(load)(x + at), NAME(load)(y + at)));
    for (; at < count; at++)
        y[at] += factor * x[at];
}

/* The targets from `first` on, as many as fit the scratch memory at once. */
static void NAME(loss_block)(const struct loss *q, int64_t first, int64_t rows)
{
    const int64_t d = q->size, s = q->samples;
    const float *outputs = q->outputs + first * d;
    float *scores = (float *)q->scratch, *scaled = scores + rows * s, *factors = scaled + rows * d;
    float *shares = factors + rows, *gradient = q->d_outputs + first * d;
    char *rest = (char *)(shares + rows);
    NAME(product)(&(struct product){q->kind, 1, rows, d, s, outputs, q->packed, NULL, rest, scores});
    for (int64_t r = 0; r < rows; r++) {
        const int64_t word = q->labels[first + r];
        const float label = NAME(inner_product)(outputs + r * d, q->weight + word * d, d) + q->bias[word];
        float top, sum = NAME(exponentials)(scores + r * s, q->bias, s, word < s ? word : -1, label, &top);
        const float own = NAME(exponential)(NAME(same)(label - top))[0];
        sum += own;
        q->sums[first + r] = sum;
        q->margins[first + r] = top - label;
        factors[r] = q->scale / sum;
        shares[r] = q->scale * (own / sum - 1.0f);
        for (int64_t at = 0; at < d; at++)
            scaled[r * d + at] = factors[r] * outputs[r * d + at];
        NAME(add_scaled)(factors[r], scores + r * s, q->d_bias, s);
        q->d_bias[word] += shares[r];
        NAME(add_scaled)(shares[r], outputs + r * d, q->d_weight + word * d, d);
    }
    NAME(product)(&(struct product){q->kind, 1, rows, s, d, scores, q->transposed, NULL, rest, gradient});
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t at = 0; at < d; at++)
            gradient[r * d + at] *= factors[r];
        NAME(add_scaled)(shares[r], q->weight + q->labels[first + r] * d, gradient + r * d, d);
    }
    NAME(outer)(&(struct outer){q->kind, 0, rows, s, d, s, d, scores, scaled, rest, q->d_weight});
}

static void NAME(loss)(const struct loss *q)
{
    const int64_t block = loss_rows(q->rows, q->samples);
    for (int64_t first = 0; first < q->rows; first += block)
        NAME(loss_block)(q, first, q->rows - first < block ? q->rows - first : block);
}
