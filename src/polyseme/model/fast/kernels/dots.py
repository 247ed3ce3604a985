"""Operations on stored vectors in C: scores against queries, norms in a corrected space, sums.

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

TOGETHER = 256  # vectors per maximum in `score_query`; as in native.c
PANEL = 16  # queries that are packed together; as in native.c
KINDS = {np.dtype(np.float32): 0, np.dtype(np.float16): 3}  # as in native.c


def score_query(
    vectors: NDArray[np.floating],  # (U, H) of fp16 or fp32
    query: NDArray[np.float32],  # (H,)
    offset: float,
    lengths: NDArray[np.float32],  # (U,)
    keep: NDArray[np.bool_] | None = None,  # (U,)
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return (vectors @ query - offset) / lengths, and the maximum of every TOGETHER of them.

    Scores are -inf where `keep` is False. Runs in the calling thread.
    """
    rows, width = vectors.shape
    scores = np.empty(rows, np.float32)
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
        scores.ctypes.data,
        tops.ctypes.data,
    )
    native.load_library().polyseme_dots(ctypes.byref(task))
    return scores, tops


class PackedQueries:
    """Queries (Q, H) packed for products with many stored vectors, each with an offset of its scores."""

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
        """Return the scores above the `least` of their query, and their indices: row * Q + query."""
        _check_contiguous(vectors, lengths, keep)
        rows, limits = len(vectors), self._padded(least, np.inf)
        indices, scores = np.empty(rows * self.count, np.int32), np.empty(rows * self.count, np.float32)
        step = max(1, -(-rows // torch.get_num_threads() // TOGETHER)) * TOGETHER

        def search_rows(first: int) -> slice:
            scratch = np.empty(
                native.load_library().polyseme_above_scratch_size(self.count, self.width), np.uint8
            )
            start = first * self.count
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
                indices[start:].ctypes.data,
                scores[start:].ctypes.data,
            )
            native.load_library().polyseme_above(ctypes.byref(task))
            span = slice(start, start + task.found)
            indices[span] += start
            return span

        with torch.no_grad():  # otherwise `run_parallel` runs them one by one
            spans = run_parallel([partial(search_rows, first) for first in range(0, rows, step)], native=True)
        return (
            np.concatenate([indices[span] for span in spans] or [indices]),
            np.concatenate([scores[span] for span in spans] or [scores]),
        )


class TransformedNorms:
    """Norms of vectors in a corrected space: |(v - centre) @ turn|, with `centre` (H,) and `turn` (H, H).

    A triangular matrix gives the same norms for half of the product.
    """

    def __init__(self, centre: NDArray[np.float32], turn: NDArray[np.float32]) -> None:
        factor = np.linalg.qr(turn.T.astype(np.float64), mode="r")
        self._centre = np.ascontiguousarray(centre)
        self._packed = pack_weight(
            QuantisedMatrix(torch.from_numpy(np.ascontiguousarray(factor, np.float32)))
        ).packed

    def lengths(self, vectors: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the norms (U,) of vectors (U, H) of fp16 or fp32. Runs in the calling thread."""
        _check_contiguous(vectors)
        rows, width = vectors.shape
        squares = np.empty(rows, np.float32)
        scratch = np.empty(native.load_library().polyseme_squares_scratch_size(width), np.uint8)
        task = native.Squares(
            KINDS[vectors.dtype],
            rows,
            width,
            vectors.ctypes.data,
            self._packed.data_ptr(),
            self._centre.ctypes.data,
            scratch.ctypes.data,
            squares.ctypes.data,
        )
        native.load_library().polyseme_squares(ctypes.byref(task))
        return np.sqrt(squares, out=squares)


def add_rows(
    sums: NDArray[np.float32],  # (W, H)
    rows: NDArray[np.int32],  # (U,) from 0 to W - 1
    vectors: NDArray[np.floating],  # (U, H) of fp16 or fp32
) -> None:
    """Add up vectors by row, in order: sums[rows[u]] += vectors[u]. Runs in the calling thread."""
    _check_contiguous(sums, rows, vectors)
    if len(rows) != len(vectors) or sums.shape[1] != vectors.shape[1]:
        raise ValueError("arrays that do not fit each other")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(sums):
        raise ValueError("rows out of range")
    pointers = (array.ctypes.data for array in (vectors, rows, sums))
    native.load_library().polyseme_totals(
        ctypes.byref(native.Totals(KINDS[vectors.dtype], *vectors.shape, *pointers))
    )


def _check_contiguous(*arrays: NDArray[Any] | None) -> None:
    if not all(array is None or array.flags.c_contiguous for array in arrays):
        raise ValueError("arrays must be C-contiguous")
