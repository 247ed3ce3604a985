"""The time loop of an LSTM layer, in both directions or one, with a gradient of its own, in C.

    model.fast.paired  ->  kernels.training  ->  kernels.lstm, model.fast.parallel

Axis 0 is the direction; each runs on a thread of its own where there are two cores. The results are the same
bits for any number of threads.

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
    """What `paired._PairedLstm` is in torch; gates in the order i, f, o, candidate."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,  # (2, N, 4M) the gates' share of the input; used up
        bias: Tensor,  # (2, 1, 4M)
        hidden: Tensor,  # (2, 4M, D)
        projection: Tensor | None,  # (2, D, M)
        h: Tensor,  # (2, B, D)
        c: Tensor,  # (2, B, M)
        sizes: list[int],
        clips: lstm.Clips,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs (2, N, D) and the last state (2, B, D), (2, B, M)."""
        (count, tokens), (batch, outputs), cells = z.shape[:2], h.shape[1:], c.shape[2]
        run = lstm.LstmForward(
            output=z.new_empty(count, tokens, outputs),
            h=z.new_empty(count, batch, outputs),
            c=z.new_empty(count, batch, cells),
            gates=z.detach(),
            memory=z.new_empty(count, tokens, cells),
            raw=None if projection is None else z.new_empty(count, tokens, cells),
        )

        def one(half: int) -> None:
            packed = lstm.pack_layer(
                QuantisedMatrix(hidden[half]),
                None if projection is None else QuantisedMatrix(projection[half]),
            )
            lstm.run_forward(packed, bias[half, 0], sizes, (h[half], c[half]), clips, run.direction(half))

        run_parallel([partial(one, half) for half in range(count)])
        ctx.save_for_backward(hidden, projection, h, c, *run)
        ctx.sizes, ctx.clips = sizes, clips
        return run.output, run.h, run.c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Any, ...]:
        """The gradient of each argument of `forward`."""
        hidden, projection, h, c, *kept = ctx.saved_tensors
        run, d_output = lstm.LstmForward(*kept), d_output.contiguous()
        found = lstm.LstmBackward(
            z=torch.empty_like(run.gates),
            given=torch.empty_like(run.output),
            recurred=torch.empty_like(run.output),
            h=d_h.clone(memory_format=torch.contiguous_format),
            c=d_c.clone(memory_format=torch.contiguous_format),
        )

        def one(half: int) -> None:
            packed = lstm.pack_backward(hidden[half], None if projection is None else projection[half])
            state = h[half], c[half]
            lstm.run_backward(
                packed,
                ctx.sizes,
                state,
                ctx.clips,
                run.direction(half),
                d_output[half],
                found.direction(half),
            )

        run_parallel([partial(one, half) for half in range(len(hidden))])
        d_hidden = torch.bmm(found.z.transpose(1, 2), found.recurred)
        d_projection = None if run.raw is None else torch.bmm(found.given.transpose(1, 2), run.raw)
        return found.z, found.z.sum(dim=1, keepdim=True), d_hidden, d_projection, found.h, found.c, None, None
