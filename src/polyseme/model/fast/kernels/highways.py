"""A highway with its gradient, for training: products in C, activations with torch, both on all cores.

    model.tokens  ->  kernels.highways  ->  kernels.linears, model.fast.parallel

y = g * relu(t) + (1 - g) * x with t = T x + b and g = sigmoid(C x + c). Activations run on halves of the
rows. The results have the same bits for any number of cores.

N rows, F values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels.linears import find_gradients, multiply_all
from polyseme.model.fast.parallel import run_parallel

PARTS = 2  # of the rows


def run_highway_with_gradient(
    x: Tensor, weights: tuple[Tensor, Tensor], biases: tuple[Tensor, Tensor], dtype: torch.dtype
) -> Tensor:
    """Run a highway on x (N, F).

    Args:
        x: fp32 rows.
        weights: Of `transform` and `carry` (F, F).
        biases: Of both (F,).
        dtype: Of the factors of products: float32 or bfloat16, as `linears.find_dtype` returns it.

    """
    return _NativeHighway.apply(x, dtype, *weights, *biases)  # type: ignore[no-any-return, no-untyped-call]


class _NativeHighway(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype, *layers: Tensor) -> Tensor:
        x = x.contiguous()
        new, gate = multiply_all(x, layers[:2], layers[2:], dtype)
        out = torch.empty_like(x)

        def activate(rows: slice) -> None:
            gate[rows].sigmoid_()
            torch.lerp(x[rows], new[rows].relu_(), gate[rows], out=out[rows])

        _run_on_parts(activate, len(x))
        ctx.save_for_backward(x, new, gate, *layers[:2])
        ctx.dtype = dtype
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Any, ...]:
        x, new, gate, *weights = ctx.saved_tensors
        needs_x, _, *needed = ctx.needs_input_grad
        d_out = d_out.contiguous()
        d_x, d_new, d_gate = (torch.empty_like(x) for _ in range(3))

        def differentiate(rows: slice) -> None:
            d, g = d_out[rows], gate[rows]
            through = torch.mul(d, g, out=d_new[rows])
            torch.sub(d, through, out=d_x[rows])
            through.mul_(new[rows] > 0)
            part = torch.sub(new[rows], x[rows], out=d_gate[rows])
            torch.ops.aten.sigmoid_backward.grad_input(part.mul_(d), g, grad_input=part)

        _run_on_parts(differentiate, len(x))
        gradients = find_gradients(x, weights, (d_new, d_gate), ctx.dtype, needs_x, needed)

        def add_up(rows: slice) -> None:
            for part in gradients.inputs:
                d_x[rows] += part[rows]

        _run_on_parts(add_up, len(x))
        return d_x if needs_x else None, None, *gradients.weights, *gradients.biases


def _run_on_parts(run: Callable[[slice], None], rows: int) -> None:
    """Call `run` for some rows after the others, in parallel."""
    bounds = [rows * part // PARTS for part in range(PARTS + 1)]
    run_parallel([partial(run, slice(bounds[part], bounds[part + 1])) for part in range(PARTS)])
