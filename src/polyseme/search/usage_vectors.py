"""Turn labelled usages into vectors, by one of three views.

    elmo, search.sense_data  ->  search.usage_vectors  ->  search.disambiguation, api

    word      the mean of the word's tokens, as in the ELMo paper
    context   the forward state before the word and the backward state after it, from which the model would
              predict the word: nothing of its own letters
    sentence  the context, followed by the mean of the other tokens, which says what the sentence is about:
              rare words weigh more in it, if the model knows which are rare (`model.sentence_pooling`)

T tokens incl. <S> and </S>, H values, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import UsageView
from polyseme.elmo import CHUNK, Elmo
from polyseme.errors import DataError, UsageError
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter, ignore_progress
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.search.sense_data import LabelledUsage
from polyseme.text.length_batches import chunk_by_size

Array = NDArray[np.float32]
REPORTED_USAGES = 100  # between two events of progress
TOPIC_WEIGHT = 2.0  # of the mean beside the context in a sentence: chosen for few examples of CoarseWSD-20
USAGE_VIEWS: tuple[UsageView, ...] = get_args(UsageView)


def check_view(view: str, views: Sequence[str] = USAGE_VIEWS) -> None:
    """Refuse a view that does not exist."""
    if view not in views:
        raise UsageError(f"view is {view!r}, expected one of {', '.join(views)}.")


def embed_usages(
    elmo: Elmo,
    examples: Sequence[LabelledUsage],
    layer: Layer,
    view: UsageView = "word",
    on_progress: OnProgress = ignore_progress,
) -> Iterator[Array]:
    """Compute the vector of each usage: (H,) for word and context, (2H,) for sentence.

    Args:
        elmo: The model.
        examples: The usages.
        layer: "top", "mean", a number from 0, weights, (weights, gamma), or "concat" for L times as many
            values.
        view: What the vector represents; see the module.
        on_progress: Receives the progress.

    Raises:
        UsageError: `view` is unknown, or `layer` is "all".
        DataError: A vector is not finite.

    """
    check_view(view)
    spec = resolve_output(layer, None, "both", elmo.config.layers)
    if not spec.joined:
        spec.require_weights("word")
    meter = RateMeter("usages")
    for parts in embed_usage_parts(elmo, examples, "all" if spec.joined else layer):
        yield select_view(parts, view).ravel()
        detail = meter.add(1)
        if meter.count % REPORTED_USAGES == 0:
            on_progress(ProgressEvent("embedding", meter.count, len(examples), detail))


def embed_usage_parts(elmo: Elmo, examples: Sequence[LabelledUsage], layer: Layer) -> Iterator[Array]:
    """Compute the word, its context and its sentence of each usage, joined (3H,); see `select_view`.

    `layer` is as for `Elmo.embed`; "all" gives one row per layer (L, 3H). Usages that follow each other in
    the same sentence share one run of the model.
    """
    spec = resolve_output(layer, None, "both", elmo.config.layers)
    runs = (list(run) for _, run in groupby(examples, key=lambda example: example.tokens))
    for chunk in chunk_by_size(runs, CHUNK * elmo.batch_tokens, lambda run: len(run[0].tokens)):
        usages = list(chain.from_iterable(chunk))
        embedded = _embed_sentences(elmo, list(dict.fromkeys(usage.tokens for usage in usages)), spec)
        weights = {tokens: elmo.weigh_tokens(tokens) for tokens in embedded}
        for usage in usages:
            parts = _join_parts(embedded[usage.tokens], usage, weights[usage.tokens])
            if not np.isfinite(parts).all():
                raise DataError(f"{usage.name}: a vector is not finite. Is the model broken?")
            yield parts


def select_view(parts: Array, view: UsageView) -> Array:
    """Select the values of a view from what `embed_usage_parts` computes."""
    size = parts.shape[-1] // 3
    return parts[..., slice(size) if view == "word" else slice(size, 2 * size if view == "context" else None)]


def _embed_sentences(
    elmo: Elmo, sentences: list[tuple[str, ...]], spec: OutputSpec
) -> dict[tuple[str, ...], Array]:
    """Each sentence as (…, T, H) of the chosen layer, <S> and </S> included."""
    embedded: dict[tuple[str, ...], Array] = {}
    tokens = [list(sentence) for sentence in sentences]
    with elmo.track_counts() as counts:
        for batch in elmo.batches(tokens):
            layers = spec.select(elmo.run_batch(batch.sentences)).cpu()
            for number, array in zip(batch.numbers, layers, strict=True):
                embedded[sentences[number]] = array[..., : len(sentences[number]) + 2, :].numpy()
        elmo.add_counts(tokens, counts)
    return embedded


def _join_parts(sentence: Array, usage: LabelledUsage, weights: Array) -> Array:
    """The word, its context and its sentence (…, 3H), from the sentence (…, T, H), whose row 0 is <S>.

    `weights` (T - 2,) are those of the tokens in the mean; those of the word do not count.
    """
    half = sentence.shape[-1] // 2
    word = sentence[..., usage.start + 1 : usage.stop + 1, :].mean(axis=-2)
    before, after = sentence[..., usage.start, :half], sentence[..., usage.stop + 1, half:]
    outside = weights.copy()
    outside[usage.start : usage.stop] = 0.0
    shares = TOPIC_WEIGHT * outside / max(outside.sum(), np.finfo(np.float32).tiny)  # a word alone has none
    return np.concatenate([word, before, after, shares @ sentence[..., 1:-1, :]], axis=-1)
