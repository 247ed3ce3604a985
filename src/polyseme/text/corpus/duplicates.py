"""Count exact repeats of sentences or documents, in bounded memory.

    hashes of text  ->  text.corpus.duplicates  ->  text.corpus.renumber

Input: 64-bit hashes. Output: a number. Up to `max_hashes` distinct hashes all are stored and the number is
exact (except for equal hashes of different text, one in 10^6 at ten million sentences). Above that, only
hashes that end in k zero bits are stored, one in 2^k, and the number is an estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


class RepeatCounter:
    """Counts repeated hashes."""

    def __init__(self, max_hashes: int = 1_000_000) -> None:
        self._max_hashes, self._bits = max_hashes, 0
        self._hashes = np.zeros(0, np.uint64)  # sorted, distinct
        self._times = np.zeros(0, np.int64)
        self._waiting: list[Hashes] = []
        self._waiting_size = 0

    def add(self, hashes: Hashes) -> None:
        """Add hashes."""
        sampled = self._sample(hashes)
        self._waiting.append(sampled)
        self._waiting_size += len(sampled)
        if self._waiting_size >= self._max_hashes // 2:
            self._merge()

    def count(self) -> int:
        """The number of repeats."""
        self._merge()
        return (int(self._times.sum()) - len(self._hashes)) << self._bits

    @property
    def estimated(self) -> bool:
        """Whether `count` is an estimate."""
        return self._bits > 0

    def _sample(self, hashes: Hashes) -> Hashes:
        return hashes[hashes & np.uint64((1 << self._bits) - 1) == 0] if self._bits else hashes

    def _merge(self) -> None:
        every = np.concatenate((self._hashes, *self._waiting))
        times = np.ones(len(every), np.int64)
        times[: len(self._times)] = self._times
        self._hashes, rows = np.unique(every, return_inverse=True)
        self._times = np.bincount(rows, times, minlength=len(self._hashes)).astype(np.int64)
        self._waiting, self._waiting_size = [], 0
        while len(self._hashes) > self._max_hashes:
            self._bits += 1
            kept = self._hashes & np.uint64((1 << self._bits) - 1) == 0
            self._hashes, self._times = self._hashes[kept], self._times[kept]
