"""Byte-pair encoding: learn frequent merges of characters from words, and split words by them.

    words and their counts  ->  tasks.seq2seq.byte_pairs  ->  tasks.seq2seq.units

Merges never cross a word (Sennrich et al. 2016). Of pairs with the same count the alphabetically first is
merged, so the result depends on the counts alone. Learning keeps, for each pair, the words that contain it,
and a heap of counts that are corrected when they are read: ten thousand merges take seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

Pair = tuple[str, str]


def learn_merges(counts: Mapping[str, int], size: int) -> list[Pair]:
    """Learn at most `size` merges.

    Args:
        counts: How often each word occurs.
        size: The number of merges.

    Returns:
        The merges in their order; none of a pair that occurs only once.

    """
    words = [list(word) for word in counts]
    weights = list(counts.values())
    pairs: Counter[Pair] = Counter()
    containing: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += weights[number]
            containing[pair].add(number)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapify(heap)
    merges: list[Pair] = []
    while heap and len(merges) < size:
        negative, pair = heappop(heap)
        if pairs[pair] != -negative:  # the count has changed since: put the right one back
            if pairs[pair] > 1:
                heappush(heap, (-pairs[pair], pair))
            continue
        if pairs[pair] < 2:
            break
        merges.append(pair)
        changed: set[Pair] = set()
        for number in containing.pop(pair):
            before = words[number]
            after = merge_pair(before, pair)
            words[number] = after
            for old in pairwise(before):
                pairs[old] -= weights[number]
            for new in pairwise(after):
                pairs[new] += weights[number]
                if pair[0] + pair[1] in new:
                    containing[new].add(number)
                    changed.add(new)
        del pairs[pair]
        for new in changed:
            heappush(heap, (-pairs[new], new))
    return merges


def merge_pair(parts: Sequence[str], pair: Pair) -> list[str]:
    """The parts of a word with each occurrence of a pair merged, from left to right."""
    merged: list[str] = []
    position = 0
    while position < len(parts):
        if position + 1 < len(parts) and (parts[position], parts[position + 1]) == pair:
            merged.append(parts[position] + parts[position + 1])
            position += 2
        else:
            merged.append(parts[position])
            position += 1
    return merged


class PairEncoder:
    """Splits words by learned merges; each word once."""

    def __init__(self, merges: Iterable[Pair]) -> None:
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._known: dict[str, tuple[str, ...]] = {}

    def split(self, word: str) -> tuple[str, ...]:
        """The parts of a word: merges are applied in the order in which they were learned."""
        if word not in self._known:
            parts = list(word)
            while len(parts) > 1:
                best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
                if best not in self._ranks:
                    break
                parts = merge_pair(parts, best)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[word] = tuple(parts)
        return self._known[word]


MAX_KNOWN = 200_000  # words whose parts are kept
