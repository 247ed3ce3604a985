"""How alike words, usages or sentences are: cosines, and the odd one out.

    embedder, words  ->  search.similarity  ->  search.index, api

Usages are sentences with the word in [brackets], which stays one unit; sentences are the mean of their
tokens. An index reads with its own layer and corrects the space, a model gives its vectors as they are.
N texts, T tokens, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import Elmo
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.language.substitutes import parse_marked
from polyseme.model.output import Layer, resolve_output
from polyseme.search.space import Space, uncorrected_space
from polyseme.word_vectors import WordVectors

Array = NDArray[np.float32]
Kind = Literal["words", "usages", "sentences"]


@dataclass(frozen=True)
class UsageEncoder:
    """What makes vectors of text: how it is cut, how tokens become vectors (T, H), and their space."""

    cut: Callable[[str], list[str]]
    read: Callable[[list[str]], Array]
    space: Space

    def usage(self, text: str) -> Array:
        """The direction (H,) of the word in brackets."""
        before, word, after = parse_marked(text)
        if not word:
            raise UsageError(f"{text!r:.80}: nothing stands in the brackets.")
        left = self.cut(before)
        return self._direction(self.read([*left, word, *self.cut(after)])[len(left)])

    def sentence(self, text: str) -> Array:
        """The direction (H,) of a sentence: of the mean of its tokens."""
        tokens = self.cut(text)
        if not tokens:
            raise UsageError(f"{text!r:.80}: no word in it.")
        return self._direction(self.read(tokens).mean(axis=0))

    def _direction(self, vector: Array) -> Array:
        if not np.isfinite(vector).all():
            raise DataError("A vector is not finite. Is the model broken?")
        found: Array = self.space.to_directions(vector[None])[0]
        return found


@dataclass(frozen=True)
class Similarity:
    """Texts with the cosine of each pair (N, N), and which of three or more lies farthest from all."""

    kind: Kind
    texts: tuple[str, ...]
    cosines: Array
    odd: str | None


def make_encoder(
    elmo: Elmo, layer: Layer, space: Space | None = None, segment: str | None = None, *, places: bool = False
) -> UsageEncoder:
    """A model as a reader of words, or of their `places`; no correction if `space` is left out."""
    spec = resolve_output(layer, None, "both", elmo.config.layers, context=places)
    spec.require_weights("usage")  # there is one

    def read(tokens: list[str]) -> Array:
        with elmo.track_counts() as counts:
            (found,) = elmo.embed_tokens([tokens], spec, counts)
        vectors: Array = found
        return vectors

    return UsageEncoder(
        lambda text: elmo.token_texts(text, segment), read, space or uncorrected_space(elmo.config.size)
    )


def compare_texts(
    texts: Sequence[str], words: Callable[[], WordVectors], reader: Callable[[], UsageEncoder]
) -> Similarity:
    """The cosines of words, of usages or of sentences, whichever the texts are.

    words, reader: give them at need, so that a model is read only for text.
    """
    if len(texts) < 2:
        raise UsageError(f"{len(texts)} text, expected two or more to compare.")
    kind = _kind(texts, words, reader)
    if kind == "words":
        rows = [words().direction(text) for text in texts]
    else:
        found = reader()
        rows = [found.usage(text) if kind == "usages" else found.sentence(text) for text in texts]
    pointing = np.stack(rows)
    odd = texts[int((pointing @ pointing.mean(axis=0)).argmin())] if len(texts) > 2 else None
    return Similarity(kind, tuple(texts), pointing @ pointing.T, odd)


def _kind(texts: Sequence[str], words: Callable[[], WordVectors], reader: Callable[[], UsageEncoder]) -> Kind:
    """Usages where words stand in brackets, words where all are known or each is one token, or sentences."""
    marked = ["[" in text for text in texts]
    if all(marked):
        return "usages"
    if any(marked):
        raise UsageError("Some texts have a word in [brackets], some do not: mark one in each, or in none.")
    if any(len(text.split()) > 1 for text in texts):  # no word has white space in it
        return "sentences"
    try:
        known = words()
    except (FormatError, UsageError):  # a model without vectors of words, or not of this layer
        known = None
    if known is not None and all(text in known for text in texts):
        return "words"
    return "words" if all(len(reader().cut(text)) == 1 for text in texts) else "sentences"
