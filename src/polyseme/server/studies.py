"""What takes seconds, within bounds: how words changed between two indexes.

    search.change  ->  server.studies  ->  server.verbs

All frequent words are first ranked by how far a few of their usages moved, which is quick; only those that
moved most are then looked at closely. Work ends when its time is over, or when nobody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polyseme.search.change import (
    Change,
    check_pair,
    common_words,
    compare,
    find_change,
    greatest_first,
    prototype,
)
from polyseme.search.index import Index

COMMON = 20  # usages in both indexes; words with fewer are compared only where they are named
USAGES = 100  # of a word that nobody named, in each index
Value = TypeVar("Value")


class Study:
    """The change of words between two indexes, found in about so many seconds."""

    def __init__(self, one: Index, other: Index, seconds: float) -> None:
        self._one, self._other = one, other
        self._seconds = seconds
        self._end = float("inf")
        self.left = threading.Event()  # nobody waits any more

    def named(self, words: Sequence[str]) -> list[Change]:
        """The change of these words, as the library finds it, the greatest first."""
        self._end = time.monotonic() + self._seconds
        check_pair(self._one, self._other)
        found: list[Change] = []
        for word in words:
            if found and self._over():
                break
            found += find_change(self._one, self._other, [word])
        return greatest_first(found)

    def frequent(self, k: int) -> list[Change]:
        """The change of the `k` frequent words that moved most, the greatest first."""
        check_pair(self._one, self._other)
        begun = time.monotonic()
        self._end = begun + self._seconds / 2
        moved: dict[str, float] = {}
        for word in self._common():
            if self._over():
                break
            moved[word] = prototype(*self._usages(word))
        self._end = begun + self._seconds
        found: list[Change] = []
        for word in sorted(moved, key=lambda word: -moved[word])[:k]:
            if found and self._over():
                break
            counts = (self._one.words.count(word), self._other.words.count(word))
            found.append(compare(word, *self._usages(word), counts))
        return greatest_first(found)

    def _over(self) -> bool:
        return self.left.is_set() or time.monotonic() > self._end

    def _common(self) -> list[str]:
        """Words with enough usages in both indexes, the most frequent first."""
        counts = common_words(self._one, self._other, COMMON)
        return sorted(counts, key=lambda word: -counts[word])

    def _usages(self, word: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors of some usages in each index, from all parts of its text, in one space."""
        space = self._one.space
        drawn = []
        for index in (self._one, self._other):
            rows = index.rows(word)
            some = np.linspace(0, len(rows) - 1, min(USAGES, len(rows))).astype(int)
            drawn.append(space.apply(index.raw(rows[some])))
        return drawn[0], drawn[1]


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
