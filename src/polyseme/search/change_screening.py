"""Screen frequent words before a few are compared in full: their distance, and whether it is due to chance.

    search.change_statistics, search.index  ->  search.change_screening  ->  search.change, server

A distance means little by itself: usages of any word differ between two authors. So the distance of a word is
compared with those of words of similar frequency (controls), and its p-value is corrected for the number of
words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.search.change_statistics import (
    PERMUTATIONS,
    correct_p_values,
    estimate_p,
    measure_distances,
)
from polyseme.search.index import Index

MAX_USAGES = 500  # of a word in each corpus; of more a sample is drawn
MIN_USAGES = 5  # of a word in each corpus
MIN_COUNT = 20  # usages in both corpora of words that are compared unless words are named
CONTROLS = 50  # words of similar frequency
TOLERANCE = 1e-9  # distances that differ less may swap ranks when compared in full
TIES = 20  # words beyond the k asked for, if they tie with the last

Numbers = NDArray[np.int64]
Directions = NDArray[np.float32]


class ScreenedWord(NamedTuple):
    """Result of screening a word: its prototype distance, and p."""

    prototype: float
    p: float


@dataclass(frozen=True)
class Significance:
    """How unusual the change of a word is.

    Attributes:
        q: p-value corrected for the number of words compared (Benjamini-Hochberg).
        usual: The median change of words of similar frequency.
        percentile: Share of words of similar frequency that changed less; None without such words.

    """

    q: float
    usual: float
    percentile: float | None


class ChangeScreening:
    """Distances of words between two indexes, computed once for each word. Not thread-safe."""

    def __init__(self, first: Index, second: Index, seed: int = 0) -> None:
        self.first, self.second, self._seed = first, second, seed
        self.screened: dict[str, ScreenedWord] = {}
        self._prototypes: dict[str, float] = {}  # of words that nobody asks the p-value of, too
        self._words: dict[tuple[int, bool], list[str]] = {}

    @cached_property
    def _counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """The usages of every word in both indexes."""
        return self.first.counts(), self.second.counts()

    def words(self, min_count: int = MIN_COUNT, *, all_words: bool = False) -> list[str]:
        """Return the words to rank, most frequent first: content words, or all but punctuation."""
        key = (max(min_count, MIN_USAGES), all_words)
        if key not in self._words:
            counts = find_common_words(self.first, self.second, key[0], all_words=all_words)
            self._words[key] = sorted(counts, key=lambda word: -counts[word])
        return self._words[key]

    def screen(self, word: str) -> ScreenedWord:
        """Return the prototype distance of a word, and how often chance gives as much."""
        if word not in self.screened:
            samples = sample_usages(self.first, self.second, word, self._seed)
            _, prototypes = measure_distances(*samples, PERMUTATIONS, self._seed)
            self.screened[word] = ScreenedWord(float(prototypes[0]), estimate_p(prototypes))
            self._prototypes[word] = float(prototypes[0])
        return self.screened[word]

    def measure_prototype(self, word: str) -> float:
        """Return the prototype distance of a word alone, without the permutations that p needs."""
        if word not in self._prototypes:
            samples = sample_usages(self.first, self.second, word, self._seed)
            self._prototypes[word] = float(measure_distances(*samples)[1][0])
        return self._prototypes[word]

    def top_words(self, k: int, words: Iterable[str]) -> list[str]:
        """Return the `k` screened words with the greatest distance, and those that tie with the last."""
        chosen = self.screened.keys() & set(words)
        order = [word for word in self._counts[0] if word in chosen]  # of ties the most frequent
        order.sort(key=lambda word: -self.screened[word].prototype)
        least = min((self.screened[word].prototype for word in order[:k]), default=0.0) - TOLERANCE
        return [word for word in order[: k + TIES] if self.screened[word].prototype >= least]

    def judge(self, words: list[str], compared: Iterable[str]) -> dict[str, Significance]:
        """Return how unusual the changes of words are.

        Args:
            words: The words.
            compared: All words that were compared to choose them: p-values are corrected for their number.

        """
        names = list(dict.fromkeys([*(word for word in compared if word in self.screened), *words]))
        corrected = correct_p_values([self.screen(word).p for word in names])
        q_values = dict(zip(names, corrected, strict=True))
        judged = {}
        for word in words:
            distances = np.array([self.measure_prototype(control) for control in self.controls(word)])
            below = float((distances < self.screen(word).prototype).mean()) if len(distances) else None
            usual = float(np.median(distances)) if len(distances) else 0.0
            judged[word] = Significance(q_values[word], usual, below)
        return judged

    def controls(self, word: str) -> list[str]:
        """Return the content words whose frequency is nearest to that of a word in both indexes."""
        candidates = [candidate for candidate in self.words(MIN_USAGES) if candidate != word]
        distances = np.zeros(len(candidates))
        for counts in self._counts:
            of_candidates = np.array([counts[candidate] for candidate in candidates], np.float64)
            distances += np.abs(np.log(of_candidates / counts[word]))
        return [candidates[row] for row in np.argsort(distances, kind="stable")[:CONTROLS]]


def find_common_words(
    first: Index, second: Index, min_count: int, *, all_words: bool = False
) -> dict[str, int]:
    """Return the words with `min_count` usages in both indexes, with the smaller count.

    Args:
        first: An index.
        second: Another index.
        min_count: Usages that a word needs in both.
        all_words: Include function words and numbers; punctuation is always left out.

    """
    second_counts = second.counts()
    functions = first.context_reader.function_words | second.context_reader.function_words
    return {  # the cheap conditions first
        word: min(count, second_counts[word])
        for word, count in first.counts().items()
        if count >= min_count
        and second_counts.get(word, 0) >= max(min_count, 1)
        and (all_words or word not in functions)
        and any(map(str.isalnum, word))
    }


def sample_numbers(first: Index, second: Index, word: str, seed: int = 0) -> tuple[Numbers, Numbers]:
    """Return the numbers of at most MAX_USAGES usages of a word in each index."""
    rng = np.random.default_rng(seed)
    samples = []
    for index in (first, second):
        numbers = index.usage_numbers(word)
        if len(numbers) > MAX_USAGES:
            numbers = np.sort(rng.choice(numbers, MAX_USAGES, replace=False))
        samples.append(numbers)
    return samples[0], samples[1]


def read_directions(
    first: Index, second: Index, numbers: tuple[Numbers, Numbers]
) -> tuple[Directions, Directions]:
    """Return the directions (N, H) of usages of both indexes in the space of the first.

    With two spaces, the difference of the spaces would count as change.
    """
    space = first.space
    return (
        space.to_directions(first.raw_vectors(numbers[0])),
        space.to_directions(second.raw_vectors(numbers[1])),
    )


def sample_usages(first: Index, second: Index, word: str, seed: int = 0) -> tuple[Directions, Directions]:
    """Return the directions (N, H) of at most MAX_USAGES usages of a word in each index, in one space."""
    return read_directions(first, second, sample_numbers(first, second, word, seed))
