"""Stored vectors, by the C library: scores against queries, lengths in another space, sums.

    search.exact, search.statistics  ->  kernels.dots  ->  kernels.native

U stored vectors, Q queries, H values.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.model.fast.kernels import native
from polyseme.model.fast.kernels.lstm import pack_weight
from polyseme.model.fast.parallel import run_parallel
from polyseme.model.fast.quantisation import QuantisedMatrix

TOGETHER = 256  # vectors of which the best score is noted; of native.c
PANEL = 16  # queries that stand side by side; of native.c
KINDS = {np.dtype(np.float32): 0, np.dtype(np.float16): 3}  # of native.c


def score_query(
    vectors: NDArray[np.floating],  # (U, H) of fp16 or fp32
    query: NDArray[np.float32],  # (H,)
    offset: float,
    lengths: NDArray[np.float32],  # (U,)
    keep: NDArray[np.bool_] | None = None,  # (U,)
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(vectors @ query - offset) / lengths, -inf where not kept; and the best of every TOGETHER of them.

    All by the thread that calls.
    """
    rows, width = vectors.shape
    found = np.empty(rows, np.float32)
    tops = np.empty(-(-rows // TOGETHER), np.float32)
    _check_contiguous(vectors, query, lengths, keep)
    task = native.Dots(
        KINDS[vectors.dtype],
        rows,
        width,
        vectors.ctypes.data,
        query.ctypes.data,
        lengths.ctypes.data,
        None if keep is None else keep.ctypes.data,
        offset,
        found.ctypes.data,
        tops.ctypes.data,
    )
    native.load_library().polyseme_dots(ctypes.byref(task))
    return found, tops


class PackedQueries:
    """Queries (Q, H) laid out for products with many stored vectors, each with the offset of its scores."""

    def __init__(self, queries: NDArray[np.float32], offsets: NDArray[np.float32]) -> None:
        self.count, self.width = queries.shape
        self._packed = pack_weight(QuantisedMatrix(torch.from_numpy(queries))).packed
        self._offsets = self._padded(offsets, 0.0)

    def _padded(self, values: NDArray[np.float32], rest: float) -> NDArray[np.float32]:
        return np.concatenate([values, np.full(-self.count % PANEL, rest, np.float32)]).astype(np.float32)

    def find_above(
        self,
        vectors: NDArray[np.floating],  # (U, H) of fp16 or fp32
        lengths: NDArray[np.float32],  # (U,)
        least: NDArray[np.float32],  # (Q,)
        keep: NDArray[np.bool_] | None = None,  # (U,)
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The scores that are above the `least` of their query, and their places: row * Q + query."""
        _check_contiguous(vectors, lengths, keep)
        rows, limits = len(vectors), self._padded(least, np.inf)
        places, scores = np.empty(rows * self.count, np.int32), np.empty(rows * self.count, np.float32)
        step = max(1, -(-rows // torch.get_num_threads() // TOGETHER)) * TOGETHER

        def some(first: int) -> slice:
            scratch = np.empty(
                native.load_library().polyseme_above_scratch_size(self.count, self.width), np.uint8
            )
            room = first * self.count
            task: Any = native.Above(
                KINDS[vectors.dtype],
                min(step, rows - first),
                self.width,
                self.count,
                0,
                vectors[first:].ctypes.data,
                self._packed.data_ptr(),
                self._offsets.ctypes.data,
                limits.ctypes.data,
                lengths[first:].ctypes.data,
                None if keep is None else keep[first:].ctypes.data,
                scratch.ctypes.data,
                places[room:].ctypes.data,
                scores[room:].ctypes.data,
            )
            native.load_library().polyseme_above(ctypes.byref(task))
            found = slice(room, room + task.found)
            places[found] += room
            return found

        with torch.no_grad():  # only then side by side
            spans = run_parallel([partial(some, first) for first in range(0, rows, step)], native=True)
        return (
            np.concatenate([places[span] for span in spans] or [places]),
            np.concatenate([scores[span] for span in spans] or [scores]),
        )


class TransformedNorms:
    """The lengths of vectors in a space, less its `centre` (H,) and turned by its `turn` (H, H).

    Another turn with zeros above its diagonal leaves the same lengths, and half of the product is saved.
    """

    def __init__(self, centre: NDArray[np.float32], turn: NDArray[np.float32]) -> None:
        factor = np.linalg.qr(turn.T.astype(np.float64), mode="r")
        self._centre = np.ascontiguousarray(centre)
        self._packed = pack_weight(
            QuantisedMatrix(torch.from_numpy(np.ascontiguousarray(factor, np.float32)))
        ).packed

    def lengths(self, vectors: NDArray[np.floating]) -> NDArray[np.float32]:
        """The lengths (U,) of vectors (U, H) of fp16 or fp32 there, by the thread that calls."""
        _check_contiguous(vectors)
        rows, width = vectors.shape
        found = np.empty(rows, np.float32)
        scratch = np.empty(native.load_library().polyseme_squares_scratch_size(width), np.uint8)
        task = native.Squares(
            KINDS[vectors.dtype],
            rows,
            width,
            vectors.ctypes.data,
            self._packed.data_ptr(),
            self._centre.ctypes.data,
            scratch.ctypes.data,
            found.ctypes.data,
        )
        native.load_library().polyseme_squares(ctypes.byref(task))
        return np.sqrt(found, out=found)


def add_rows(
    sums: NDArray[np.float32],  # (W, H)
    places: NDArray[np.int32],  # (U,) from 0 to W - 1
    vectors: NDArray[np.floating],  # (U, H) of fp16 or fp32
) -> None:
    """sums[places[u]] += vectors[u], one after the other, by the thread that calls."""
    _check_contiguous(sums, places, vectors)
    if len(places) != len(vectors) or sums.shape[1] != vectors.shape[1]:
        raise ValueError("arrays that do not fit each other")
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(sums):
        raise ValueError("places that are none")
    rows, width = vectors.shape
    pointers = (array.ctypes.data for array in (vectors, places, sums))
    native.load_library().polyseme_totals(
        ctypes.byref(native.Totals(KINDS[vectors.dtype], rows, width, *pointers))
    )


def _check_contiguous(*arrays: NDArray[Any] | None) -> None:
    if not all(array is None or array.flags.c_contiguous for array in arrays):
        raise ValueError("arrays with gaps")
