"""Summarise a text by its most central sentences: no training, any language, any length.

    elmo, text.segment  ->  search.summaries  ->  api, server

Sentences are the nodes of a graph, cosines of their pooled vectors its weights; a sentence has a high rank if
many others are similar to it (PageRank, as LexRank and TextRank use it). Sentences of a few tokens start with
a low rank. The summary takes sentences of high rank that differ from those it has (maximal marginal
relevance).

A long text is read in blocks; the best sentences of each block compete in a last graph, so memory depends on
the size of a block, not on the text. N sentences of a block, H values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.io.html import render_table
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.language.detokenize import join_tokens

Floats = NDArray[np.float32]
BLOCK = 1000  # sentences of a graph
KEPT = 20  # sentences of a block that go to the last graph, at least
DAMPING = 0.85
ITERATIONS = 60
FULL_LENGTH = 8  # tokens; shorter sentences start with a lower rank


@dataclass(frozen=True)
class TextSentence:
    """A sentence of a text: its tokens, its text, and where it is."""

    tokens: list[str]
    text: str
    number: int  # from 0
    offsets: tuple[int, int] | None = None  # start and stop in characters, if the text was a string


@dataclass(frozen=True)
class SummarySentence:
    """A sentence of a summary.

    Attributes:
        text: As it is in the text.
        number: Of the sentence in the text, from 0.
        rank: In the graph; 1 for the most central sentence.
        offsets: Start and stop in characters of the text; None for a file.

    """

    text: str
    number: int
    rank: float
    offsets: tuple[int, int] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values = {"text": self.text, "number": self.number, "rank": round(self.rank, 6)}
        return values if self.offsets is None else values | {"offsets": list(self.offsets)}


@dataclass(frozen=True)
class Summary:
    """The sentences of a summary, in the order of the text, and how many sentences the text has."""

    sentences: tuple[SummarySentence, ...]
    total: int

    @property
    def text(self) -> str:
        """The summary as one text."""
        return join_tokens(" ".join(sentence.text.split()) for sentence in self.sentences)

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        sentences = [sentence.as_dict() for sentence in self.sentences]
        return {"text": self.text, "sentences": sentences, "total": self.total}

    def __repr__(self) -> str:
        return f"Summary({len(self.sentences)} of {self.total} sentences: {self.text!r:.200})"

    def _repr_html_(self) -> str:
        rows = [(sentence.number, sentence.rank, sentence.text) for sentence in self.sentences]
        return render_table(["sentence", "rank", "text"], rows)


@dataclass
class _Candidates:
    """Sentences with their vectors."""

    sentences: list[TextSentence] = field(default_factory=list)
    vectors: list[Floats] = field(default_factory=list)


def summarise_sentences(
    elmo: Elmo,
    sentences: Iterable[TextSentence],
    count: int,
    diversity: float,
    *,
    block: int = BLOCK,
    on_progress: OnProgress = ignore_progress,
) -> Summary:
    """Choose the sentences of a summary.

    Args:
        elmo: The model.
        sentences: Of the text, read one block at a time.
        count: The number of sentences to choose.
        diversity: From 0, by rank alone, to 1, as different as possible.
        block: Sentences of a graph.
        on_progress: Receives an event for each block.

    Raises:
        UsageError: If `count` or `diversity` is out of range.
        DataError: If the text has no sentences.

    """
    if count < 1:
        raise UsageError(f"sentences is {count}, expected 1 or more.")
    if not 0 <= diversity <= 1:
        raise UsageError(f"diversity is {diversity:g}, expected 0 to 1.")
    size, kept = max(block, 4 * count), max(KEPT, 2 * count)
    candidates, total = _Candidates(), 0
    mean: Floats | None = None
    for part in _split_blocks(sentences, size):
        vectors = _embed(elmo, part)
        mean = (
            vectors.mean(axis=0)
            if mean is None
            else mean + (vectors.mean(axis=0) - mean) * len(part) / (total + len(part))
        )
        total += len(part)
        ranks, cosines = rank_sentences(vectors, _measure_lengths(part))
        for number in choose_sentences(ranks, cosines, kept, diversity):
            candidates.sentences.append(part[number])
            candidates.vectors.append(vectors[number])
        if len(candidates.sentences) > size - kept:
            candidates = _reduce(candidates, mean, size // 2, diversity)
        on_progress(ProgressEvent("summarising", total, None))
    if mean is None:
        raise DataError("The text has no sentences.")
    ranks, cosines = rank_sentences(
        np.stack(candidates.vectors), _measure_lengths(candidates.sentences), mean
    )
    chosen = choose_sentences(ranks, cosines, count, diversity)
    ordered = sorted(chosen, key=lambda number: candidates.sentences[number].number)
    scale = float(ranks.max())
    return Summary(
        tuple(
            SummarySentence(sentence.text, sentence.number, float(ranks[number]) / scale, sentence.offsets)
            for number in ordered
            for sentence in (candidates.sentences[number],)
        ),
        total,
    )


def _reduce(candidates: _Candidates, mean: Floats, count: int, diversity: float) -> _Candidates:
    """The best half of the candidates."""
    ranks, cosines = rank_sentences(
        np.stack(candidates.vectors), _measure_lengths(candidates.sentences), mean
    )
    chosen = sorted(choose_sentences(ranks, cosines, count, diversity))
    return _Candidates(
        [candidates.sentences[number] for number in chosen], [candidates.vectors[number] for number in chosen]
    )


def _split_blocks(sentences: Iterable[TextSentence], size: int) -> Iterator[list[TextSentence]]:
    iterator = iter(sentences)
    while part := list(islice(iterator, size)):
        yield part


def _embed(elmo: Elmo, sentences: Sequence[TextSentence]) -> Floats:
    """The vectors of sentences (N, H): pooled to compare sentences, if the model was fitted for it."""
    pool = "mean" if elmo.model.pooling is None else "sentence"
    tokens = [sentence.tokens for sentence in sentences]
    vectors: Floats = elmo.embed(tokens, pool=pool, progress=False)  # type: ignore[call-overload]
    return vectors


def _measure_lengths(sentences: Sequence[TextSentence]) -> Floats:
    return np.array([len(sentence.tokens) for sentence in sentences], np.float32)


def rank_sentences(vectors: Floats, lengths: Floats, mean: Floats | None = None) -> tuple[Floats, Floats]:
    """Rank sentences by a graph.

    Args:
        vectors: (N, H).
        lengths: (N,) in tokens.
        mean: (H,) of the whole text, which is subtracted: it has what all sentences have in common. None is
            the mean of these sentences.

    Returns:
        The ranks (N,), which sum to 1, and the cosines (N, N).

    """
    centred = vectors - (vectors.mean(axis=0) if mean is None else mean)
    if len(vectors) < 3:  # a mean of so few leaves nothing but their difference
        centred = vectors
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    units = centred / np.maximum(norms, 1e-9)
    cosines = units @ units.T
    weights = np.maximum(cosines, 0.0)
    np.fill_diagonal(weights, 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, weights / np.maximum(sums, 1e-9), 1.0 / len(vectors))
    prior = np.minimum(1.0, lengths / FULL_LENGTH)
    prior = prior / max(float(prior.sum()), 1e-9)
    ranks = prior.copy()
    for _ in range(ITERATIONS):
        ranks = (1 - DAMPING) * prior + DAMPING * (ranks @ shares)
    return ranks.astype(np.float32), cosines.astype(np.float32)


def choose_sentences(ranks: Floats, cosines: Floats, count: int, diversity: float) -> list[int]:
    """Sentences of high rank that differ, the best one first."""
    values = ranks / max(float(ranks.max()), 1e-9)
    nearest = np.zeros(len(ranks), np.float32)  # cosine to the nearest chosen sentence
    chosen: list[int] = []
    for _ in range(min(count, len(ranks))):
        scores = (1 - diversity) * values - diversity * nearest
        scores[chosen] = -np.inf
        best = int(scores.argmax())
        chosen.append(best)
        nearest = np.maximum(nearest, cosines[best])
    return chosen
