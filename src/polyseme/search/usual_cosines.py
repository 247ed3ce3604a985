"""What cosines are usual in a corpus: of usages of one word, and of usages of words at random.

    search.index, search.contexts  ->  search.usual_cosines  ->  search.index, search.similarity

A cosine says little by itself: two usages of one word may have 0.5 in one index and 0.9 in another. Only
content words are drawn, so that no cosine is that of two commas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from polyseme.search.index import Index

Numbers = NDArray[np.int64]
SAMPLE = 30_000  # usages that are drawn to find pairs of the same word among them
PAIRS = 1500  # of each kind
PAIRS_PER_WORD = 5
STEPS = 20  # quantiles at 0, 5, … 100%


@dataclass(frozen=True)
class UsualCosines:
    """Cosines of pairs of usages of an index, in its layer and its space.

    Attributes:
        same_word: Of usages of one content word, the quantiles from 0 to 100% in equal steps.
        random: The same of usages of any two content words.

    """

    same_word: tuple[float, ...]
    random: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"same_word": list(self.same_word), "random": list(self.random)}

    def __str__(self) -> str:
        parts = ("one word", self.same_word), ("random words", self.random)
        return ", ".join(f"{name} {_describe(quantiles)}" for name, quantiles in parts)


def _describe(quantiles: tuple[float, ...]) -> str:
    """Most of the values: without the 5% at either end."""
    return f"{quantiles[1]:.2f} to {quantiles[-2]:.2f}"


def measure_usual_cosines(index: Index, seed: int = 0) -> UsualCosines | None:
    """Measure the cosines of random pairs of usages.

    Args:
        index: A whole index.
        seed: Seeds the sampling.

    Returns:
        The quantiles; None if no content word is drawn twice.

    """
    rng = np.random.default_rng(seed)
    size, reader = len(index), index.context_reader
    drawn = np.arange(size) if size <= SAMPLE else np.unique(rng.integers(0, size, SAMPLE))
    words = reader.find_word_rows(drawn)
    is_content = reader.is_content[words]
    drawn, words = drawn[is_content], words[is_content]
    same = _pair_same_words(drawn, words, rng)
    if not len(same):
        return None
    shuffled = rng.permutation(len(drawn))
    half = min(len(shuffled) // 2, PAIRS)
    pairs = np.stack([shuffled[:half], shuffled[half : 2 * half]], axis=1)
    random = drawn[pairs[words[pairs[:, 0]] != words[pairs[:, 1]]]]
    return UsualCosines(*(_find_quantiles(index, numbers) for numbers in (same, random)))


def _pair_same_words(drawn: Numbers, words: Numbers, rng: np.random.Generator) -> Numbers:
    """Pairs (P, 2) of usages of the same word, at most PAIRS_PER_WORD of each word."""
    order = rng.permutation(len(drawn))
    order = order[np.argsort(words[order], kind="stable")]
    first, second = order[:-1], order[1:]
    same = words[first] == words[second]
    starts = np.flatnonzero(np.concatenate([[True], words[first][1:] != words[first][:-1]]))[: len(first)]
    rank = np.arange(len(first)) - np.repeat(starts, np.diff([*starts, len(first)]))
    chosen = np.flatnonzero(same & (rank < PAIRS_PER_WORD))
    chosen = rng.permutation(chosen)[:PAIRS]
    pairs: Numbers = drawn[np.stack([first[chosen], second[chosen]], axis=1)]
    return pairs


def _find_quantiles(index: Index, pairs: Numbers) -> tuple[float, ...]:
    if not len(pairs):
        return (0.0,) * (STEPS + 1)
    numbers, rows = np.unique(pairs, return_inverse=True)
    vectors = index.vectors(numbers)[rows.reshape(pairs.shape)]  # (P, 2, H)
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(axis=1)
    return tuple(float(value) for value in np.quantile(cosines, np.linspace(0, 1, STEPS + 1)))
