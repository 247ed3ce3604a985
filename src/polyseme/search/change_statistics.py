"""Numbers about two sets of usages: distances, permutation tests, intervals, correction for many words.

    search.change_statistics  ->  search.change, benchmarks

Knows directions alone, no words and no files. N usages, H values, P permutations, B resamples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
Directions = NDArray[np.float32]
PERMUTATIONS = 100
RESAMPLES = 200
CONFIDENCE = 0.95
MIN_COSINE = 1e-3  # mean cosine within a corpus; usages in all directions have no prototype
MIN_LARGER = 5  # permuted values beyond the observed one; with fewer, p comes from a fitted tail
MIN_SKEW = 0.05  # below, the fitted tail is that of a normal distribution
TOLERANCE = 1e-6  # values that differ by less are equal: sums are in fp32


def measure_distances(
    first: Directions, second: Directions, permutations: int = 0, seed: int = 0
) -> tuple[Array, Array]:
    """Return the distances and the prototype distances of two sets of directions (N, H) each.

    The mean cosine of all pairs is a product of sums; a vector and itself are no pair. This way means of few
    usages do not seem farther apart than means of many.

    Args:
        first: The usages of one corpus.
        second: The usages of the other.
        permutations: Also divide all usages at random this many times.
        seed: Seeds the permutations.

    Returns:
        Mean cosine distance across minus that within, and cosine distance of the means, (1 + P,) each; the
        first value is the observed one.

    """
    both = np.concatenate([first, second])
    in_first = (np.arange(len(both)) < len(first)).astype(np.float32)
    rng = np.random.default_rng(seed)
    squares = np.einsum("nh,nh->n", both, both, dtype=np.float64)
    # Without the permutations, so that the observed value does not depend on their number.
    first_sums = first.sum(axis=0, dtype=np.float64)[None]
    first_squares = squares[: len(first)].sum()[None]
    if permutations:
        weights = np.stack([rng.permutation(in_first) for _ in range(permutations)])
        first_sums = np.concatenate([first_sums, (weights @ both).astype(np.float64)])  # (1 + P, H)
        first_squares = np.concatenate([first_squares, weights @ squares])
    second_sums = both.sum(axis=0, dtype=np.float64) - first_sums
    counts = len(first), len(second)
    within = (
        _average_pairs(first_sums, first_squares, counts[0] ** 2, counts[0]),
        _average_pairs(second_sums, squares.sum() - first_squares, counts[1] ** 2, counts[1]),
    )
    return _compute_distances(first_sums, second_sums, counts, within)


def measure_interval(
    first: Directions, second: Directions, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the confidence interval of the prototype distance: usages of both corpora are drawn again."""
    rng = np.random.default_rng(seed)
    sums, within = [], []
    for values in (first, second):
        count = len(values)
        weights = rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float32)
        drawn = (weights @ values).astype(np.float64)  # (B, H)
        # A usage that is drawn twice is not a pair: its cosine with itself would make the means seem near.
        lengths = (values.astype(np.float64) ** 2).sum(axis=1)
        repeated = (weights.astype(np.float64) ** 2).sum(axis=1)
        sums.append(drawn)
        within.append(_average_pairs(drawn, weights**2 @ lengths, count**2, repeated))
    _, prototypes = _compute_distances(sums[0], sums[1], (len(first), len(second)), (within[0], within[1]))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(prototypes, [tail, 100 - tail])
    return float(low), float(high)


def _average_pairs(sums: Array, squares: Array, products: float, same: Array | float) -> Array:
    """The mean cosine of pairs, from sums (P, H), without the products of a vector and itself."""
    means: Array = ((sums * sums).sum(axis=1) - squares) / np.maximum(1, products - same)
    return means


def _compute_distances(
    first: Array, second: Array, counts: tuple[int, int], within: tuple[Array, Array]
) -> tuple[Array, Array]:
    across = (first * second).sum(axis=1) / (counts[0] * counts[1])
    distances: Array = (within[0] + within[1]) / 2 - across
    lengths = np.sqrt(np.maximum(within[0], MIN_COSINE) * np.maximum(within[1], MIN_COSINE))
    no_prototype = np.maximum(within[0], within[1]) < MIN_COSINE  # in neither corpus: nothing can have moved
    return distances, np.where(no_prototype, 0, 1 - np.clip(across / lengths, -1, 1))


def estimate_p(values: Array) -> float:
    """Return how often chance gives at least the observed value.

    Args:
        values: (1 + P,) the observed value, then those of random divisions. If hardly any of them reaches the
            observed one, p is taken from the tail of a Pearson III distribution with their mean, variance
            and skewness, so that it can be smaller than 1 / (P + 1).

    """
    observed, permuted = float(values[0]), values[1:]
    larger = int((permuted >= observed - TOLERANCE).sum())
    counted = (larger + 1) / (len(permuted) + 1)
    deviation = float(permuted.std())
    if larger >= MIN_LARGER or deviation < TOLERANCE:
        return counted
    standard = (permuted - permuted.mean()) / deviation
    z, skew = (observed - float(permuted.mean())) / deviation, float((standard**3).mean())
    if skew < MIN_SKEW:
        return min(counted, math.erfc(z / math.sqrt(2)) / 2)
    shape = 4 / skew**2
    at = torch.tensor([shape, shape + 2 * z / skew], dtype=torch.float64, device="cpu")
    return min(counted, float(torch.special.gammaincc(at[0], at[1].clamp(min=0))))


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number by Benjamini and Hochberg: the false discovery rate of each."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)[::-1]
    ranks = np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.minimum.accumulate(p[order] * len(p) / ranks), 1)
    return [float(value) for value in corrected]
