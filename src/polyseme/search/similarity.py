"""Cosines of words, usages or sentences, and the odd one out.

    elmo, word_vectors, text.brackets  ->  search.similarity  ->  search.index, api, server

A usage is a sentence with one word in [brackets], which stays one token. The vector of a sentence is the mean
of its tokens. An index encodes text with its layer and corrects the space; a model's vectors are taken as
they are. N texts, T tokens, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import Elmo
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.io.html import Cell
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer, resolve_output
from polyseme.search.space import Space, uncorrected_space
from polyseme.text.brackets import parse_brackets
from polyseme.word_vectors import WordVectors, find_odd_one_out

Array = NDArray[np.float32]
TextKind = Literal["words", "usages", "sentences"]


@dataclass(frozen=True)
class UsageEncoder:
    """Turns usages and sentences into directions.

    Attributes:
        segment: Splits text into tokens.
        embed: Turns the T tokens of a sentence into vectors (T, H).
        space: The correction of the vectors.

    """

    segment: Callable[[str], list[str]]
    embed: Callable[[list[str]], Array]
    space: Space

    def encode_usage(self, text: str) -> Array:
        """Return the direction (H,) of the word in brackets."""
        before, word, after = parse_brackets(text)
        if not word:
            raise UsageError(f"{text!r:.80}: the brackets are empty.")
        tokens_before = self.segment(before)
        vectors = self.embed([*tokens_before, word, *self.segment(after)])
        return self._direction(vectors[len(tokens_before)])

    def encode_sentence(self, text: str) -> Array:
        """Return the direction (H,) of a sentence: of the mean of its tokens."""
        tokens = self.segment(text)
        if not tokens:
            raise UsageError(f"{text!r:.80}: no word in it.")
        return self._direction(self.embed(tokens).mean(axis=0))

    def _direction(self, vector: Array) -> Array:
        if not np.isfinite(vector).all():
            raise DataError("A vector is not finite. Is the model broken?")
        direction: Array = self.space.to_directions(vector[None])[0]
        return direction


def make_encoder(
    elmo: Elmo, layer: Layer, space: Space | None = None, segment: str | None = None, *, context: bool = False
) -> UsageEncoder:
    """Make an encoder from a model.

    Args:
        elmo: The model.
        layer: "top", "mean", a number from 0, weights, or (weights, gamma).
        space: The correction of the vectors; None leaves them as they are.
        segment: How to split text into tokens; as the model was trained if None.
        context: Encode what is around a word instead of the word.

    Raises:
        UsageError: `layer` is "all": a usage has one vector.

    """
    spec = resolve_output(layer, None, "both", elmo.config.layers, context=context)
    spec.require_weights("usage")

    def embed(tokens: list[str]) -> Array:
        with elmo.track_counts() as counts:
            vectors: Array = elmo.embed_tokens([tokens], spec, counts)[0]
        return vectors

    return UsageEncoder(
        lambda text: elmo.token_texts(text, segment), embed, space or uncorrected_space(elmo.config.size)
    )


class SimilarityPair(NamedTuple):
    """Two texts and their cosine."""

    first: str
    second: str
    cosine: float

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {"cosine": self.cosine, "first": self.first, "second": self.second}


@dataclass(frozen=True, eq=False, repr=False)
class Similarity:
    """The cosines of all pairs of texts.

    Attributes:
        kind: What was compared: "words", "usages" or "sentences".
        texts: The N texts.
        cosines: (N, N), one row and one column per text.
        odd_one_out: Of three or more texts the one farthest from their mean; None for two.

    """

    kind: TextKind
    texts: tuple[str, ...]
    cosines: Array
    odd_one_out: str | None

    @property
    def cosine(self) -> float:
        """The cosine of two texts.

        Raises:
            UsageError: There are more than two; see `cosines`.

        """
        if len(self.texts) != 2:
            raise UsageError(f"{len(self.texts)} texts have more than one cosine: see `cosines` or `pairs`.")
        return float(self.cosines[0, 1])

    @property
    def pairs(self) -> ResultList[SimilarityPair]:
        """Every pair of texts with its cosine, in the order of the texts."""
        numbers = combinations(range(len(self.texts)), 2)
        caption = "" if self.odd_one_out is None else f"Odd one out: {self.odd_one_out}"
        return ResultList(
            (SimilarityPair(self.texts[a], self.texts[b], float(self.cosines[a, b])) for a, b in numbers),
            caption,
        )

    def __repr__(self) -> str:
        return repr(self.pairs)

    def _repr_html_(self) -> str:
        return self.pairs._repr_html_()


def compare_texts(
    texts: Sequence[str], words: Callable[[], WordVectors], encoder: Callable[[], UsageEncoder]
) -> Similarity:
    """Compute the cosines of words, of usages or of sentences, whichever the texts are.

    Args:
        texts: Two or more texts: all usages (a word in brackets), all words, or all sentences.
        words: Opens the word vectors; called only if the texts may be words.
        encoder: Loads the encoder; called only if the texts may be usages or sentences.

    Raises:
        UsageError: Fewer than two texts, or only some have a word in brackets.

    """
    if len(texts) < 2:
        raise UsageError(f"{len(texts)} text, expected two or more to compare.")
    kind = _detect_kind(texts, words, encoder)
    if kind == "words":
        rows = [words().direction(text) for text in texts]
    else:
        encode = encoder().encode_usage if kind == "usages" else encoder().encode_sentence
        rows = [encode(text) for text in texts]
    directions = np.stack(rows)
    odd_one_out = texts[find_odd_one_out(directions)] if len(texts) > 2 else None
    return Similarity(kind, tuple(texts), directions @ directions.T, odd_one_out)


def _detect_kind(
    texts: Sequence[str], words: Callable[[], WordVectors], encoder: Callable[[], UsageEncoder]
) -> TextKind:
    """Usages if all have brackets; words if all are known or each is one token; otherwise sentences."""
    has_brackets = ["[" in text for text in texts]
    if all(has_brackets):
        return "usages"
    if any(has_brackets):
        raise UsageError("Only some of the texts have a word in [brackets]: mark one in each, or in none.")
    if any(len(text.split()) > 1 for text in texts):  # no word contains white space
        return "sentences"
    try:
        known = words()
    except (FormatError, UsageError):  # the model has no word vectors, or only of another layer
        known = None
    if known is not None and all(text in known for text in texts):
        return "words"
    return "words" if all(len(encoder().segment(text)) == 1 for text in texts) else "sentences"
