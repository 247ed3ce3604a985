"""An LSTM layer in C, in one direction or both, with its gradient.

    model.fast.paired  ->  kernels.training  ->  kernels.lstm, kernels.gradients, model.fast.parallel

Axis 0 is the direction; with two cores, each direction runs on its own thread: the product of its inputs, its
time steps, and the gradients of its weights. The results have the same bits for any number of threads.

N packed tokens, B sentences, I inputs, D outputs, M memory cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.kernels.gradients import multiply_transposed
from polyseme.model.fast.parallel import run_parallel


class LayerWeights(NamedTuple):
    """The weights of one direction; gates in the order i, f, o, candidate."""

    inputs: Tensor  # (4M, I)
    bias: Tensor  # (4M,)
    hidden: Tensor  # (4M, D)
    projection: Tensor | None  # (D, M)


def run_layer_in_c(
    x: Tensor,
    state: tuple[Tensor, Tensor],
    weights: Sequence[LayerWeights],
    sizes: list[int],
    clips: lstm.Clips,
    dtype: torch.dtype,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run a layer of one or two directions.

    Args:
        x: Packed inputs (directions, N, I).
        state: Outputs (directions, B, D) and memory (directions, B, M) before the first step.
        weights: One for each direction.
        sizes: Sentences at each time step.
        clips: Of the memory and of the projected output.
        dtype: Of the factors of the products: float32 or bfloat16; everything else is fp32.

    Returns:
        Packed outputs (directions, N, D), and the state after each sentence's end.

    """
    flat = [weight for direction in weights for weight in direction]
    output, h, c = _NativePair.apply(x, *state, sizes, clips, dtype, *flat)  # type: ignore[no-untyped-call]
    return output, (h, c)


class _NativePair(torch.autograd.Function):
    """The C version of `paired._PairedLstm`, with the product of the inputs."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        h: Tensor,
        c: Tensor,
        sizes: list[int],
        clips: lstm.Clips,
        dtype: torch.dtype,
        *flat: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs (2, N, D) and the final state (2, B, D), (2, B, M)."""
        (count, tokens), (batch, outputs), cells = x.shape[:2], h.shape[1:], c.shape[2]
        weights, x = _group(flat), x.contiguous()
        run = lstm.LstmForward(
            output=x.new_empty(count, tokens, outputs),
            h=x.new_empty(count, batch, outputs),
            c=x.new_empty(count, batch, cells),
            gates=x.new_empty(count, tokens, 4 * cells),
            memory=x.new_empty(count, tokens, cells),
            raw=None if weights[0].projection is None else x.new_empty(count, tokens, cells),
        )

        def run_direction(direction: int) -> None:
            inputs, bias, hidden, projection = weights[direction]
            packed = lstm.pack_training(hidden, projection, inputs, dtype)
            mine = run.direction(direction)
            lstm.multiply(x[direction], packed.input, mine.gates, overwrite=True)  # type: ignore[arg-type]
            lstm.run_forward(packed, bias, sizes, (h[direction], c[direction]), clips, mine)

        run_parallel([partial(run_direction, direction) for direction in range(count)])
        ctx.save_for_backward(x, h, c, *run, *flat)
        ctx.sizes, ctx.clips, ctx.dtype = sizes, clips, dtype
        return run.output, run.h, run.c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Any, ...]:
        """Return the gradient of each argument of `forward`."""
        fields = len(lstm.LstmForward._fields)
        x, h, c, *saved = ctx.saved_tensors
        run, weights = lstm.LstmForward(*saved[:fields]), _group(saved[fields:])
        d_output = d_output.contiguous()
        d_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        gradients = lstm.LstmBackward(
            z=torch.empty_like(run.gates),
            unclipped=torch.empty_like(run.output),
            recurred=torch.empty_like(run.output),
            h=d_h.clone(memory_format=torch.contiguous_format),
            c=d_c.clone(memory_format=torch.contiguous_format),
        )

        def run_direction(direction: int) -> list[Tensor | None]:
            inputs, _, hidden, projection = weights[direction]
            packed = lstm.pack_backward(hidden, projection, inputs, ctx.dtype)
            mine, before = gradients.direction(direction), run.direction(direction)
            state = h[direction], c[direction]
            lstm.run_backward(packed, ctx.sizes, state, ctx.clips, before, d_output[direction], mine)
            if d_x is not None:
                lstm.multiply(mine.z, packed.input, d_x[direction], overwrite=True)  # type: ignore[arg-type]
            d_inputs = multiply_transposed(mine.z, x[direction], ctx.dtype)
            d_hidden = multiply_transposed(mine.z, mine.recurred, ctx.dtype)
            d_projection = (
                None if before.raw is None else multiply_transposed(mine.unclipped, before.raw, ctx.dtype)
            )
            return [d_inputs, mine.z.sum(dim=0), d_hidden, d_projection]

        d_weights = run_parallel([partial(run_direction, direction) for direction in range(len(weights))])
        flat = [gradient for direction in d_weights for gradient in direction]
        return (d_x, gradients.h, gradients.c, None, None, None, *flat)


def _group(flat: Sequence[Tensor | None]) -> list[LayerWeights]:
    """The weights of each direction, of which there are four, from a flat list."""
    return [LayerWeights(*flat[first : first + 4]) for first in range(0, len(flat), 4)]  # type: ignore[arg-type]
