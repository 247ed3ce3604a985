"""Find how words changed between two indexes, within a time limit.

    search.change  ->  server.word_change  ->  server.verbs

The numbers are those of `polyseme.change`. All frequent words are first ranked by the distance of their mean
vectors, which is quick; only the top of that ranking is compared in full. A search ends when its time is over
or its request is gone; what it computed is kept, and the next request continues from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import cached_property

from polyseme.search.change import (
    MIN_COUNT,
    Change,
    check_comparable,
    find_changes,
    find_common_words,
    measure_prototype_distance,
    sample_usages,
    sort_changes,
)
from polyseme.search.index import Index

MAX_PAIRS = 4  # pairs of indexes whose changes are kept
MAX_CHANGES = 1200  # kept per pair: a bit more than one request can ask for
TOLERANCE = 1e-9  # distances that differ less may swap ranks when compared in full
SENSE_NEIGHBOURS = 4  # words that describe a sense
TIES = 20  # words compared in full beyond the k asked for, if they tie with the last


class IndexPair:
    """Two indexes, and the changes of words computed so far. Not thread-safe."""

    def __init__(self, first: Index, second: Index, *, max_changes: int = MAX_CHANGES) -> None:
        self.first, self.second, self._max_changes = first, second, max_changes
        self.distances: dict[str, float] = {}  # of the mean vectors of frequent words
        self._changes: dict[str, Change] = {}
        self._neighbours: dict[str, list[list[str]]] = {}

    @cached_property
    def frequent_words(self) -> list[str]:
        """The words to rank, most frequent first, so that these are reached whatever the time limit."""
        counts = find_common_words(self.first, self.second, MIN_COUNT)
        return sorted(counts, key=lambda word: -counts[word])

    def compute_distance(self, word: str) -> None:
        """Compute the distance of the mean vectors of a word."""
        if word not in self.distances:
            self.distances[word] = measure_prototype_distance(*sample_usages(self.first, self.second, word))

    def has_change(self, word: str) -> bool:
        """Whether the change of a word is known already."""
        return word in self._changes

    def change(self, word: str) -> Change:
        """The change of a word, as `polyseme.change` computes it."""
        if word not in self._changes:
            while len(self._changes) >= self._max_changes:
                oldest = next(iter(self._changes))
                del self._changes[oldest]
                self._neighbours.pop(oldest, None)
            (self._changes[word],) = find_changes(self.first, self.second, [word])
        return self._changes[word]

    def neighbours(self, change: Change) -> list[list[str]]:
        """For each sense of a word, the nearest words of the first index."""
        if change.word not in self._neighbours:
            nearest = self.first.nearest_words(change.centres, SENSE_NEIGHBOURS, without=change.word)
            self._neighbours[change.word] = nearest
        return self._neighbours[change.word]

    def top_words(self, k: int) -> list[str]:
        """The `k` words with the greatest distance, and those that tie with the last of them."""
        order = [
            word for word in self.first.words.words if word in self.distances
        ]  # ties: the library's order
        order.sort(key=lambda word: -self.distances[word])
        least = min((self.distances[word] for word in order[:k]), default=0.0) - TOLERANCE
        return [word for word in order[: k + TIES] if self.distances[word] >= least]


class IndexPairCache:
    """The most recently used pairs of indexes."""

    def __init__(self, *, max_pairs: int = MAX_PAIRS, max_changes: int = MAX_CHANGES) -> None:
        self._max_pairs, self._max_changes = max_pairs, max_changes
        self._pairs: dict[tuple[int, int], IndexPair] = {}

    def get(self, first: Index, second: Index) -> IndexPair:
        """The pair of these indexes, with its changes computed so far."""
        key = (id(first), id(second))  # a pair holds its indexes, so that no other index gets their ids
        pair = self._pairs.pop(key, None) or IndexPair(first, second, max_changes=self._max_changes)
        self._pairs[key] = pair
        if len(self._pairs) > self._max_pairs:
            del self._pairs[next(iter(self._pairs))]
        return pair


class ChangeSearch:
    """One search for changed words.

    Args:
        pair: The two indexes.
        seconds: Time limit; at least one word is compared.

    """

    def __init__(self, pair: IndexPair, seconds: float) -> None:
        self._pair, self._seconds = pair, seconds
        self._end = float("inf")
        self.abandoned = threading.Event()  # set when the request is gone
        self.complete = True  # False if time ran out

    def compare_words(self, words: Sequence[str]) -> list[Change]:
        """The changes of these words, greatest first."""
        self._end = time.monotonic() + self._seconds
        check_comparable(self._pair.first, self._pair.second)
        return sort_changes(self._compare(words))

    def find_most_changed(self, k: int) -> list[Change]:
        """The changes of the `k` frequent words that changed most, greatest first."""
        check_comparable(self._pair.first, self._pair.second)
        start = time.monotonic()
        self._end = start + self._seconds / 2
        for word in self._pair.frequent_words:
            if word not in self._pair.distances and self._is_over():
                self.complete = False
                break
            self._pair.compute_distance(word)
        self._end = start + self._seconds
        return sort_changes(self._compare(self._pair.top_words(k)))[:k]

    def _compare(self, words: Sequence[str]) -> list[Change]:
        """The changes of words until time runs out, but of one at least."""
        changes: list[Change] = []
        for word in words:
            if changes and not self._pair.has_change(word) and self._is_over():
                self.complete = False
                break
            changes.append(self._pair.change(word))
        return changes

    def _is_over(self) -> bool:
        return self.abandoned.is_set() or time.monotonic() > self._end
