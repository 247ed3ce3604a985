"""Marked words to vectors, by what of the sentence is looked at: the word, its place, or the whole sentence.

    embedder, search.sense_data  ->  search.usage_vectors  ->  search.disambiguation, api

word: the mean of the word's tokens, as in the ELMo paper. place: the forward state before the word and the
backward state behind it, out of which the model would guess the word; its own letters are not in it.
sentence: the place, joined by the mean of all tokens, which says what the sentence is about.
B sentences, T tokens incl. <S> and </S>, H values, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import CHUNK, Elmo
from polyseme.errors import DataError, UsageError
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.search.sense_data import LabelledUsage
from polyseme.text.length_batches import chunk_by_size

Array = NDArray[np.float32]
UsageView = Literal["word", "context", "sentence"]
USAGE_VIEWS: tuple[UsageView, ...] = ("word", "context", "sentence")


def check_view(view: str, views: Sequence[str] = USAGE_VIEWS) -> None:
    """Refuse a view that there is not."""
    if view not in views:
        raise UsageError(f"view is {view!r}, expected one of {', '.join(views)}.")


def embed_usages(
    elmo: Elmo, examples: Sequence[LabelledUsage], layer: Layer, view: UsageView = "word"
) -> Iterator[Array]:
    """What a view sees of each marked word: (H,), or (2H,) of the sentence; see `embed_usage_parts`."""
    check_view(view)
    resolve_output(layer, None, "both", elmo.config.layers).require_weights("word")  # there is one
    for parts in embed_usage_parts(elmo, examples, layer):
        yield select_view(parts, view)


def select_view(parts: Array, view: UsageView) -> Array:
    """What a view sees, of what `embed_usage_parts` gives."""
    size = parts.shape[-1] // 3
    return parts[..., slice(size) if view == "word" else slice(size, 2 * size if view == "context" else None)]


def embed_usage_parts(elmo: Elmo, examples: Sequence[LabelledUsage], layer: Layer) -> Iterator[Array]:
    """The word, its place and its sentence, joined (3H,); a sentence is read once for all its words.

    layer: as for `Elmo.embed`; "all" gives a row a layer (L, 3H).
    """
    spec = resolve_output(layer, None, "both", elmo.config.layers)
    runs = (list(run) for _, run in groupby(examples, key=lambda example: example.tokens))
    for chunk in chunk_by_size(runs, CHUNK * elmo.batch_tokens, lambda run: len(run[0].tokens)):
        some = list(chain.from_iterable(chunk))
        read = _read(elmo, list(dict.fromkeys(example.tokens for example in some)), spec)
        for example in some:
            parts = _parts(read[example.tokens], example)
            if not np.isfinite(parts).all():
                raise DataError(f"{example.name}: a vector is not finite. Is the model broken?")
            yield parts


def _read(elmo: Elmo, sentences: list[tuple[str, ...]], spec: OutputSpec) -> dict[tuple[str, ...], Array]:
    """Each sentence as (…, T, H) of the chosen layer, <S> and </S> included."""
    found: dict[tuple[str, ...], Array] = {}
    tokens = [list(sentence) for sentence in sentences]
    with elmo.track_counts() as counts:
        for batch in elmo.batches(tokens):
            chosen = spec.select(elmo.run_batch(batch.sentences)).cpu()
            for number, array in zip(batch.numbers, chosen, strict=True):
                found[sentences[number]] = array[..., : len(sentences[number]) + 2, :].numpy()
        elmo.add_counts(tokens, counts)
    return found


def _parts(sentence: Array, example: LabelledUsage) -> Array:
    """The parts of a sentence (…, T, H) whose tokens begin behind <S>."""
    half = sentence.shape[-1] // 2
    word = sentence[..., example.start + 1 : example.stop + 1, :].mean(axis=-2)
    before, behind = sentence[..., example.start, :half], sentence[..., example.stop + 1, half:]
    return np.concatenate([word, before, behind, sentence[..., 1:-1, :].mean(axis=-2)], axis=-1)
