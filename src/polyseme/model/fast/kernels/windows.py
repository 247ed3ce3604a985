"""The strongest window of each filter of a char-CNN, with its gradient, in C.

    model.fast.char_filters  ->  kernels.windows  ->  kernels.lstm, kernels.gradients, kernels.native

Filters of one width at a time, on one core. The results have the same bits for any number of cores.

N words, C positions, K distinct characters, n filters of one width w.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.kernels.gradients import multiply_transposed


def find_strongest(
    vectors: Tensor,
    columns: Tensor,
    counts: Tensor,
    weight: Tensor,
    dtype: torch.dtype,
    values: Tensor,
    *,
    packed: bool = True,
) -> Tensor:
    """Write the strongest window of each filter to `values` (N, n), and return the windows' numbers (N, n).

    Args:
        vectors: Vectors (K, dim) of the characters that occur.
        columns: Their indices (N, C) in the words.
        counts: How many windows of each word count (N,).
        weight: The filters (n, dim, w).
        dtype: Of the factors of the products: float32 or bfloat16.
        values: Rows of n values, which may be part of longer rows.
        packed: Multiply in C, where torch would compile a product for each K; False only for float32.

    """
    n, dim, w = weight.shape
    if not packed:
        parts = vectors @ weight.permute(1, 2, 0).reshape(dim, w * n)  # (K, w * n)
    else:
        flat = weight.permute(2, 0, 1).reshape(w * n, dim)
        parts = lstm.multiply(vectors, lstm.pack_rounded(flat, dtype))
    first = torch.empty(len(columns), n, dtype=torch.int32, device="cpu")
    native.load_library().polyseme_windows(_task(columns, counts, parts, values, first, w))
    return first


def find_gradients(
    vectors: Tensor, columns: Tensor, weight: Tensor, dtype: torch.dtype, d_values: Tensor, first: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `vectors` (K, dim) and `weight` (n, dim, w) from those of the values (N, n)."""
    n, dim, w = weight.shape
    d_parts = vectors.new_zeros(len(vectors), w * n)
    task = _task(columns, None, d_parts, d_values, first, w)
    native.load_library().polyseme_windows_backward(task)
    flat = weight.permute(1, 2, 0).reshape(dim, w * n)
    d_vectors = lstm.multiply(d_parts, lstm.pack_rounded(flat, dtype))
    d_weight = multiply_transposed(d_parts, vectors, dtype)  # (w * n, dim)
    return d_vectors, d_weight.view(w, n, dim).permute(1, 2, 0)


def _task(
    columns: Tensor, counts: Tensor | None, parts: Tensor, values: Tensor, first: Tensor, w: int
) -> Any:
    """A `struct windows` of these tensors; they must outlive it."""
    if columns.dtype != torch.int64 or not columns.is_contiguous() or values.stride(1) != 1:
        raise ValueError("columns must be contiguous int64, and rows of values without gaps")
    task = native.Windows(*columns.shape, first.shape[1], w, values.stride(0))
    task.chars, task.parts, task.values = columns.data_ptr(), parts.data_ptr(), values.data_ptr()
    task.first, task.counts = first.data_ptr(), None if counts is None else counts.data_ptr()
    return task
