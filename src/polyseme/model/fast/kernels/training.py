"""The time loop of an LSTM layer in C, in one direction or both, with its gradient.

    model.fast.paired  ->  kernels.training  ->  kernels.lstm, model.fast.parallel

Axis 0 is the direction; with two cores, each direction runs on its own thread. The results have the same bits
for any number of threads.

N packed tokens, B sentences, D outputs, M memory cells.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.parallel import run_parallel
from polyseme.model.fast.quantisation import QuantisedMatrix


class NativePair(torch.autograd.Function):
    """The C version of `paired._PairedLstm`; gates in the order i, f, o, candidate."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,  # (2, N, 4M) the input's share of the gates; overwritten
        bias: Tensor,  # (2, 1, 4M)
        hidden: Tensor,  # (2, 4M, D)
        projection: Tensor | None,  # (2, D, M)
        h: Tensor,  # (2, B, D)
        c: Tensor,  # (2, B, M)
        sizes: list[int],
        clips: lstm.Clips,
        dtype: torch.dtype,  # of the products: float32 or bfloat16; everything else is fp32
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs (2, N, D) and the final state (2, B, D), (2, B, M)."""
        (count, tokens), (batch, outputs), cells = z.shape[:2], h.shape[1:], c.shape[2]
        run = lstm.LstmForward(
            output=z.new_empty(count, tokens, outputs),
            h=z.new_empty(count, batch, outputs),
            c=z.new_empty(count, batch, cells),
            gates=z.detach(),
            memory=z.new_empty(count, tokens, cells),
            raw=None if projection is None else z.new_empty(count, tokens, cells),
        )

        def run_direction(direction: int) -> None:
            packed = lstm.pack_layer(
                QuantisedMatrix(hidden[direction].to(dtype)),
                None if projection is None else QuantisedMatrix(projection[direction].to(dtype)),
            )
            lstm.run_forward(
                packed,
                bias[direction, 0],
                sizes,
                (h[direction], c[direction]),
                clips,
                run.direction(direction),
            )

        run_parallel([partial(run_direction, direction) for direction in range(count)])
        ctx.save_for_backward(hidden, projection, h, c, *run)
        ctx.sizes, ctx.clips, ctx.dtype = sizes, clips, dtype
        return run.output, run.h, run.c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Any, ...]:
        """Return the gradient of each argument of `forward`."""
        hidden, projection, h, c, *saved = ctx.saved_tensors
        run, d_output = lstm.LstmForward(*saved), d_output.contiguous()
        gradients = lstm.LstmBackward(
            z=torch.empty_like(run.gates),
            unclipped=torch.empty_like(run.output),
            recurred=torch.empty_like(run.output),
            h=d_h.clone(memory_format=torch.contiguous_format),
            c=d_c.clone(memory_format=torch.contiguous_format),
        )

        def run_direction(direction: int) -> None:
            packed = lstm.pack_backward(
                hidden[direction].to(ctx.dtype),
                None if projection is None else projection[direction].to(ctx.dtype),
            )
            state = h[direction], c[direction]
            lstm.run_backward(
                packed,
                ctx.sizes,
                state,
                ctx.clips,
                run.direction(direction),
                d_output[direction],
                gradients.direction(direction),
            )

        run_parallel([partial(run_direction, direction) for direction in range(len(hidden))])
        d_hidden = _multiply(gradients.z, gradients.recurred, ctx.dtype)
        d_projection = None if run.raw is None else _multiply(gradients.unclipped, run.raw, ctx.dtype)
        return (
            gradients.z,
            gradients.z.sum(dim=1, keepdim=True),
            d_hidden,
            d_projection,
            gradients.h,
            gradients.c,
            None,
            None,
            None,
        )


def _multiply(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """Sum a (2, N, n) times b (2, N, k) over the tokens, in fp32: (2, n, k)."""
    return torch.bmm(a.to(dtype).transpose(1, 2), b.to(dtype)).float()
