"""Which part of a corpus is held out, chosen from its stream: documents, stretches, or every n-th sentence.

    text.corpus.prepared  ->  text.corpus.split  ->  text.corpus.prepared

Comes in: where documents start in the stream, and how much is wanted. Goes out: `HeldOut`, which says of
every sentence whether it is held out.

Whole documents are taken in the order of a hash of their number and the seed, until there is enough. Where
documents are few or large, so that whole ones would take too much of the text (a novel in one file),
stretches of neighbouring sentences, spread evenly over the text, are held out instead.

What must not change: the plan depends on the stream, the wanted amount and the seed only; a sentence is
either held out or trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

_STRETCH = 250  # words: a page; longer where much is held out, for at most _MOST_STRETCHES
_MOST_STRETCHES = 40
_SORTED_AT_ONCE = 100_000  # documents
_WINDOW = 1 << 14


@dataclass(frozen=True)
class HeldOut:
    """Places in the stream that are held out; they begin and end with sentences."""

    how: str
    intervals: IntArray  # (n, 2), sorted, apart
    every: int | None = None
    documents: int = 0  # that are held out whole

    def chosen(self, starts: IntArray, before: int) -> NDArray[np.bool_]:
        """Which sentences are held out, of those that start at `starts`, after `before` others."""
        if self.every is not None:
            numbers: IntArray = np.arange(before + 1, before + 1 + len(starts))
            return np.equal(numbers % self.every, 0)
        if not len(self.intervals):
            return np.zeros(len(starts), bool)
        nearest = np.searchsorted(self.intervals[:, 0], starts, side="right") - 1
        inside: NDArray[np.bool_] = (nearest >= 0) & (starts < self.intervals[nearest, 1])
        return inside


def hold_out_nothing(how: str = "nothing") -> HeldOut:
    """The plan that holds nothing out."""
    return HeldOut(how, np.zeros((0, 2), np.int64))


def hold_out_everything() -> HeldOut:
    """The plan that holds all of a stream out."""
    return HeldOut("everything", np.array([[0, np.iinfo(np.int64).max]]))


def hold_out_every_nth(every: int) -> HeldOut:
    """Hold out sentences number n, 2n, 3n, … of the corpus, counted from 1."""
    return HeldOut(f"every {every}th sentence", np.zeros((0, 2), np.int64), every)


def count_held_out_words(words: int, share: float, least: int) -> int:
    """How many words to hold out: the share, at least `least`, but never more than a fifth."""
    return max(1, min(max(round(words * share), least), words // 5))


def hold_out_documents(
    stream: NDArray[np.uint32], places: IntArray, before: IntArray, words: int, wanted: int, seed: int
) -> HeldOut:
    """Whole documents, or stretches where those would be too much of the `words` of the stream.

    Documents start at `places` in the stream, `before` words stand before each.
    """
    taken = _pick(before, words, wanted, seed)
    if taken is None:
        return _stretches(stream, words, wanted, seed)
    taken.sort()
    stops = _ends(places, taken, len(stream))
    return HeldOut("documents", np.stack((places[taken], stops), axis=1), documents=len(taken))


def _ends(starts: IntArray, numbers: IntArray, last: int) -> IntArray:
    """Where documents end: where the next one starts."""
    inside = numbers + 1 < len(starts)
    return np.where(inside, starts[np.where(inside, numbers + 1, 0)], last)


def _pick(before: IntArray, words: int, wanted: int, seed: int) -> IntArray | None:
    """Numbers of documents with `wanted` words and not many more, or None."""
    most = max(2 * wanted, words // 20)
    # Of very many documents only a part, by their hash, so that few are sorted.
    share = 4 * wanted / words if len(before) > _SORTED_AT_ONCE else 1.0
    limit = np.uint64(min(1.0, share) * (2**64 - 2**12))
    blocks = (
        np.arange(start, min(start + _SORTED_AT_ONCE, len(before)))
        for start in range(0, len(before), _SORTED_AT_ONCE)
    )
    candidates = np.concatenate(
        [block[scatter_bits(block.astype(np.uint64), seed) <= limit] for block in blocks]
    )
    order = candidates[np.argsort(scatter_bits(candidates.astype(np.uint64), seed), kind="stable")]
    sizes = _ends(before, order, words) - before[order]
    taken: list[int] = []
    total = 0
    for number, size in zip(order.tolist(), sizes.tolist(), strict=True):
        if total >= wanted:
            break
        if total + size <= most:
            taken.append(number)
            total += size
    return np.array(taken, np.int64) if total >= wanted and len(taken) < len(before) else None


def _stretches(stream: NDArray[np.uint32], words: int, wanted: int, seed: int) -> HeldOut:
    number = max(1, min(_MOST_STRETCHES, wanted // _STRETCH))
    length = -(-wanted * len(stream) // (words * number))  # in places of the stream
    room = len(stream) / number
    shift = float(scatter_bits(np.array([seed], np.uint64), 1)[0]) / 2**64 * max(room - 2 * length, 0.0)
    intervals: list[tuple[int, int]] = []
    for place in range(number):
        start = _next_sentence(stream, int(place * room + shift))
        stop = _next_sentence(stream, start + length)
        if start < stop and (not intervals or start >= intervals[-1][1]):
            intervals.append((start, stop))
    return HeldOut("stretches of neighbouring sentences", np.array(intervals, np.int64).reshape(-1, 2))


def _next_sentence(stream: NDArray[np.uint32], place: int) -> int:
    """The first begin of a sentence at `place` or after it, or the end of the stream."""
    begin = stream[0]
    while place < len(stream):
        found = np.flatnonzero(stream[place : place + _WINDOW] == begin)
        if len(found):
            return place + int(found[0])
        place += _WINDOW
    return len(stream)


def scatter_bits(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Scatter numbers over 64 bits (splitmix64), the same on every machine."""
    mix = values + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    mix = (mix ^ (mix >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mix = (mix ^ (mix >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mix ^ (mix >> np.uint64(31))
