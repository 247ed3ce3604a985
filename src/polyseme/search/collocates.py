"""The words that stand near a word more often than elsewhere: by log-likelihood, and near which sense.

    search.index, search.contexts, search.senses  ->  search.collocates  ->  api, server

A usage of another word is near the word (within a window of words of the same sentence) or not, and is a
usage of the collocate or not. The log-likelihood ratio of this table of two rows and two columns (Dunning
1993) says how surely the two belong together. A usage that is near several usages of the word counts once,
for the nearest. V words of the index, K senses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.io.html import Cell
from polyseme.io.result_list import ResultList
from polyseme.search.concordance import label_usages
from polyseme.search.index import Index
from polyseme.search.senses import Senses

Counts = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Collocate:
    """A word that stands near another.

    Attributes:
        word: The collocate.
        count: How often it stands near the word.
        left: How often of these on its left.
        right: How often on its right.
        total: How often it is used in all.
        expected: How often it would stand near the word by chance.
        log_likelihood: How surely the two belong together: 3.84 for p < 0.05, 15.1 for p < 0.0001.
        senses: How often it stands near each sense of the word; empty if senses were not asked for.

    """

    word: str
    count: int
    left: int
    right: int
    total: int
    expected: float
    log_likelihood: float
    senses: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return vars(self) | {"senses": list(self.senses)}

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        row: dict[str, Cell] = {
            "word": self.word,
            "near": self.count,
            "left": self.left,
            "right": self.right,
            "usages": self.total,
            "expected": self.expected,
            "log-likelihood": self.log_likelihood,
        }
        return row | ({"senses": " ".join(map(str, self.senses))} if self.senses else {})


class Association(NamedTuple):
    """How much words belong together: expected counts, and log-likelihood ratios."""

    expected: Values
    log_likelihood: Values


def find_collocates(
    index: Index,
    word: str,
    k: int = 30,
    *,
    window: int = 5,
    min_count: int = 2,
    all_words: bool = False,
    senses: Senses | None = None,
) -> ResultList[Collocate]:
    """Find the words that stand near a word more often than elsewhere.

    Args:
        index: The index, or a part of one.
        word: The word.
        k: How many collocates to return.
        window: Words on each side, within the sentence.
        min_count: The fewest times that a collocate stands near the word.
        all_words: Return function words, numbers and punctuation, too.
        senses: The senses of the word, to count collocates by.

    Returns:
        The collocates, the surest first.

    Raises:
        UnknownWordError: The index has no usage of the word.
        UsageError: `k`, `window` or `min_count` is less than 1.

    """
    for name, value in (("k", k), ("window", window), ("min_count", min_count)):
        if value < 1:
            raise UsageError(f"{name} is {value}, expected 1 or more.")
    reader, numbers = index.context_reader, index.usage_numbers(word)
    contexts = reader.read(numbers, window)
    members = numbers[contexts.usages] + contexts.offsets
    order = np.lexsort((np.abs(contexts.offsets), members))  # of a usage near several: the nearest first
    _, firsts = np.unique(members[order], return_index=True)
    kept = order[firsts]
    node = index.whole.words.row(word)
    kept = kept[contexts.words[kept] != node]
    words, size = contexts.words[kept], len(index.whole.words)
    counts = np.bincount(words, minlength=size)
    lefts = np.bincount(words[contexts.offsets[kept] < 0], minlength=size)
    totals = _count_words(index)
    association = measure_association(counts, len(kept), totals, int(totals.sum()) - len(numbers))
    is_shown = (counts >= min_count) & (counts > association.expected)
    if not all_words:
        is_shown &= reader.is_content
    rows = np.flatnonzero(is_shown)
    rows = rows[np.lexsort((rows, -association.log_likelihood[rows]))][:k]
    by_sense = np.zeros((size, 0), np.int64)
    if senses is not None:
        labels = label_usages(index, senses, numbers)[contexts.usages[kept]]
        by_sense = np.zeros((size, len(senses.senses)), np.int64)
        np.add.at(by_sense, (words, labels), 1)
    names = index.whole.words.words
    collocates = [
        Collocate(
            names[row],
            int(counts[row]),
            int(lefts[row]),
            int(counts[row] - lefts[row]),
            int(totals[row]),
            float(association.expected[row]),
            float(association.log_likelihood[row]),
            tuple(by_sense[row].tolist()),
        )
        for row in rows.tolist()
    ]
    return ResultList(collocates, f"Collocates of {word} within {window} words")


def _count_words(index: Index) -> Counts:
    """How many usages each word (V,) of the whole index has in this part."""
    words = index.whole.words
    if index.kept is None:
        return np.asarray(words.counts, np.int64)
    rows = index.context_reader.find_word_rows(np.flatnonzero(index.kept))
    return np.bincount(rows, minlength=len(words))


def measure_association(near: Counts, near_total: int, totals: Counts, size: int) -> Association:
    """Return how much each word is associated with being near: the log-likelihood ratio of a 2 x 2 table.

    Args:
        near: (V,) how often each word stands near.
        near_total: How many usages of any word stand near.
        totals: (V,) how often each word is used in all; not less than `near`.
        size: How many usages there are in all.

    Returns:
        The expected counts near (V,), and the log-likelihood ratios (V,).

    Example:
        >>> measure_association(np.array([10]), 100, np.array([20]), 10_000).log_likelihood.round(2)
        array([65.58])

    """
    observed = np.stack([near, totals - near, near_total - near, size - near_total - totals + near]).astype(
        np.float64
    )
    shares = near_total / size if size else 0.0
    others = size - totals
    expected = np.stack([totals * shares, totals * (1 - shares), others * shares, others * (1 - shares)])
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(observed > 0, observed * np.log(observed / expected), 0.0)
    return Association(expected[0], np.maximum(2 * terms.sum(axis=0), 0.0))
