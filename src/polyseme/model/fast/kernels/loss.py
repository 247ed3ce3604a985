"""The loss of a softmax over sampled words, or all of them, and its gradients, in one pass in C.

    model.softmax  ->  kernels.loss  ->  kernels.native, model.fast.parallel

The scores of all targets and words never exist at once. The targets are split into two halves, which run on
two cores if there are several; the results have the same bits for any number of cores.

N targets, D outputs, U words, the first S of which every target is compared with.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.parallel import run_parallel

HALVES = 2
MIN_SHARED = 1 << 20  # values: packing fewer takes less time than waking another thread


def is_supported(outputs: Tensor, rows: Tensor, bias: Tensor, dtype: torch.dtype) -> bool:
    """Whether the library can compute the loss of these tensors with products in `dtype`."""
    in_c = dtype == torch.float32 or (dtype == torch.bfloat16 and lstm.multiplies_bf16())
    return in_c and lstm.is_supported(outputs, rows, bias)


def mean_loss(
    outputs: Tensor, rows: Tensor, bias: Tensor, labels: Tensor, samples: int, dtype: torch.dtype
) -> Tensor:
    """Mean negative log likelihood of the `labels` among themselves and the sampled words.

    Args:
        outputs: (N, D), N at least 1.
        rows: (U, D) the row of each word.
        bias: (U,).
        labels: (N,) the word of each target; one of the first `samples` words is left out of its comparison.
        samples: S, the number of words that every target is compared with.
        dtype: Of the factors of the products: float32 or bfloat16.

    """
    return _SoftmaxLoss.apply(outputs, rows, bias, labels, samples, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _SoftmaxLoss(torch.autograd.Function):
    """Computes loss and gradients at once: the backward pass only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        outputs: Tensor,
        rows: Tensor,
        bias: Tensor,
        labels: Tensor,
        samples: int,
        dtype: torch.dtype,
    ) -> Tensor:
        if int(labels.min()) < 0 or int(labels.max()) >= len(rows) or samples > len(rows) or samples < 1:
            raise ValueError(f"labels and {samples} samples must be among the {len(rows)} words")
        outputs, rows, bias, labels = (t.contiguous() for t in (outputs, rows, bias, labels))
        compared = rows[:samples]
        packs = [partial(lstm.pack_rounded, weight, dtype) for weight in (compared, compared.t())]
        is_small = compared.numel() < MIN_SHARED
        packed, transposed = (pack() for pack in packs) if is_small else run_parallel(packs)
        d_outputs, losses = torch.empty_like(outputs), outputs.new_empty(2, len(outputs))
        library, (size, kind) = native.load_library(), (outputs.shape[1], native.KINDS[dtype])

        def run_half(first: int, last: int) -> tuple[Tensor, Tensor]:
            """Loss and gradients of the targets from `first` to `last`; gradients of rows and bias."""
            d_rows, d_bias = torch.zeros_like(rows), torch.zeros_like(bias)
            needed = library.polyseme_loss_scratch_size(last - first, size, samples)
            scratch = native.allocate_scratch(needed)
            task = native.Loss(kind, last - first, size, samples, 1 / len(outputs))
            tensors = {
                "outputs": outputs[first:last], "weight": rows, "bias": bias, "labels": labels[first:last],
                "packed": packed.packed, "transposed": transposed.packed, "scratch": scratch,
                "sums": losses[0, first:last], "margins": losses[1, first:last],
                "d_outputs": d_outputs[first:last], "d_weight": d_rows, "d_bias": d_bias,
            }  # fmt: skip
            for name, tensor in tensors.items():
                setattr(task, name, tensor.data_ptr())
            library.polyseme_loss(task)
            return d_rows, d_bias

        bounds = [len(outputs) * half // HALVES for half in range(HALVES + 1)]
        halves = run_parallel(
            [partial(run_half, first, last) for first, last in pairwise(bounds) if last > first]
        )
        d_rows, d_bias = halves[0]
        for more_rows, more_bias in halves[1:]:
            d_rows += more_rows
            d_bias += more_bias
        ctx.save_for_backward(d_outputs, d_rows, d_bias)
        return (losses[0].log() + losses[1]).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Any, ...]:
        gradients = ctx.saved_tensors
        if float(d_loss) != 1.0:  # one process that does not accumulate has 1
            gradients = tuple(gradient * d_loss for gradient in gradients)
        return *gradients, None, None, None
