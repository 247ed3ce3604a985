"""Directions in groups: k-means on the sphere, how many groups there are, how firmly they stand.

    search.index (vectors of length 1)  ->  search.clusters  ->  search.senses, search.change

N vectors, H values, K groups. All that is random follows from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Labels = NDArray[np.int64]
STEPS = 30
STARTS = 4  # tries of k-means, of which the best counts
HALVES = 5  # parts of the vectors that are grouped again, to see whether the groups return
PART = 0.8
FIRM = 0.6  # the stability that groups need; below it there is one
DRAWN = 400  # vectors on which the number of groups is found
APART = 0.05  # the silhouette that they need


@dataclass(frozen=True)
class Groups:
    """Vectors in groups: the group of each, the centres, the silhouette, the stability from 0 to 1."""

    labels: Labels  # (N,)
    centres: Array  # (K, H), of length 1
    silhouette: float
    stability: float


def group(vectors: Array, most: int = 6, seed: int = 0) -> Groups:
    """As many groups as stand firmly apart, at most `most`; one where none do.

    Their number is found on a draw of at most DRAWN vectors; then all vectors are grouped from its centres.
    """
    drawn = vectors
    if len(vectors) > DRAWN:
        drawn = vectors[np.sort(np.random.default_rng(seed).choice(len(vectors), DRAWN, replace=False))]
    tried = [kmeans(drawn, count, seed) for count in range(2, min(most, len(drawn) // 3) + 1)]
    for apart, (labels, centres) in sorted(
        ((silhouette(drawn, *found), found) for found in tried), key=lambda one: -one[0]
    ):
        firm = stability(drawn, labels, len(centres), seed) if apart >= APART else 0.0
        if firm < FIRM:
            continue
        if drawn is not vectors:
            labels, centres = _settle(vectors, centres[None])
            apart = silhouette(vectors, labels, centres)
        return _by_size(Groups(labels, centres, apart, firm))
    return Groups(np.zeros(len(vectors), np.int64), _unit(vectors.mean(axis=0, keepdims=True)), 0.0, 1.0)


def kmeans(vectors: Array, count: int, seed: int = 0) -> tuple[Labels, Array]:
    """`count` groups by cosine; the best of several starts."""
    chance = np.random.default_rng(seed)
    return _settle(vectors, np.stack([_first(vectors, count, chance) for _ in range(STARTS)]))


def _settle(vectors: Array, centres: Array) -> tuple[Labels, Array]:
    """Centres of several starts, (S, K, H), moved until no vector changes its group; the best start's."""
    starts, count, size = centres.shape
    before = np.full((len(vectors), starts), -1)
    for _ in range(STEPS + 1):
        cosines = (vectors @ centres.reshape(-1, size).T).reshape(-1, starts, count)
        labels = cosines.argmax(axis=2)
        if np.array_equal(labels, before):
            break
        before = labels
        members = (labels[:, :, None] == np.arange(count)).astype(np.float32).reshape(len(vectors), -1)
        sums = members.T @ vectors
        empty = ~members.any(axis=0)
        sums[empty] = centres.reshape(-1, size)[empty]
        centres = _unit(sums).reshape(starts, count, size)
    best = int(cosines.max(axis=2).sum(axis=0, dtype=np.float64).argmax())
    return labels[:, best].astype(np.int64), centres[best]


def _first(vectors: Array, count: int, chance: np.random.Generator) -> Array:
    """First centres far from each other (k-means++)."""
    rows = [int(chance.integers(len(vectors)))]
    far = np.full(len(vectors), np.inf)
    for _ in range(count - 1):
        far = np.minimum(far, np.maximum(1 - vectors @ vectors[rows[-1]], 0))
        total = far.sum()
        rows.append(
            int(chance.choice(len(vectors), p=far / total)) if total else int(chance.integers(len(vectors)))
        )
    return vectors[rows].copy()


def silhouette(vectors: Array, labels: Labels, centres: Array) -> float:
    """How much nearer vectors are to their own centre than to the next one, from -1 to 1, on average."""
    distances = 1 - vectors @ centres.T
    own = distances[np.arange(len(vectors)), labels]
    distances[np.arange(len(vectors)), labels] = np.inf
    other = distances.min(axis=1)
    return float(((other - own) / np.maximum(np.maximum(other, own), 1e-9)).mean())


def stability(vectors: Array, labels: Labels, count: int, seed: int = 0) -> float:
    """How like the same groups come back from parts of the vectors: the mean adjusted Rand index."""
    chance = np.random.default_rng(seed + 1)
    found = []
    for number in range(HALVES):
        rows = chance.permutation(len(vectors))[: max(count, round(PART * len(vectors)))]
        again, _ = kmeans(vectors[rows], count, seed + 2 + number)
        found.append(adjusted_rand(labels[rows], again))
    return float(np.mean(found))


def adjusted_rand(one: Labels, other: Labels) -> float:
    """How well two groupings agree: 1 for the same, about 0 by chance."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1)
    pairs = (table * (table - 1) / 2).sum()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    of_rows, of_columns = (rows * (rows - 1) / 2).sum(), (columns * (columns - 1) / 2).sum()
    expected = of_rows * of_columns / max(len(one) * (len(one) - 1) / 2, 1)
    largest = (of_rows + of_columns) / 2
    return 1.0 if largest == expected else float((pairs - expected) / (largest - expected))


def _by_size(groups: Groups) -> Groups:
    """The same groups, the largest first; among equals, the one with the earliest vector."""
    counts = np.bincount(groups.labels, minlength=len(groups.centres))
    earliest = np.full(len(counts), len(groups.labels))
    np.minimum.at(earliest, groups.labels, np.arange(len(groups.labels)))
    order = np.lexsort((earliest, -counts))  # by count, then by the earliest vector
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return Groups(ranks[groups.labels], groups.centres[order], groups.silhouette, groups.stability)


def _unit(vectors: NDArray[np.floating]) -> Array:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: Array = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return directions
