"""Number and count words in bounded memory, and rank them.

    text.corpus.workers  ->  text.corpus.counts  ->  text.corpus.build

Input: the distinct words of a chunk with their counts. Output: first a number for each word by first
occurrence, at the end types in their final order: the initial words (three special words, or a whole
vocabulary), then words by falling frequency, ties by first occurrence, then pruned words in the order of
pruning.

When more than `max_types` words are in memory (live), the rarer half is moved to a file. A pruned word that
occurs again gets a new number. At the end the file is read back, and the pruned counts of live words are
added to them, so the counts of all live words are exact. A word that is not live at the end occurred at most
`count_error` times. Memory is bounded by `max_types`; in addition there are four bytes on disk for every
number.

What must not change: a word has one number among the first V; numbers above may repeat a pruned word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.io.memory_map import release
from polyseme.text.corpus.workers import RESERVED

IntArray = NDArray[np.int64]

_NOT_LIVE = -1
_BATCH = 20_000  # words processed at once


class TypeRanks(NamedTuple):
    """The final order of types."""

    types: int
    words: int  # V
    counts: IntArray  # (V,)
    numbers: NDArray[np.uint32]  # number by first occurrence -> type, a memory map


class WordCounter:
    """Counts the words of a corpus while it is read."""

    def __init__(
        self, folder: Path, initial: Sequence[str], specials: tuple[int, int, int], max_types: int
    ) -> None:
        self._folder, self._initial, self._max_types = folder, tuple(initial), max_types
        names = {initial[position] for position in specials}
        self._reserved, self._unknown = RESERVED | names, specials[2]
        # A live word has a slot; slots stay in the order of the numbers.
        self._slots = {word: slot for slot, word in enumerate(initial) if word not in names}
        self._counts = np.zeros(max(2 * len(initial), 1 << 16), np.int64)
        self._numbers = np.zeros(len(self._counts), np.uint32)
        self._numbers[: len(initial)] = np.arange(len(initial))
        self._live = self._seen = len(initial)
        self._pruned = folder / "pruned.txt"
        self.pruned_types = self.count_error = 0

    def add(self, words: list[str], counts: IntArray) -> NDArray[np.uint32]:
        """Count distinct words; return the number of each."""
        get = self._slots.get
        slots = np.fromiter((get(word, _NOT_LIVE) for word in words), np.int64, len(words))
        for index in np.flatnonzero(slots == _NOT_LIVE).tolist():
            slots[index] = self._add_word(words[index])
        np.add.at(self._counts, slots, counts)  # several reserved words may share a slot
        numbers = self._numbers[slots]
        if self._live - len(self._initial) > self._max_types:
            self._prune()
        return numbers

    def _add_word(self, word: str) -> int:
        """Give a new word a slot and a number; reserved words are the unknown word."""
        if word in self._reserved:
            return self._unknown
        if self._live == len(self._counts):
            self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
            self._numbers = np.concatenate((self._numbers, np.zeros_like(self._numbers)))
        slot = self._slots[word] = self._live
        self._counts[slot], self._numbers[slot] = 0, self._seen
        self._live += 1
        self._seen += 1
        return slot

    def _prune(self) -> None:
        """Move the rarer half of the live words to a file."""
        first, live = len(self._initial), self._live
        counts = self._counts[first:live]
        keep = self._max_types // 2
        limit = int(np.partition(counts, len(counts) - keep - 1)[len(counts) - keep - 1])
        stays = np.ones(live, bool)
        stays[first:] = counts > limit
        new_slots = stays.cumsum() - 1  # by old slot
        stays_list = stays.tolist()  # plain values are faster one by one
        with self._pruned.open("a", encoding="utf-8", newline="\n") as file:
            for word, slot in self._slots.items():
                if not stays_list[slot]:
                    file.write(f"{word}\t{self._numbers[slot]}\t{self._counts[slot]}\n")
        self._slots = {word: int(new_slots[slot]) for word, slot in self._slots.items() if stays_list[slot]}
        self.pruned_types += live - int(stays.sum())
        self.count_error += limit
        self._live = int(stays.sum())
        self._counts[: self._live] = self._counts[:live][stays]
        self._numbers[: self._live] = self._numbers[:live][stays]

    def close(self) -> None:
        """Add the pruned counts of live words; no word may be added after this."""
        file = self._folder / "slots"
        with file.open("wb") as out:  # written, not only mapped: a full disk is an error then, not a crash
            for start in range(0, self._seen, _BATCH):
                out.write(np.full(min(_BATCH, self._seen - start), _NOT_LIVE, np.int32).tobytes())
        self._slot_of = np.memmap(file, np.int32, "r+")
        self._slot_of[self._numbers[: self._live]] = np.arange(self._live, dtype=np.int32)
        for word, number, times in self._read_pruned():
            slot = self._slots.get(word, _NOT_LIVE)
            if slot != _NOT_LIVE:
                self._slot_of[number] = slot
                self._counts[slot] += times
        release(self._slot_of)

    def subtract(self, numbers: NDArray[np.uint32]) -> None:
        """Subtract held-out words from the counts."""
        slots = self._slot_of[numbers]
        self._counts[: self._live] -= np.bincount(slots[slots != _NOT_LIVE], minlength=self._live)
        release(self._slot_of)

    def __len__(self) -> int:
        """The number of live words, without the special words."""
        return len(self._slots)

    def characters(self) -> Counter[str]:
        """How often each character occurs in live words."""
        frequencies: Counter[str] = Counter()
        counts = self._counts[: self._live].tolist()
        for word, slot in self._slots.items():
            for character in word:
                frequencies[character] += counts[slot]
        return frequencies

    def rank(self, min_count: int, max_words: int) -> TypeRanks:
        """Sort the types and write them to `types.txt`, one per line."""
        first, live = len(self._initial), self._live
        counts = self._counts[:live]
        order = np.concatenate((np.arange(first), first + np.argsort(-counts[first:], kind="stable")))
        enough = int((counts[first:] >= min_count).sum())
        words = first + min(enough, max_words)
        types = np.empty(live, np.uint32)  # by slot
        types[order] = np.arange(live, dtype=np.uint32)
        numbers = self._slot_of.view(np.uint32)  # slots become types in place, block by block
        for start in range(0, self._seen, _BATCH):
            slots = self._slot_of[start : start + _BATCH]
            numbers[start : start + _BATCH] = types[slots]  # numbers of pruned words are corrected below
            release(self._slot_of)
        total = live
        names = list(self._initial) + [""] * (live - first)
        for word, slot in self._slots.items():
            names[slot] = word
        with (self._folder / "types.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{names[slot]}\n" for slot in order.tolist())
            for word, number, _ in self._read_pruned():
                if word not in self._slots:
                    numbers[number] = total
                    total += 1
                    file.write(f"{word}\n")
        release(self._slot_of)
        return TypeRanks(total, words, counts[order[:words]].copy(), numbers)

    def _read_pruned(self) -> Iterator[tuple[str, int, int]]:
        if not self._pruned.exists():
            return
        with self._pruned.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                word, number, times = line.rstrip("\n").rsplit("\t", 2)
                yield word, int(number), int(times)


def read_types(folder: Path) -> Iterator[list[str]]:
    """Read the types of a prepared corpus in order, in blocks."""
    with (folder / "types.txt").open(encoding="utf-8", newline="\n") as file:
        while lines := list(islice(file, _BATCH)):
            yield [line.removesuffix("\n") for line in lines]
