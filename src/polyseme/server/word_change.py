"""What takes seconds, within bounds: how words changed between two indexes.

    search.change  ->  server.word_change  ->  server.verbs

The figures are the library's own. All frequent words are first ranked by how far they moved, which is quick;
only those that moved most are then compared in all else. Work ends when its time is over, or when nobody
waits for it; what was found is kept, so that the next request goes on from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

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

PAIRS = 4  # of indexes whose changes are kept
KEPT = 1200  # changes of words that are kept for a pair: as many as can be asked for at once, and some
EQUAL = 1e-9  # prototypes that differ less may change places when all figures are there
NAMED = 4  # words that name a sense
SPARE = 20  # words that may have moved as far as the last of those that are told
Value = TypeVar("Value")


class IndexPair:
    """Two indexes, and what is known already of the change of words between them. For one thread."""

    def __init__(self, one: Index, other: Index) -> None:
        self.one, self.other = one, other
        self.moved: dict[str, float] = {}  # frequent words, and how far they moved
        self._found: dict[str, Change] = {}
        self._neighbours: dict[str, list[list[str]]] = {}

    @cached_property
    def frequent(self) -> list[str]:
        """The words to rank, the most frequent first: they are reached whatever the time."""
        counts = find_common_words(self.one, self.other, MIN_COUNT)
        return sorted(counts, key=lambda word: -counts[word])

    def move(self, word: str) -> None:
        """Find how far a word moved."""
        if word not in self.moved:
            self.moved[word] = measure_prototype_distance(*sample_usages(self.one, self.other, word))

    def knows(self, word: str) -> bool:
        """Whether all figures of a word are kept."""
        return word in self._found

    def change(self, word: str) -> Change:
        """All figures of a word, as the library finds them."""
        if word not in self._found:
            while len(self._found) >= KEPT:
                oldest = next(iter(self._found))
                del self._found[oldest]
                self._neighbours.pop(oldest, None)
            (self._found[word],) = find_changes(self.one, self.other, [word])
        return self._found[word]

    def neighbours(self, change: Change) -> list[list[str]]:
        """The words of the first index that lie nearest to each sense of a word."""
        if change.word not in self._neighbours:
            near = self.one.nearest_words(change.centres, NAMED, without=change.word)
            self._neighbours[change.word] = near
        return self._neighbours[change.word]

    def first(self, k: int) -> list[str]:
        """The words that moved most: `k`, and some that moved as far as the last of them."""
        order = [word for word in self.one.words.words if word in self.moved]  # of the library, where equal
        order.sort(key=lambda word: -self.moved[word])
        least = min((self.moved[word] for word in order[:k]), default=0.0) - EQUAL
        return [word for word in order[: k + SPARE] if self.moved[word] >= least]


class IndexPairs:
    """The pairs of indexes that were asked for last."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, int], IndexPair] = {}

    def of(self, one: Index, other: Index) -> IndexPair:
        """The pair, with what is known of it."""
        key = (id(one), id(other))  # a pair keeps its indexes, so no other can have their numbers
        pair = self._pairs.pop(key, None) or IndexPair(one, other)
        self._pairs[key] = pair
        if len(self._pairs) > PAIRS:
            del self._pairs[next(iter(self._pairs))]
        return pair


class ChangeStudy:
    """The change of words between two indexes, found in about so many seconds."""

    def __init__(self, pair: IndexPair, seconds: float) -> None:
        self._pair, self._seconds = pair, seconds
        self._end = float("inf")
        self.left = threading.Event()  # nobody waits any more
        self.complete = True  # all words that were to be looked at were

    def named(self, words: Sequence[str]) -> list[Change]:
        """The change of these words, the greatest first."""
        self._end = time.monotonic() + self._seconds
        check_comparable(self._pair.one, self._pair.other)
        return sort_changes(self._changes(words))

    def frequent(self, k: int) -> list[Change]:
        """The change of the `k` frequent words that moved most, the greatest first."""
        check_comparable(self._pair.one, self._pair.other)
        begun = time.monotonic()
        self._end = begun + self._seconds / 2
        for word in self._pair.frequent:
            if word not in self._pair.moved and self._over():
                self.complete = False
                break
            self._pair.move(word)
        self._end = begun + self._seconds
        return sort_changes(self._changes(self._pair.first(k)))[:k]

    def _changes(self, words: Sequence[str]) -> list[Change]:
        """The changes of words, as far as the time goes, but of one at least."""
        found: list[Change] = []
        for word in words:
            if found and not self._pair.knows(word) and self._over():
                self.complete = False
                break
            found.append(self._pair.change(word))
        return found

    def _over(self) -> bool:
        return self.left.is_set() or time.monotonic() > self._end


def names_alone(by_path: Mapping[str, Value]) -> dict[str, Value]:
    """Values by the names of files instead of their paths; the second file of a name gets a number."""
    found: dict[str, Value] = {}
    for path, value in by_path.items():
        name, number = Path(path).name, 1
        while name in found:
            number += 1
            name = f"{Path(path).name} ({number})"
        found[name] = value
    return found
