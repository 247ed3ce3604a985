"""Contextual vectors crowd into a narrow cone, where all is near to all: measured and corrected.

    search.build (a sample of usages)  ->  search.space  ->  search.index, search.senses

centre: the mean is taken away; components: and the directions in which all vectors vary most; whiten: every
direction is scaled to the same spread, as far as the sample knows it. N vectors, H values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError

Array = NDArray[np.float32]
Kind = Literal["none", "centre", "components", "whiten"]
KINDS: tuple[Kind, ...] = ("none", "centre", "components", "whiten")
ROWS = 1024  # vectors at a time: they stay in the cache
TOP = 2  # components that are taken away
TINY = 1e-12  # the spread of vectors that are all the same


@dataclass(frozen=True)
class Space:
    """What is done to a vector before cosines are taken: (x - centre) @ matrix."""

    kind: Kind
    centre: Array  # (H,)
    matrix: Array | None  # (H, H); None: as it is

    def to_directions(self, vectors: NDArray[np.floating]) -> Array:
        """(N, H) -> (N, H), of length 1; a vector of zeros stays one."""
        return normalize(self.transform(vectors))

    def transform(self, vectors: NDArray[np.floating]) -> Array:
        """(N, H) -> (N, H), with their lengths."""
        moved: Array = np.asarray(vectors, np.float32) - self.centre
        return moved if self.matrix is None else moved @ self.matrix


def normalize(vectors: Array) -> Array:
    """The vectors (…, H) with length 1; a vector of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: Array = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return found


def check_space(kind: str) -> None:
    """Refuse a correction that there is not."""
    if kind not in KINDS:
        raise UsageError(f"space is {kind!r}, expected one of {', '.join(KINDS)}.")


def uncorrected_space(size: int) -> Space:
    """No correction: only the lengths become 1."""
    return Space("none", np.zeros(size, np.float32), None)


def fit_space(vectors: NDArray[np.floating], kind: Kind, apart: NDArray[np.floating] | None = None) -> Space:
    """The correction that a sample (N, H) asks for.

    apart: differences (M, H) whose spread is made even by whitening, in place of that around the mean.
    """
    check_space(kind)
    count, size = vectors.shape
    if kind == "none" or count == 0:
        return uncorrected_space(size)
    centre = vectors.mean(axis=0, dtype=np.float64)
    if kind == "centre" or count < 2:
        return Space("centre", centre.astype(np.float32), None)
    differences, middle = (vectors, centre) if apart is None else (apart, np.zeros(size))
    spreads, axes = np.linalg.eigh(_products(differences, middle) / (len(differences) - 1))  # rising
    if kind == "components":
        top = axes[:, -TOP:]
        turn = np.eye(size) - top @ top.T
    else:
        share = size / (len(differences) + size)  # few vectors do not know the spread of every direction
        even = (1 - share) * np.maximum(spreads, 0) + share * max(spreads.mean(), TINY)
        scales = 1 / np.sqrt(even)
        turn = (axes * scales) @ axes.T
    return Space(kind, centre.astype(np.float32), turn.astype(np.float32))


def _products(vectors: NDArray[np.floating], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the outer products (H, H) of all vectors less the centre."""
    total = np.zeros((len(centre), len(centre)))
    for first in range(0, len(vectors), ROWS):
        some = vectors[first : first + ROWS] - centre
        total += some.T @ some
    return total


def measure_anisotropy(vectors: NDArray[np.floating], space: Space | None = None) -> float:
    """The mean cosine of all pairs: 0 where vectors point everywhere, near 1 in a narrow cone.

    No pair is looked at: the cosines of all of them add up to the square of the sum of all directions.
    """
    count = len(vectors)
    if count < 2:
        return 0.0
    apply = normalize if space is None else space.to_directions
    total, own = np.zeros(vectors.shape[1]), 0.0
    for first in range(0, count, ROWS):
        some = apply(np.asarray(vectors[first : first + ROWS], np.float32))
        total += some.sum(axis=0, dtype=np.float64)
        own += float(np.vdot(some, some))  # of each vector with itself
    return float(total @ total - own) / (count * (count - 1))
