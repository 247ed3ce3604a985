"""Correct the space of contextual vectors, so that cosines tell meanings apart.

    search.statistics (a sample of usages)  ->  search.space  ->  search.index, search.clusters, server

Contextual vectors are anisotropic: they point into a narrow cone, where every cosine is high. Corrections:

    none        vectors as they are
    centre      subtract the mean
    components  subtract the mean and remove the directions of the largest variance
    whiten      subtract the mean and scale every direction to the same variance

N vectors, H values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import SpaceKind
from polyseme.errors import UsageError

Array = NDArray[np.float32]
SPACE_KINDS: tuple[SpaceKind, ...] = get_args(SpaceKind)
ROWS = 1024  # vectors at a time: they stay in the cache
TOP_COMPONENTS = 2  # removed by "components"
MIN_SHARE = 1e-10  # of the largest variance: less is rounding
MIN_VARIANCE = 1e-12  # assumed for vectors that are all the same


@dataclass(frozen=True)
class Space:
    """A correction of vectors: (x - centre) @ matrix.

    Attributes:
        kind: One of `SPACE_KINDS`.
        centre: (H,)
        matrix: (H, H), or None for the identity.

    """

    kind: SpaceKind
    centre: Array
    matrix: Array | None

    def transform(self, vectors: NDArray[np.floating]) -> Array:
        """Correct vectors (N, H); their lengths are kept."""
        centred: Array = np.asarray(vectors, np.float32) - self.centre
        return centred if self.matrix is None else centred @ self.matrix

    def to_directions(self, vectors: NDArray[np.floating]) -> Array:
        """Correct vectors (N, H) and scale them to length 1; zeros stay zeros."""
        return normalize(self.transform(vectors))


def normalize(vectors: Array) -> Array:
    """Scale vectors (…, H) to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    directions: Array = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return directions


def check_space(kind: str) -> None:
    """Refuse a correction that does not exist."""
    if kind not in SPACE_KINDS:
        raise UsageError(f"space is {kind!r}, expected one of {', '.join(SPACE_KINDS)}.")


def make_uncorrected_space(size: int) -> Space:
    """Return the space that leaves vectors as they are."""
    return Space("none", np.zeros(size, np.float32), None)


def fit_space(
    vectors: NDArray[np.floating], kind: SpaceKind, deviations: NDArray[np.floating] | None = None
) -> Space:
    """Fit a correction to a sample of vectors.

    Args:
        vectors: The sample (N, H).
        kind: One of `SPACE_KINDS`.
        deviations: (M, H) whiten by the covariance of these instead of that of the sample around its mean.

    Raises:
        UsageError: `kind` is unknown.

    """
    check_space(kind)
    count, size = vectors.shape
    if kind == "none" or count == 0:
        return make_uncorrected_space(size)
    centre = vectors.mean(axis=0, dtype=np.float64)
    if kind == "centre" or count < 2:
        return Space("centre", centre.astype(np.float32), None)
    rows, rows_centre = (vectors, centre) if deviations is None else (deviations, np.zeros(size))
    variances, axes = _principal_axes(rows, rows_centre)
    if kind == "components":
        top = axes[:, -TOP_COMPONENTS:]
        matrix = np.eye(size) - top @ top.T
    else:
        # A small sample does not know the variance of every direction: shrink towards the mean variance.
        shrinkage = size / (len(rows) + size)
        shrunk_to = shrinkage * max(np.maximum(variances, 0).sum() / size, MIN_VARIANCE)
        scales = 1 / np.sqrt((1 - shrinkage) * np.maximum(variances, 0) + shrunk_to)
        rest = 1 / np.sqrt(shrunk_to)  # of directions without variance, of which `axes` need not have any
        matrix = (axes * (scales - rest)) @ axes.T + rest * np.eye(size)
    return Space(kind, centre.astype(np.float32), matrix.astype(np.float32))


def _principal_axes(
    vectors: NDArray[np.floating], centre: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The variances (R,), ascending, and axes (H, R) of vectors (N, H) around the centre, R at most H.

    Fewer vectors than values span few directions, which are found from the products of the vectors.
    """
    count, size = vectors.shape
    if count >= size:
        variances, axes = np.linalg.eigh(_scatter_matrix(vectors, centre) / (count - 1))
        return variances, axes
    centred = np.asarray(vectors, np.float64) - centre
    variances, sides = np.linalg.eigh(centred @ centred.T / (count - 1))  # ascending
    has_variance = variances > max(variances[-1], MIN_VARIANCE) * MIN_SHARE
    variances, sides = variances[has_variance], sides[:, has_variance]
    return variances, centred.T @ sides / np.sqrt(variances * (count - 1))


def _scatter_matrix(vectors: NDArray[np.floating], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the outer products (H, H) of all vectors minus the centre."""
    total = np.zeros((len(centre), len(centre)))
    for first in range(0, len(vectors), ROWS):
        centred = vectors[first : first + ROWS] - centre
        total += centred.T @ centred
    return total


def measure_anisotropy(vectors: NDArray[np.floating], space: Space | None = None) -> float:
    """Return the mean cosine of all pairs: 0 for vectors in all directions, near 1 for a narrow cone.

    No pair is computed: the cosines of all pairs add up to the squared length of the sum of all directions.
    """
    count = len(vectors)
    if count < 2:
        return 0.0
    to_directions = normalize if space is None else space.to_directions
    total, with_itself = np.zeros(vectors.shape[1]), 0.0
    for first in range(0, count, ROWS):
        directions = to_directions(np.asarray(vectors[first : first + ROWS], np.float32))
        total += directions.sum(axis=0, dtype=np.float64)
        with_itself += float(np.vdot(directions, directions))
    return float(total @ total - with_itself) / (count * (count - 1))
