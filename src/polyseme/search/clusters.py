"""Cluster directions: k-means on the sphere, the number of clusters, and their stability.

    search.index (vectors of length 1)  ->  search.clusters  ->  search.senses, search.change

The number of clusters is decided on a sample, which is clustered some ten times and more. That needs the
cosines of all pairs of its vectors alone (N, N): the cosine of a vector and a centre is the mean of its
cosines with the members of the cluster, but for a factor. A step is then several times as quick as one with
vectors, which have more values than the sample has members, and gives the same clusters.

N vectors, H values, K clusters, R restarts. Everything random follows from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.search.space import normalize

Array = NDArray[np.float32]
Labels = NDArray[np.int64]
MAX_STEPS = 30
RESTARTS = 4  # of k-means, of which the best counts
SUBSAMPLES = 5  # parts of the vectors that are clustered again, to see whether the clusters return
SUBSAMPLE_SHARE = 0.8
MIN_STABILITY = 0.6  # with less there is one cluster
MIN_SILHOUETTE = 0.05
ROUNDING = 1e-6  # distances below are noise
MAX_VECTORS = 400  # on which the number of clusters is decided


@dataclass(frozen=True)
class Clusters:
    """Vectors in clusters, the largest first.

    Attributes:
        labels: (N,) the cluster of each vector.
        centres: (K, H), of length 1.
        silhouette: How much nearer vectors are to their centre than to the next one, -1 to 1.
        stability: How surely the same clusters come back from a part of the vectors, 0 to 1.

    """

    labels: Labels
    centres: Array
    silhouette: float
    stability: float


def cluster(
    vectors: Array,
    max_clusters: int = 6,
    seed: int = 0,
    *,
    min_stability: float = MIN_STABILITY,
    min_size: int = 1,
    on_progress: OnProgress = ignore_progress,
) -> Clusters:
    """Cluster vectors (N, H) into as many stable clusters of `min_size` as there are; there may be only one.

    The number is decided on a sample of at most MAX_VECTORS; then all vectors are clustered from its centres.
    """
    sample = vectors
    if len(vectors) > MAX_VECTORS:
        sample = vectors[
            np.sort(np.random.default_rng(seed).choice(len(vectors), MAX_VECTORS, replace=False))
        ]
    pairs = sample @ sample.T
    counts = range(2, min(max_clusters, len(sample) // 3) + 1)
    tried = []
    for count in counts:
        tried.append(_drop_empty(*run_kmeans(pairs, count, seed)))
        on_progress(ProgressEvent("clustering", len(tried), len(counts), f"{count} clusters"))
    by_silhouette = sorted(
        ((measure_silhouette(cosines, labels), labels) for labels, cosines in tried if cosines.shape[1] > 1),
        key=lambda pair: -pair[0],
    )
    for silhouette, labels in by_silhouette:
        if silhouette < MIN_SILHOUETTE or np.bincount(labels).min() < min_size:
            continue
        count = int(labels.max()) + 1
        stability = measure_stability(pairs, labels, count, seed)
        if stability < min_stability:
            continue
        centres = normalize(_mark_members(labels[:, None], count).T @ sample)
        if sample is not vectors:
            labels, centres = _settle(vectors, centres)
            silhouette = measure_silhouette(vectors @ centres.T, labels)
        return _sort_by_size(Clusters(labels, centres, silhouette, stability))
    return merge(vectors)


def merge(vectors: Array) -> Clusters:
    """Return all vectors (N, H) as one cluster."""
    centre = normalize(vectors.mean(axis=0, keepdims=True))
    return Clusters(np.zeros(len(vectors), np.int64), centre, 0.0, 1.0)


def run_kmeans(pairs: Array, count: int, seed: int = 0) -> tuple[Labels, Array]:
    """Cluster vectors by the cosines of their pairs (N, N) into `count` clusters; the best of some restarts.

    Returns:
        The cluster of each vector (N,), and the cosines of vectors and centres (N, K).

    """
    rng = np.random.default_rng(seed)
    first = np.concatenate([_choose_centres(pairs, count, rng) for _ in range(RESTARTS)])
    cosines, before = pairs[:, first], np.full((len(pairs), RESTARTS), -1)  # (N, R * K)
    for _ in range(MAX_STEPS + 1):
        labels = cosines.reshape(-1, RESTARTS, count).argmax(axis=2)  # (N, R)
        if np.array_equal(labels, before):
            break
        before = labels
        members = _mark_members(labels, count)
        sums = pairs @ members
        lengths = np.sqrt(np.maximum((members * sums).sum(axis=0), 0))
        cosines = np.where(lengths > 0, sums / np.maximum(lengths, ROUNDING), cosines)  # empty ones stay
    by_restart = cosines.reshape(-1, RESTARTS, count)
    best = int(by_restart.max(axis=2).sum(axis=0, dtype=np.float64).argmax())
    return labels[:, best].astype(np.int64), by_restart[:, best]


def _choose_centres(pairs: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Choose vectors that are far from each other (k-means++) as first centres: their rows."""
    rows = [int(rng.integers(len(pairs)))]
    distances = np.full(len(pairs), np.inf)
    for _ in range(count - 1):
        distances = np.minimum(distances, np.maximum(1 - pairs[rows[-1]], 0))
        total = distances.sum()
        rows.append(
            int(rng.choice(len(pairs), p=distances / total)) if total else int(rng.integers(len(pairs)))
        )
    return np.array(rows)


def _mark_members(labels: Labels, count: int) -> Array:
    """For each vector 1 in the column of its cluster: (N, R) to (N, R * K)."""
    is_member: NDArray[np.bool_] = labels[:, :, None] == np.arange(count)
    return is_member.astype(np.float32).reshape(len(labels), -1)


def _settle(vectors: Array, centres: Array) -> tuple[Labels, Array]:
    """Move centres (K, H) until no vector changes its cluster; clusters that become empty are dropped."""
    before = np.full(len(vectors), -1)
    for _ in range(MAX_STEPS + 1):
        labels = (vectors @ centres.T).argmax(axis=1)
        if np.array_equal(labels, before):
            break
        before = labels
        members = _mark_members(labels[:, None], len(centres))
        has_members = members.any(axis=0, keepdims=True).T
        centres = np.where(has_members, normalize(members.T @ vectors), centres)
    used, labels = np.unique(labels, return_inverse=True)
    return labels.astype(np.int64), centres[used]


def measure_silhouette(cosines: Array, labels: Labels) -> float:
    """Return how much nearer vectors are to their centre than to the next one, -1 to 1, on average.

    Args:
        cosines: (N, K) of the vectors and the centres.
        labels: (N,) the cluster of each vector.

    """
    distances = np.maximum(1 - cosines, 0)  # rounding makes some cosines larger than 1
    rows = np.arange(len(labels))
    to_centre = distances[rows, labels]
    distances[rows, labels] = np.inf
    to_next = distances.min(axis=1)
    return float(((to_next - to_centre) / np.maximum(np.maximum(to_next, to_centre), ROUNDING)).mean())


def measure_stability(pairs: Array, labels: Labels, count: int, seed: int = 0) -> float:
    """Return how well clusters of parts of the vectors agree with `labels`: the mean adjusted Rand index."""
    rng = np.random.default_rng(seed + 1)
    agreements = []
    for number in range(SUBSAMPLES):
        rows = rng.permutation(len(pairs))[: max(count, round(SUBSAMPLE_SHARE * len(pairs)))]
        labels_again, _ = run_kmeans(pairs[np.ix_(rows, rows)], count, seed + 2 + number)
        agreements.append(measure_rand(labels[rows], labels_again))
    return float(np.mean(agreements))


def measure_rand(first: Labels, second: Labels) -> float:
    """Return how well two clusterings agree: 1 if they are the same, about 0 by chance."""
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), 1)
    pairs = (table * (table - 1) / 2).sum()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    row_pairs, column_pairs = (rows * (rows - 1) / 2).sum(), (columns * (columns - 1) / 2).sum()
    expected = row_pairs * column_pairs / max(len(first) * (len(first) - 1) / 2, 1)
    largest = (row_pairs + column_pairs) / 2
    return 1.0 if largest == expected else float((pairs - expected) / (largest - expected))


def _drop_empty(labels: Labels, cosines: Array) -> tuple[Labels, Array]:
    """The same clusters without those that no vector is in."""
    used, new_labels = np.unique(labels, return_inverse=True)
    return new_labels, cosines[:, used]


def _sort_by_size(clusters: Clusters) -> Clusters:
    """The same clusters, the largest first; among equals, the one with the earliest vector."""
    counts = np.bincount(clusters.labels, minlength=len(clusters.centres))
    earliest = np.full(len(counts), len(clusters.labels))
    np.minimum.at(earliest, clusters.labels, np.arange(len(clusters.labels)))
    order = np.lexsort((earliest, -counts))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return Clusters(ranks[clusters.labels], clusters.centres[order], clusters.silhouette, clusters.stability)
