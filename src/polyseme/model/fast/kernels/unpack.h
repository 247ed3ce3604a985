/* The layers of a packed batch as one array per sentence.
 *
 *     native.c  ->  unpack.h  ->  vector.h
 *
 * struct unpack in native.c describes inputs and outputs. A mix adds the weighted layers to zero, the first one first:
 * the same bits as in torch.
 */

/* `width` values of a token: each layer to its own row, `apart` values apart, or one mix of them. */
static INLINE void NAME(unpack_token)(const struct unpack *u, int64_t row, float *to, int64_t apart)
{
    const int64_t width = u->width;
    if (!u->weights || u->alone >= 0) {
        for (int64_t layer = u->weights ? u->alone : 0; layer < u->layers; layer++, to += apart) {
            memcpy(to, u->sources[layer] + row * width, 4 * (size_t)width);
            if (u->weights)
                return;
        }
        return;
    }
    for (int64_t at = 0; at < width; at++)
        to[at] = 0.0f;
    for (int64_t layer = 0; layer < u->layers; layer++) {
        const float weight = u->weights[layer], *from = u->sources[layer] + row * width;
        for (int64_t at = 0; at < width && weight != 0.0f; at++)
            to[at] += from[at] * weight;
    }
}

static void NAME(unpack)(const struct unpack *u)
{
    const int64_t size = 2 * u->width;
    int64_t row = 0;
    for (int64_t t = 0; t < u->steps; t++)
        for (int64_t rank = 0; rank < u->sizes[t]; rank++, row++) {
            const int64_t sentence = u->order[rank], tokens = u->lengths[sentence] - 2;
            const int64_t token = u->direction ? tokens - t : t - 1; /* -1 is <S>, `tokens` is </S> */
            if (token >= 0 && token < tokens)
                NAME(unpack_token)(u, row, u->out[sentence] + token * size + u->direction * u->width, tokens * size);
        }
}
