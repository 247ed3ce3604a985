"""Linear layers with the same input, with their gradients, a core for each: for training.

    model.tokens, kernels.highways
        ->  kernels.linears  ->  kernels.lstm, kernels.gradients, model.fast.parallel

In bf16 products are in C: their factors are rounded; sums, results and gradients are fp32. In fp32 those of
small weights are in C, too, since oneDNN compiles its product anew for every number of rows. Large ones are
torch's, which needs no packed copy of a weight, for the case that torch keeps to one core
(model.fast.parallel). Each layer runs on one core: its product, and the gradients of its weight and input.
The results have the same bits for any number of cores.

N rows, I inputs, O outputs of a layer.
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
from polyseme.model.fast.parallel import is_torch_kept_on_one_core, run_parallel

MIN_ROWS = 48  # for fewer it is not worth packing the weights
MIN_OUTPUTS = 64  # of each half of a layer that is split for two cores
MAX_PACKED = 1 << 18  # values of an fp32 weight in C: with its packed copy it fits the L2 cache of most CPUs


def find_dtype(x: Tensor, *weights: Tensor) -> torch.dtype | None:
    """The dtype of the factors if each layer runs on a core of its own here; None: torch is as fast."""
    if not torch.is_grad_enabled() or torch.compiler.is_compiling() or len(x) < MIN_ROWS:
        return None
    if not lstm.is_supported(x, *weights):
        return None
    if not torch.is_autocast_enabled("cpu"):
        return torch.float32 if is_torch_kept_on_one_core() else None
    rounds = torch.get_autocast_dtype("cpu") == torch.bfloat16 and lstm.multiplies_bf16()
    return torch.bfloat16 if rounds else None


def _is_packed_as_fp32(weight: Tensor) -> bool:
    """Whether the products of an fp32 weight run in C."""
    return weight.numel() <= MAX_PACKED


def apply_in_c(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], dtype: torch.dtype
) -> list[Tensor]:
    """Return x W^T + b for each of `weights` (O, I) and `biases` (O,), with factors of `dtype`."""
    if len(weights) > 1 or len(biases[0]) < 2 * MIN_OUTPUTS:
        return list(_NativeLinears.apply(x, dtype, *weights, *biases))  # type: ignore[no-untyped-call]
    halves = [*weights[0].chunk(2), *biases[0].chunk(2)]
    return [torch.cat(_NativeLinears.apply(x, dtype, *halves), dim=1)]  # type: ignore[no-untyped-call]


def multiply_all(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], dtype: torch.dtype
) -> list[Tensor]:
    """Return x W^T + b for each layer, without a record for gradients."""

    def run(weight: Tensor, bias: Tensor) -> Tensor:
        if dtype == torch.float32 and not _is_packed_as_fp32(weight):
            return torch.addmm(bias, x, weight.t())
        return lstm.multiply(x, lstm.pack_rounded(weight, dtype), bias.repeat(len(x), 1))

    return run_parallel([partial(run, *layer) for layer in zip(weights, biases, strict=True)])


class LayerGradients(NamedTuple):
    """The gradients of some layers with the same input; None where none is needed."""

    inputs: list[Tensor]  # each layer's part of the input's gradient
    weights: list[Tensor | None]
    biases: list[Tensor | None]


def find_gradients(
    x: Tensor,
    weights: Sequence[Tensor],
    d_outputs: Sequence[Tensor],
    dtype: torch.dtype,
    needs_x: bool,
    needed: Sequence[bool],
) -> LayerGradients:
    """The gradients of layers from those of their outputs; `needed` for the weights, then for the biases."""

    def run(weight: Tensor, d_output: Tensor, needs_weight: bool, needs_bias: bool) -> list[Tensor | None]:
        d_output = d_output.contiguous()
        d_bias = d_output.sum(dim=0) if needs_bias else None
        if dtype == torch.float32 and not _is_packed_as_fp32(weight):
            d_x = d_output @ weight if needs_x else None
            return [d_x, d_output.t() @ x if needs_weight else None, d_bias]
        return [
            lstm.multiply(d_output, lstm.pack_rounded(weight.t(), dtype)) if needs_x else None,
            multiply_transposed(d_output, x, dtype) if needs_weight else None,
            d_bias,
        ]

    count = len(weights)
    tasks = zip(weights, d_outputs, needed[:count], needed[count:], strict=True)
    gradients = run_parallel([partial(run, *task) for task in tasks])
    parts = [part for part, *_ in gradients if part is not None]
    return LayerGradients(parts, [g[1] for g in gradients], [g[2] for g in gradients])


class _NativeLinears(torch.autograd.Function):
    """Rows (N, I) to (N, O) for each layer; weights first, then biases."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype, *layers: Tensor) -> tuple[Tensor, ...]:
        weights, biases = layers[: len(layers) // 2], layers[len(layers) // 2 :]
        x = x.contiguous()
        ctx.save_for_backward(x, *weights)
        ctx.dtype = dtype
        return tuple(multiply_all(x, weights, biases, dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Any, ...]:
        x, *weights = ctx.saved_tensors
        needs_x, _, *needed = ctx.needs_input_grad
        gradients = find_gradients(x, weights, d_outputs, ctx.dtype, needs_x, needed)
        return _add_up(gradients.inputs), None, *gradients.weights, *gradients.biases


def _add_up(parts: list[Tensor]) -> Tensor | None:
    """The sum of the parts, in the first one."""
    for part in parts[1:]:
        parts[0] += part
    return parts[0] if parts else None
