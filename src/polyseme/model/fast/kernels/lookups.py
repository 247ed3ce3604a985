"""Rows of a table, with the gradient of the table in C, on all cores.

    model.tokens, model.softmax, model.fast.char_filters, training.objective
        ->  kernels.lookups  ->  kernels.native, model.fast.parallel

The gradient of a large table is mostly zeros, and writing them took longer than adding up its rows. The
results have the same bits for any number of cores.

R rows of a table, N numbers.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.parallel import count_cores


def take_rows(table: Tensor, numbers: Tensor, padding: int | None = None) -> Tensor:
    """The rows (..., D) of a table (R, D) with `numbers` (...); the row `padding` gets no gradient."""
    if not (torch.is_grad_enabled() and table.requires_grad) or torch.compiler.is_compiling():
        return F.embedding(numbers, table, padding)
    if not lstm.is_supported(table) or not table.is_contiguous() or numbers.dtype != torch.int64:
        return F.embedding(numbers, table, padding)
    return _TakenRows.apply(table, numbers, padding)  # type: ignore[no-any-return, no-untyped-call]


class _TakenRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, numbers: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(numbers)
        ctx.shape, ctx.padding = table.shape, padding
        return F.embedding(numbers, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_rows: Tensor) -> tuple[Tensor, None, None]:
        numbers, d_rows = ctx.saved_tensors[0].contiguous(), d_rows.float().contiguous()
        d_table = d_rows.new_empty(ctx.shape)
        padding = -1 if ctx.padding is None else ctx.padding
        task = native.Lookup(*ctx.shape, numbers.numel(), padding)
        task.numbers, task.gradient, task.out = (t.data_ptr() for t in (numbers, d_rows, d_table))
        native.load_library().polyseme_lookup_backward(task, count_cores())
        return d_table, None, None
