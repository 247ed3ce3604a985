"""How many sentences or documents are exact repeats, in bounded memory.

    text.corpus.renumber  ->  text.corpus.duplicates  ->  text.corpus.prepared

Comes in: 64-bit hashes. Goes out: a number. Up to `most` distinct hashes all are kept and the number is
exact (but for equal hashes of different text, one in 10^6 at ten million sentences). Beyond, only hashes
that end in k zero bits are kept, one in 2^k: the number is then an estimate, and says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


class RepeatCounter:
    """Counts hashes that came before."""

    def __init__(self, most: int = 1_000_000) -> None:
        self._most, self._bits = most, 0
        self._hashes = np.zeros(0, np.uint64)  # sorted, distinct
        self._times = np.zeros(0, np.int64)
        self._waiting: list[Hashes] = []
        self._waiting_size = 0

    def add(self, hashes: Hashes) -> None:
        """Take some more hashes."""
        kept = self._sampled(hashes)
        self._waiting.append(kept)
        self._waiting_size += len(kept)
        if self._waiting_size >= self._most // 2:
            self._merge()

    def count(self) -> int:
        """How many hashes were there before they came again."""
        self._merge()
        return (int(self._times.sum()) - len(self._hashes)) << self._bits

    @property
    def estimated(self) -> bool:
        """Whether `count` is an estimate."""
        return self._bits > 0

    def _sampled(self, hashes: Hashes) -> Hashes:
        return hashes[hashes & np.uint64((1 << self._bits) - 1) == 0] if self._bits else hashes

    def _merge(self) -> None:
        every = np.concatenate((self._hashes, *self._waiting))
        times = np.ones(len(every), np.int64)
        times[: len(self._times)] = self._times
        self._hashes, places = np.unique(every, return_inverse=True)
        self._times = np.bincount(places, times, minlength=len(self._hashes)).astype(np.int64)
        self._waiting, self._waiting_size = [], 0
        while len(self._hashes) > self._most:
            self._bits += 1
            kept = self._hashes & np.uint64((1 << self._bits) - 1) == 0
            self._hashes, self._times = self._hashes[kept], self._times[kept]
