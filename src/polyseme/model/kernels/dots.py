"""Stored vectors against one query, by the C library: scores, and which of them are worth a look.

    search.exact  ->  kernels.dots  ->  kernels.native

U stored vectors, H values.
"""

from __future__ import annotations

import ctypes
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.model.kernels import native
from polyseme.model.threads import run_all

TOGETHER = 256  # vectors of which the best score is noted; of native.c
KINDS = {np.dtype(np.float32): 0, np.dtype(np.float16): 3}  # of native.c


def scores(
    vectors: NDArray[np.floating],  # (U, H) of fp16 or fp32
    query: NDArray[np.float32],  # (H,)
    offset: float,
    lengths: NDArray[np.float32],  # (U,)
    keep: NDArray[np.bool_] | None = None,  # (U,)
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(vectors @ query - offset) / lengths, -inf where not kept; and the best of every TOGETHER of them."""
    rows, width = vectors.shape
    found = np.empty(rows, np.float32)
    tops = np.empty(-(-rows // TOGETHER), np.float32)
    arrays = (vectors, query, lengths, *(() if keep is None else (keep,)))
    if not all(array.flags.c_contiguous for array in arrays):
        raise ValueError("arrays with gaps")
    step = max(1, -(-len(tops) // torch.get_num_threads())) * TOGETHER

    def some(first: int) -> None:
        native.library().polyseme_dots(
            ctypes.byref(
                native.Dots(
                    KINDS[vectors.dtype],
                    min(step, rows - first),
                    width,
                    vectors[first:].ctypes.data,
                    query.ctypes.data,
                    lengths[first:].ctypes.data,
                    None if keep is None else keep[first:].ctypes.data,
                    offset,
                    found[first:].ctypes.data,
                    tops[first // TOGETHER :].ctypes.data,
                )
            )
        )

    with torch.no_grad():  # only then side by side
        run_all([partial(some, first) for first in range(0, rows, step)], without_torch=True)
    return found, tops
