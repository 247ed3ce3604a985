"""Scores of coreference: MUC, B-cubed, CEAF-phi4, LEA, the mean of the first three, and mentions.

    labelled and predicted clusters  ->  tasks.coref.scores  ->  tasks.coref.task

Counts are summed over all documents before dividing, as the reference scorers do. A cluster is a set of
mentions; singletons count as clusters if they are passed. Tests compare with scorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.tasks.metrics import Scores

Mention = tuple[int, int]  # start and stop, counted over the document
Clusters = Sequence[frozenset[Mention]]
Ratio = tuple[float, float]  # numerator and denominator


def score_clusters(labels: Sequence[Clusters], predicted: Sequence[Clusters]) -> Scores:
    """Score the clusters of documents.

    Args:
        labels: The labelled clusters of each document.
        predicted: The predicted ones.

    Returns:
        "CoNLL F1" (the mean of MUC, B-cubed and CEAF-phi4), each of them, LEA, and the F1 of mentions.

    """
    documents = list(zip(labels, predicted, strict=True))
    values: dict[str, float] = {}
    parts: tuple[tuple[str, Callable[[Clusters, Clusters], Ratio]], ...] = (
        ("MUC", _score_muc),
        ("B-cubed", _score_b_cubed),
        ("CEAF-phi4", _score_ceaf),
        ("LEA", _score_lea),
        ("mentions", _score_mentions),
    )
    for name, recall_of in parts:
        recall = _divide([recall_of(wanted, chosen) for wanted, chosen in documents])
        precision = _divide([recall_of(chosen, wanted) for wanted, chosen in documents])
        both = precision + recall
        values[f"{name} F1"] = 2 * precision * recall / both if both else 0.0
    mean = sum(values[f"{name} F1"] for name in ("MUC", "B-cubed", "CEAF-phi4")) / 3
    return Scores("CoNLL F1", {"CoNLL F1": mean, **values})


def _divide(ratios: Sequence[Ratio]) -> float:
    below = sum(ratio[1] for ratio in ratios)
    return sum(ratio[0] for ratio in ratios) / below if below else 0.0


def _map_owners(clusters: Clusters) -> dict[Mention, int]:
    """The number of the cluster of each mention."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def _score_muc(wanted: Clusters, chosen: Clusters) -> Ratio:
    """Links of `wanted` that `chosen` keeps: its clusters are cut into as few parts as possible."""
    owners = _map_owners(chosen)
    above = below = 0
    for cluster in wanted:
        known = {owners[mention] for mention in cluster if mention in owners}
        parts = len(known) + sum(mention not in owners for mention in cluster)
        above += len(cluster) - parts
        below += len(cluster) - 1
    return above, below


def _score_b_cubed(wanted: Clusters, chosen: Clusters) -> Ratio:
    """Of each mention, the share of its cluster that it keeps."""
    owners = _map_owners(chosen)
    above = 0.0
    for cluster in wanted:
        counts: dict[int, int] = {}
        for mention in cluster:
            if mention in owners:
                counts[owners[mention]] = counts.get(owners[mention], 0) + 1
        above += sum(count * count for count in counts.values()) / len(cluster)
    return above, sum(map(len, wanted))


def _score_ceaf(wanted: Clusters, chosen: Clusters) -> Ratio:
    """The similarity of clusters (phi4) in the best one-to-one alignment."""
    if not wanted or not chosen:
        return 0.0, len(wanted)
    owners = _map_owners(chosen)
    similarity = np.zeros((len(wanted), len(chosen)))
    for row, cluster in enumerate(wanted):
        for mention in cluster:
            if mention in owners:
                similarity[row, owners[mention]] += 1
    sizes = np.array([len(cluster) for cluster in wanted])[:, None] + [len(cluster) for cluster in chosen]
    similarity = 2 * similarity / sizes
    return float(similarity[assign(similarity)].sum()), len(wanted)


def _score_lea(wanted: Clusters, chosen: Clusters) -> Ratio:
    """Links that are kept, weighted by the size of the cluster; a singleton has a link to itself."""
    owners = _map_owners(chosen)
    above = 0.0
    for cluster in wanted:
        known = [owners[mention] for mention in cluster if mention in owners]
        if len(cluster) == 1:
            above += bool(known) and len(chosen[known[0]]) == 1
            continue
        counts = np.unique(known, return_counts=True)[1] if known else np.zeros(0)
        links = float((counts * (counts - 1) / 2).sum())
        above += len(cluster) * links / (len(cluster) * (len(cluster) - 1) / 2)
    return above, sum(map(len, wanted))


def _score_mentions(wanted: Clusters, chosen: Clusters) -> Ratio:
    known = _map_owners(wanted).keys()
    return len(known & _map_owners(chosen).keys()), len(known)


def assign(values: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The one-to-one alignment of rows and columns with the highest sum.

    This is the Hungarian algorithm with shortest augmenting paths, O(n³); each inner step is vectorised.

    Args:
        values: A matrix (rows, columns).

    Returns:
        The rows and the columns that are aligned, as many as the shorter side has.

    """
    if values.shape[0] > values.shape[1]:
        columns, rows = assign(values.T)
        return rows, columns
    count, width = values.shape
    costs = np.zeros((count + 1, width + 1))
    costs[1:, 1:] = values.max() - values
    row_prices, column_prices = np.zeros(count + 1), np.zeros(width + 1)
    row_of = np.zeros(width + 1, np.intp)  # of each column; 0: none
    for row in range(1, count + 1):
        row_of[0] = row
        column = 0
        shortest = np.full(width + 1, np.inf)
        before = np.zeros(width + 1, np.intp)
        done = np.zeros(width + 1, bool)
        while row_of[column]:
            done[column] = True
            current = row_of[column]
            reduced = costs[current] - row_prices[current] - column_prices
            closer = ~done & (reduced < shortest)
            shortest[closer], before[closer] = reduced[closer], column
            following = int(np.where(done, np.inf, shortest).argmin())
            step = shortest[following]
            row_prices[row_of[done]] += step
            column_prices[done] -= step
            shortest[~done] -= step
            column = following
        while column:
            row_of[column] = row_of[before[column]]
            column = int(before[column])
    columns = np.flatnonzero(row_of[1:])
    return row_of[1:][columns] - 1, columns
