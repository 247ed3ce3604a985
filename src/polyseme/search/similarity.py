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
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.search.space import Space, make_uncorrected_space
from polyseme.search.usual_cosines import UsualCosines
from polyseme.text.brackets import WordInSentence, split_at_brackets
from polyseme.word_vectors import WordVectors, find_odd_one_out

Array = NDArray[np.float32]
TextKind = Literal["words", "usages", "sentences"]


@dataclass(frozen=True)
class UsageEncoder:
    """Turns usages and sentences into directions.

    Attributes:
        elmo: The model.
        spec: Which vectors of the model.
        space: The correction of the vectors.
        segmentation: How to split text into tokens; as the model was trained if None.

    """

    elmo: Elmo
    spec: OutputSpec
    space: Space
    segmentation: str | None = None

    def segment(self, text: str) -> list[str]:
        """Split text into tokens."""
        return self.elmo.token_texts(text, self.segmentation)

    def embed(
        self, sentences: list[list[str]], on_progress: OnProgress = ignore_progress
    ) -> list[NDArray[np.float32]]:
        """Turn token lists into vectors (T, H)."""
        with self.elmo.track_counts() as counts:
            return self.elmo.embed_tokens(sentences, self.spec, counts, on_progress=on_progress)

    def encode_usage(self, text: str) -> Array:
        """Return the direction (H,) of the word in brackets."""
        return self.encode_token(*self.split_usage(text))

    def encode_token(self, tokens: list[str], position: int) -> Array:
        """Return the direction (H,) of the token at a position."""
        return self.direct(self.embed([tokens])[0], position)

    def encode_sentence(self, text: str) -> Array:
        """Return the direction (H,) of a sentence: of the mean of its tokens."""
        return self.direct(self.embed([self.split_sentence(text)])[0], None)

    def split_usage(self, text: str) -> WordInSentence:
        """Split a sentence with a word in brackets into tokens."""
        usage = split_at_brackets(text, self.segment)
        if not usage.tokens[usage.position]:
            raise UsageError(f"{text!r:.80}: the brackets are empty.")
        return usage

    def split_sentence(self, text: str) -> list[str]:
        """Split a sentence into tokens, of which there must be one."""
        tokens = self.segment(text)
        if not tokens:
            raise UsageError(f"{text!r:.80}: no word in it.")
        return tokens

    def direct(self, vectors: Array, position: int | None) -> Array:
        """Return the direction (H,) of one of T vectors (T, H), or of their mean if `position` is None."""
        vector = vectors.mean(axis=0) if position is None else vectors[position]
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
    return UsageEncoder(elmo, spec, space or make_uncorrected_space(elmo.config.size), segment)


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
        tokens: The tokens of each text; a word is one token.
        token_directions: For each text (T, H), the directions of its tokens.
        usual: With an index: what cosines pairs of usages have, to compare with; None for words.

    """

    kind: TextKind
    texts: tuple[str, ...]
    cosines: Array
    odd_one_out: str | None
    tokens: tuple[list[str], ...] = ()
    token_directions: tuple[Array, ...] = ()
    usual: UsualCosines | None = None

    @property
    def cosine(self) -> float:
        """The cosine of two texts.

        Raises:
            UsageError: There are more than two; see `cosines`.

        """
        if len(self.texts) != 2:
            raise UsageError(f"{len(self.texts)} texts have more than one cosine: see `cosines` or `pairs`.")
        return float(self.cosines[0, 1])

    def compare_tokens(self, first: int = 0, second: int = 1) -> Array:
        """Return the cosines of all tokens of two texts, which are given by number: one row per token.

        Example:
            >>> polyseme.similarity(elmo, "the river bank", "the bank failed").compare_tokens().shape
            (3, 3)

        """
        cosines: Array = self.token_directions[first] @ self.token_directions[second].T
        return cosines

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


@dataclass(frozen=True)
class SimilarityPlan:
    """What a comparison of texts embeds, and how it ends.

    Attributes:
        kind: What is compared.
        texts: The N texts.
        sentences: The sentences to embed, as tokens; none if words are compared.
        positions: For each sentence the position of the word that is compared; None compares its mean.
        encoder: Embeds sentences; None if words are compared.
        words: The word vectors, if words are compared.
        find_usual: Measures what cosines are usual; None if that is not known.

    """

    kind: TextKind
    texts: tuple[str, ...]
    sentences: list[list[str]]
    positions: tuple[int | None, ...]
    encoder: UsageEncoder | None
    words: WordVectors | None = None
    find_usual: Callable[[], UsualCosines | None] | None = None

    def embed(self, on_progress: OnProgress = ignore_progress) -> list[NDArray[np.float32]]:
        """Compute the vectors (T, H) of the sentences."""
        return self.encoder.embed(self.sentences, on_progress) if self.encoder else []

    def finish(self, vectors: Sequence[Array]) -> Similarity:
        """Compare the texts by the vectors (T, H) of their sentences."""
        if self.words is not None:
            rows = [self.words.direction(text) for text in self.texts]
            tokens, of_tokens = [[text] for text in self.texts], [row[None] for row in rows]
        elif self.encoder is not None:
            pairs = zip(vectors, self.positions, strict=True)
            rows = [self.encoder.direct(array, position) for array, position in pairs]
            tokens, of_tokens = self.sentences, [*map(self.encoder.space.to_directions, vectors)]
        directions = np.stack(rows)
        odd_one_out = self.texts[find_odd_one_out(directions)] if len(rows) > 2 else None
        cosines = directions @ directions.T
        usual = self.find_usual() if self.find_usual is not None and self.words is None else None
        return Similarity(self.kind, self.texts, cosines, odd_one_out, tuple(tokens), tuple(of_tokens), usual)


def plan_comparison(
    texts: Sequence[str],
    words: Callable[[], WordVectors] | None,
    encoder: Callable[[], UsageEncoder],
) -> SimilarityPlan:
    """Plan the comparison of words, of usages or of sentences, whichever the texts are.

    Args:
        texts: Two or more texts: all usages (a word in brackets), all words, or all sentences.
        words: Opens the word vectors; called only if the texts may be words. None compares no words: a
            single word is then a sentence of one token.
        encoder: Loads the encoder; called only if the texts may be usages or sentences.

    Raises:
        UsageError: Fewer than two texts, only some have a word in brackets, or one is empty.
        UnknownWordError: A word has no vector.
        FormatError: All texts are words, and there are no word vectors.

    """
    if len(texts) < 2:
        raise UsageError(f"{len(texts)} text, expected two or more to compare.")
    kind = _detect_kind(texts, words, encoder)
    if kind == "words" and words is not None:
        known = words()
        for text in texts:
            known.direction(text)  # raises the error for a word without a vector
        return SimilarityPlan(kind, tuple(texts), [], (), None, known)
    if kind == "usages":
        usages = [encoder().split_usage(text) for text in texts]
        sentences, positions = [usage.tokens for usage in usages], tuple(usage.position for usage in usages)
        return SimilarityPlan(kind, tuple(texts), sentences, positions, encoder())
    sentences = [encoder().split_sentence(text) for text in texts]
    return SimilarityPlan(kind, tuple(texts), sentences, (None,) * len(texts), encoder())


def _detect_kind(
    texts: Sequence[str], words: Callable[[], WordVectors] | None, encoder: Callable[[], UsageEncoder]
) -> TextKind:
    """Usages if all have brackets; words if all are known or each is one token; otherwise sentences."""
    has_brackets = ["[" in text for text in texts]
    if all(has_brackets):
        return "usages"
    if any(has_brackets):
        raise UsageError("Only some of the texts have a word in [brackets]: mark one in each, or in none.")
    if words is None or any(len(text.split()) > 1 for text in texts):  # no word contains white space
        return "sentences"
    try:
        known = words()
    except FormatError:  # the model has no word vectors
        known = None
    if known is not None and all(text in known for text in texts):
        return "words"
    return "words" if all(len(encoder().segment(text)) == 1 for text in texts) else "sentences"
