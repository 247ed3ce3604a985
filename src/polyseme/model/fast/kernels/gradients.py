"""Gradients of weights in C: sums over tokens.

    kernels.training, kernels.linears  ->  kernels.gradients  ->  kernels.native

A call uses one core and releases the GIL. The sums have the same order for any number of cores.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyseme.model.fast.kernels import native


def multiply_transposed(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """Sum a (N, m) times b (N, n) over their N rows, in fp32: (m, n).

    Args:
        a: fp32, on the CPU, its rows without gaps.
        b: As `a`.
        dtype: float32, or bfloat16 to round both factors of each product.

    """
    if len(a) != len(b) or not _has_dense_rows(a) or not _has_dense_rows(b):
        raise ValueError(
            f"expected fp32 rows on the CPU, as many in both: {tuple(a.shape)}, {tuple(b.shape)}"
        )
    library, (m, n) = native.load_library(), (a.shape[1], b.shape[1])
    out = a.new_empty(m, n) if len(a) else a.new_zeros(m, n)
    scratch = native.allocate_scratch(library.polyseme_outer_scratch_size(n))
    task = native.Outer(native.KINDS[dtype], 1, len(a), m, n, a.stride(0), b.stride(0))
    task.a, task.b, task.scratch, task.out = (tensor.data_ptr() for tensor in (a, b, scratch, out))
    library.polyseme_outer(task)
    return out


def _has_dense_rows(x: Tensor) -> bool:
    return x.dtype == torch.float32 and x.device.type == "cpu" and x.dim() == 2 and x.stride(1) == 1
