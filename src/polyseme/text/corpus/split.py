"""Choose the text to hold out: documents, passages, or every n-th sentence.

    text.corpus.counts  ->  text.corpus.split  ->  text.corpus.renumber, text.corpus.build

Input: where documents start in the stream, and how many words to hold out. Output: `HeldOut`, which says for
every sentence whether it is held out.

Complete documents are chosen in the order of a hash of their number and the seed. If documents are few or
large, so that complete ones would be too much of the text (a novel in one file), passages of consecutive
sentences, spread evenly over the text, are held out instead.

What must not change: the choice depends on the stream, the number of words and the seed only; a sentence is
either held out or trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

_PASSAGE = 250  # words, about a page; longer if there would be more than _MAX_PASSAGES
_MAX_PASSAGES = 40
_SORTED_AT_ONCE = 100_000  # documents
_WINDOW = 1 << 14


@dataclass(frozen=True)
class HeldOut:
    """What is held out: intervals of the stream that begin and end with sentences, or every n-th sentence."""

    method: str  # how it was chosen
    intervals: IntArray  # (n, 2), sorted, apart
    every: int | None = None
    documents: int = 0  # documents held out completely

    def select(self, starts: IntArray, before: int) -> NDArray[np.bool_]:
        """Whether each sentence is held out; they start at `starts`, after `before` other sentences."""
        if self.every is not None:
            numbers: IntArray = np.arange(before + 1, before + 1 + len(starts))
            return np.equal(numbers % self.every, 0)
        if not len(self.intervals):
            return np.zeros(len(starts), bool)
        nearest = np.searchsorted(self.intervals[:, 0], starts, side="right") - 1
        inside: NDArray[np.bool_] = (nearest >= 0) & (starts < self.intervals[nearest, 1])
        return inside


def hold_out_nothing(method: str = "nothing") -> HeldOut:
    """Hold out nothing."""
    return HeldOut(method, np.zeros((0, 2), np.int64))


def hold_out_everything() -> HeldOut:
    """Hold out a whole stream."""
    return HeldOut("everything", np.array([[0, np.iinfo(np.int64).max]]))


def hold_out_every_nth(every: int) -> HeldOut:
    """Hold out sentences number n, 2n, 3n, … of the corpus, counted from 1."""
    return HeldOut(f"every {every}th sentence", np.zeros((0, 2), np.int64), every)


def count_held_out_words(words: int, share: float, least: int) -> int:
    """The number of words to hold out: the share, at least `least`, but at most a fifth."""
    return max(1, min(max(round(words * share), least), words // 5))


def hold_out_documents(
    stream: NDArray[np.uint32], starts: IntArray, before: IntArray, words: int, wanted: int, seed: int
) -> HeldOut:
    """Hold out complete documents, or passages if documents would be too much of the text.

    Args:
        stream: The words of the corpus.
        starts: Where documents start in the stream.
        before: The number of words before each document.
        words: The number of words in the stream.
        wanted: The number of words to hold out.
        seed: Decides which documents or passages.

    """
    taken = _choose_documents(before, words, wanted, seed)
    if taken is None:
        return _choose_passages(stream, words, wanted, seed)
    taken.sort()
    stops = _find_ends(starts, taken, len(stream))
    return HeldOut("documents", np.stack((starts[taken], stops), axis=1), documents=len(taken))


def _find_ends(starts: IntArray, numbers: IntArray, last: int) -> IntArray:
    """The ends of documents: where the next one starts."""
    inside = numbers + 1 < len(starts)
    return np.where(inside, starts[np.where(inside, numbers + 1, 0)], last)


def _choose_documents(before: IntArray, words: int, wanted: int, seed: int) -> IntArray | None:
    """Numbers of documents with `wanted` words and not many more; None if there are none."""
    max_words = max(2 * wanted, words // 20)
    # Of very many documents only a part is sorted, selected by hash.
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
    sizes = _find_ends(before, order, words) - before[order]
    taken: list[int] = []
    total = 0
    for number, size in zip(order.tolist(), sizes.tolist(), strict=True):
        if total >= wanted:
            break
        if total + size <= max_words:
            taken.append(number)
            total += size
    return np.array(taken, np.int64) if total >= wanted and len(taken) < len(before) else None


def _choose_passages(stream: NDArray[np.uint32], words: int, wanted: int, seed: int) -> HeldOut:
    number = max(1, min(_MAX_PASSAGES, wanted // _PASSAGE))
    length = -(-wanted * len(stream) // (words * number))  # in positions of the stream
    spacing = len(stream) / number
    shift = float(scatter_bits(np.array([seed], np.uint64), 1)[0]) / 2**64 * max(spacing - 2 * length, 0.0)
    intervals: list[tuple[int, int]] = []
    for passage in range(number):
        start = _find_sentence(stream, int(passage * spacing + shift))
        stop = _find_sentence(stream, start + length)
        if start < stop and (not intervals or start >= intervals[-1][1]):
            intervals.append((start, stop))
    return HeldOut("stretches of neighbouring sentences", np.array(intervals, np.int64).reshape(-1, 2))


def _find_sentence(stream: NDArray[np.uint32], position: int) -> int:
    """The first start of a sentence at `position` or after it; the end of the stream if there is none."""
    begin = stream[0]
    while position < len(stream):
        starts = np.flatnonzero(stream[position : position + _WINDOW] == begin)
        if len(starts):
            return position + int(starts[0])
        position += _WINDOW
    return len(stream)


def scatter_bits(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Hash numbers to 64 bits (splitmix64), the same on every machine."""
    mix = values + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    mix = (mix ^ (mix >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mix = (mix ^ (mix >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mix ^ (mix >> np.uint64(31))
