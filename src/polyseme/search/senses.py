"""The senses of a word in a corpus: clusters of its usages, each with neighbours and example sentences.

search.index, search.clusters  ->  search.senses  ->  search.maps, api, server
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.io.html import Cell
from polyseme.io.result_list import ResultList
from polyseme.search.clusters import cluster
from polyseme.search.index import Index, Usage

MAX_USAGES = 3000  # of a word that are clustered; of more a sample is drawn
MIN_USAGES = 10  # fewer have no senses to tell apart
NEIGHBOURS, EXAMPLES = 8, 3  # of a sense


@dataclass(frozen=True)
class Sense:
    """One cluster of usages.

    Attributes:
        share: Its share of the word's usages.
        count: How many usages it has.
        neighbours: The words whose mean vectors are nearest to its centre.
        examples: The usages nearest to its centre.
        documents: For each document the share of the word's usages in it that have this sense.

    """

    share: float
    count: int
    neighbours: list[str]
    examples: list[Usage]
    documents: dict[str, float]

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "share": f"{self.share:.0%}",
            "usages": self.count,
            "neighbours": " ".join(self.neighbours),
            "example": self.examples[0].as_row()["usage"],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Senses:
    """The senses of a word, the most frequent first.

    Attributes:
        word: The word.
        senses: The senses.
        stability: How surely the same senses come back from a part of the usages, 0 to 1.
        silhouette: How far apart the senses are, -1 to 1.
        numbers: (N,) the numbers of the usages that were clustered.
        labels: (N,) the sense of each, from 0.
        documents: How many of the usages are in each document.

    """

    word: str
    senses: list[Sense]
    stability: float
    silhouette: float
    numbers: NDArray[np.int64]
    labels: NDArray[np.int64]
    documents: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
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

    def _results(self) -> ResultList[Sense]:
        several = f"{len(self.senses)} senses, stability {self.stability:.2f}"
        return ResultList(self.senses, f"{self.word}: {several if len(self.senses) > 1 else 'one sense'}")

    def __repr__(self) -> str:
        return repr(self._results())

    def _repr_html_(self) -> str:
        return self._results()._repr_html_()


def find_senses(index: Index, word: str, *, max_senses: int = 6, seed: int = 0) -> Senses:
    """Cluster the usages of a word into senses. Their number follows from the data and may be one.

    Args:
        index: The index.
        word: The word.
        max_senses: The largest number of senses to look for.
        seed: Seeds the sampling and the clustering.

    Returns:
        The senses, the most frequent first.

    Raises:
        UnknownWordError: The index has no usage of the word.
        UsageError: The word has too few usages, or `max_senses` is less than 1.

    Example:
        >>> senses = find_senses(index, "bank")
        >>> [(sense.share, sense.neighbours) for sense in senses.senses]

    """
    if max_senses < 1:
        raise UsageError(f"max_senses is {max_senses}, expected 1 or more.")
    numbers = index.usage_numbers(word)
    if len(numbers) < MIN_USAGES:
        raise UsageError(
            f"{word!r} has {len(numbers)} usages, too few to tell senses apart: {MIN_USAGES} are needed."
        )
    if len(numbers) > MAX_USAGES:
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, MAX_USAGES, replace=False))
    vectors = index.vectors(numbers)
    clusters = cluster(vectors, max_senses, seed)
    documents = index.documents(numbers)
    totals = Counter(documents)
    neighbours = index.nearest_words(clusters.centres, NEIGHBOURS, without=word)
    senses = []
    for label, centre in enumerate(clusters.centres):
        members = np.flatnonzero(clusters.labels == label)
        cosines = vectors[members] @ centre
        best = members[np.argsort(-cosines, kind="stable")[:EXAMPLES]]
        counts = Counter(documents[row] for row in members)
        senses.append(
            Sense(
                len(members) / len(numbers),
                len(members),
                neighbours[label],
                [index.usage(int(numbers[row]), float(vectors[row] @ centre)) for row in best],
                {name: counts[name] / total for name, total in totals.items()},
            )
        )
    return Senses(
        word, senses, clusters.stability, clusters.silhouette, numbers, clusters.labels, dict(totals)
    )
