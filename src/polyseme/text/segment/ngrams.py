"""Count the strings of Han characters in a text, with what decides whether a string is a word.

    numpy  ->  text.segment.ngrams  ->  text.segment.discovery

Input: the code points of a text. Output: `NgramTable`s for 2, 3 and 4 characters, each with counts, cohesion
(pointwise mutual information) and freedom of both sides (branching entropy), in nats.

A string is counted only if the two strings that are one shorter are frequent, so that time and memory are
linear in the text. A mark that is no Han character ends a string; as a neighbour, each mark is different from
all others: a name that stands alone between commas is as free as one among many words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MAX_LENGTH = 4
_NONE = -1


@dataclass(frozen=True)
class NgramTable:
    """Frequent strings of one length; row i of all arrays is one string.

    Attributes:
        length: Characters of a string.
        ids: (characters of the text,) the row of the string that starts there, or -1.
        starts: A position of each string.
        counts: How often each occurs.
        cohesion: (rows, length - 1) mutual information at each split; the first is after one character.
        left: Entropy of the character before.
        right: Entropy of the character after.
        opens: Share of the occurrences after a mark, such as a comma.
        closes: Share of the occurrences before a mark.

    """

    length: int
    ids: Ints
    starts: Ints
    counts: Ints
    cohesion: Floats
    left: Floats
    right: Floats
    opens: Floats
    closes: Floats

    def share_before(self, marked: NDArray[np.bool_]) -> Floats:
        """Share of the occurrences of each string that end just before a marked position of the text."""
        positions = np.flatnonzero(self.ids >= 0)
        padded = np.concatenate((marked, np.zeros(self.length, bool)))
        ends = np.bincount(
            self.ids[positions], weights=padded[positions + self.length], minlength=len(self.counts)
        )
        shares: Floats = ends / self.counts
        return shares

    def count_neighbours(self, rows: NDArray[np.bool_], codes: NDArray[np.uint32], step: int) -> Ints:
        """For each code point, after how many distinct strings (`step` 1) or before how many (-1) it stands.

        Args:
            rows: Which strings count.
            codes: The text.
            step: 1 for the character after, -1 for the character before.

        """
        positions = np.flatnonzero(self.ids >= 0)
        positions = positions[rows[self.ids[positions]]]
        neighbours = positions + (self.length if step > 0 else -1)
        inside = (neighbours >= 0) & (neighbours < len(codes))
        ids, characters = self.ids[positions[inside]], codes[neighbours[inside]].astype(np.int64)
        pairs = np.unique(ids << 32 | characters)
        return np.bincount(pairs & 0xFFFFFFFF, minlength=1)


def is_han(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which code points are Han characters of the basic plane."""
    marks: NDArray[np.bool_] = ((codes >= 0x4E00) & (codes <= 0x9FFF)) | (
        (codes >= 0x3400) & (codes <= 0x4DBF)
    )
    return marks


def count_ngrams(codes: NDArray[np.uint32], min_count: int) -> list[NgramTable]:
    """Count the strings of 2 to 4 Han characters that occur at least `min_count` times.

    Args:
        codes: The code points of the text.
        min_count: Strings that occur less often are left out.

    Returns:
        A table for each length.

    """
    han = is_han(codes)
    _, characters = np.unique(codes[han], return_inverse=True)
    width = int(characters.max(initial=0)) + 1
    single = np.full(len(codes), _NONE, np.int64)
    single[han] = characters
    ids, counts = [single], [np.bincount(characters, minlength=width)]
    tables: list[NgramTable] = []
    for length in range(2, MAX_LENGTH + 1):
        shorter = ids[-1]
        size = max(len(codes) - length + 1, 0)
        is_frequent = (shorter[:size] >= 0) & (shorter[1 : size + 1] >= 0)
        positions = np.flatnonzero(is_frequent)
        keys = shorter[positions] * width + single[positions + length - 1]
        _, first, inverse, occurrences = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        kept = occurrences >= min_count
        numbers = np.where(kept, np.cumsum(kept) - 1, _NONE)
        rows = np.full(len(codes), _NONE, np.int64)
        rows[positions] = numbers[inverse]
        ids.append(rows)
        counts.append(occurrences[kept])
        tables.append(_measure(length, ids, counts, positions[first[kept]], int(han.sum()), width))
    return tables


def _measure(
    length: int, ids: list[Ints], counts: list[Ints], starts: Ints, total: int, width: int
) -> NgramTable:
    """Compute cohesion and freedom of the strings of one length from the counts of all shorter ones."""
    rows, occurrences = ids[-1], counts[-1]
    cohesion = np.empty((len(occurrences), length - 1))
    for split in range(1, length):
        left = counts[split - 1][ids[split - 1][starts]]
        right = counts[length - split - 1][ids[length - split - 1][starts + split]]
        cohesion[:, split - 1] = np.log(occurrences) + np.log(total) - np.log(left) - np.log(right)
    border = np.full(length, _NONE, np.int64)
    before = np.concatenate((border[:1], ids[0][:-1]))
    after = np.concatenate((ids[0][length:], border))
    left_entropy, opens = _branch(rows, before, occurrences, width)
    right_entropy, closes = _branch(rows, after, occurrences, width)
    return NgramTable(length, rows, starts, occurrences, cohesion, left_entropy, right_entropy, opens, closes)


def _branch(rows: Ints, neighbours: Ints, counts: Ints, width: int) -> tuple[Floats, Floats]:
    """Entropy of the neighbours of each string, and the share of marks among them."""
    positions = np.flatnonzero(rows >= 0)
    strings, characters = rows[positions], neighbours[positions]
    is_mark = characters == _NONE
    pairs, pair_counts = np.unique(strings[~is_mark] * width + characters[~is_mark], return_counts=True)
    owners = pairs // width
    shares = pair_counts / counts[owners]
    entropy = np.bincount(owners, weights=-shares * np.log(shares), minlength=len(counts))
    marks = np.bincount(strings[is_mark], minlength=len(counts)) / counts
    return entropy + marks * np.log(counts), marks
