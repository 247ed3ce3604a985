"""How many senses a word has in a corpus: its usages in groups, each with its neighbours and sentences.

search.index, search.clusters  ->  search.senses  ->  api, server
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.search.clusters import group
from polyseme.search.index import Index, Usage

MAX_USAGES = 3000  # of a word that are grouped; more are drawn from all of them
MIN_USAGES = 10  # usages; fewer have no senses to tell apart
NEIGHBOURS, SENTENCES = 8, 3


@dataclass(frozen=True)
class Sense:
    """One group of usages."""

    share: float
    count: int
    neighbours: list[str]  # words whose mean vectors lie nearest to its centre
    examples: list[Usage]  # the usages nearest to its centre
    documents: dict[str, float]  # what share of the word's usages in a document are of this sense


@dataclass(frozen=True)
class Senses:
    """The senses of a word, the most frequent first."""

    word: str
    senses: list[Sense]
    stability: float  # how surely the same groups come back from a part of the usages
    silhouette: float
    numbers: NDArray[np.int64]  # of the usages that were grouped
    labels: NDArray[np.int64]  # the sense of each
    documents: dict[str, int]  # how many of them are in each document

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "word": self.word,
            "stability": self.stability,
            "silhouette": self.silhouette,
            "documents": self.documents,
            "senses": [
                {
                    "share": sense.share,
                    "count": sense.count,
                    "neighbours": sense.neighbours,
                    "examples": [usage.marked() for usage in sense.examples],
                    "documents": sense.documents,
                }
                for sense in self.senses
            ],
        }


def find_senses(index: Index, word: str, *, most: int = 6, seed: int = 0) -> Senses:
    """Group the usages of a word; their number is found from the data, and may be one."""
    if most < 1:
        raise UsageError(f"most is {most}, expected 1 or more.")
    numbers = index.usage_numbers(word)
    if len(numbers) < MIN_USAGES:
        raise UsageError(
            f"{word!r} has {len(numbers)} usages, too few to tell senses apart: {MIN_USAGES} are needed."
        )
    if len(numbers) > MAX_USAGES:
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, MAX_USAGES, replace=False))
    vectors = index.vectors(numbers)
    groups = group(vectors, most, seed)
    documents = index.documents(numbers)
    totals = Counter(documents)
    near = index.nearest_words(groups.centres, NEIGHBOURS, without=word)
    found = []
    for label, centre in enumerate(groups.centres):
        own = np.flatnonzero(groups.labels == label)
        best = own[np.argsort(-(vectors[own] @ centre), kind="stable")[:SENTENCES]]
        counts = Counter(documents[row] for row in own)
        found.append(
            Sense(
                len(own) / len(numbers),
                len(own),
                near[label],
                [index.usage(int(numbers[row]), float(vectors[row] @ centre)) for row in best],
                {name: counts[name] / total for name, total in totals.items()},
            )
        )
    return Senses(word, found, groups.stability, groups.silhouette, numbers, groups.labels, dict(totals))
