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
APART = 0.05  # the silhouette that they need


@dataclass(frozen=True)
class Groups:
    """Vectors in groups: the group of each, the centres, the silhouette, the stability from 0 to 1."""

    labels: Labels  # (N,)
    centres: Array  # (K, H), of length 1
    silhouette: float
    stability: float


def group(vectors: Array, most: int = 6, seed: int = 0) -> Groups:
    """As many groups as stand firmly apart, at most `most`; one where none do."""
    best = Groups(np.zeros(len(vectors), np.int64), _unit(vectors.mean(axis=0, keepdims=True)), 0.0, 1.0)
    for count in range(2, min(most, len(vectors) // 3) + 1):
        labels, centres = kmeans(vectors, count, seed)
        apart = silhouette(vectors, labels, centres)
        if apart < APART or apart <= best.silhouette:
            continue
        firm = stability(vectors, labels, count, seed)
        if firm >= FIRM:
            best = Groups(labels, centres, apart, firm)
    return _by_size(best)


def kmeans(vectors: Array, count: int, seed: int = 0) -> tuple[Labels, Array]:
    """`count` groups by cosine; the best of several starts."""
    chance = np.random.default_rng(seed)
    best, found = -np.inf, (np.zeros(0, np.int64), vectors[:0])
    for _ in range(STARTS):
        centres = _first(vectors, count, chance)
        for _ in range(STEPS):
            labels = (vectors @ centres.T).argmax(axis=1)
            sums = (labels[:, None] == np.arange(count)).astype(np.float32).T @ vectors
            empty = np.bincount(labels, minlength=count) == 0
            sums[empty] = centres[empty]
            moved = _unit(sums)
            if np.allclose(moved, centres, atol=1e-6):
                break
            centres = moved
        cosines = vectors @ centres.T
        labels, near = cosines.argmax(axis=1), float(cosines.max(axis=1).sum())
        if near > best:
            best, found = near, (labels.astype(np.int64), centres)
    return found


def _first(vectors: Array, count: int, chance: np.random.Generator) -> Array:
    """First centres far from each other (k-means++)."""
    rows = [int(chance.integers(len(vectors)))]
    for _ in range(count - 1):
        far = np.maximum(1 - (vectors @ vectors[rows].T).max(axis=1), 0).astype(np.float64)
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
    """The same groups, the largest first."""
    order = np.argsort(-np.bincount(groups.labels, minlength=len(groups.centres)), kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return Groups(places[groups.labels], groups.centres[order], groups.silhouette, groups.stability)


def _unit(vectors: NDArray[np.floating]) -> Array:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: Array = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return directions
