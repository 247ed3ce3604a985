"""Dropout of some arrays without masks, each on a core of its own: for training.

    model.fast.paired  ->  kernels.dropout  ->  kernels.native, model.fast.parallel

Whether a value is dropped follows from its number and a seed, so that the backward pass needs no mask. C and
torch drop the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.parallel import count_cores

MASK = (1 << 32) - 1  # of unsigned 32-bit arithmetic
SEEDS = 1 << 62  # seeds are below that


def drop_values(x: Tensor, share: float, seeds: Sequence[int]) -> Tensor:
    """Drop about `share` of the values of each part of x (parts, ...), and scale up the rest.

    Args:
        x: On the CPU, each part with at most 2^32 values.
        share: Less than 1.
        seeds: One for each part, from 0 to SEEDS.

    """
    return _Dropped.apply(x, share, seeds)  # type: ignore[no-any-return, no-untyped-call]


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float, seeds: Sequence[int]) -> Tensor:
        ctx.share, ctx.seeds = share, seeds
        return _drop(x, share, seeds)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, None, None]:
        return _drop(d_out, ctx.share, ctx.seeds), None, None


def _drop(x: Tensor, share: float, seeds: Sequence[int]) -> Tensor:
    dropped, factor = min(round(share * (MASK + 1)), MASK), 1 / (1 - share)
    if not lstm.is_supported(x):
        kept = [
            _find_kept(part.numel(), dropped, seed).view(part.shape)
            for part, seed in zip(x, seeds, strict=True)
        ]
        return torch.where(torch.stack(kept), x * factor, 0.0)
    x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    tasks = (native.Drop * len(x))()
    for task, seed, part, to in zip(tasks, seeds, x, out, strict=True):
        task.count, task.dropped, task.factor = part.numel(), dropped, factor
        task.seed, task.second_seed = seed & MASK, seed >> 32
        task.x, task.out = part.data_ptr(), to.data_ptr()
    native.load_library().polyseme_drop(tasks, len(tasks), count_cores())
    return out


def _find_kept(count: int, dropped: int, seed: int) -> Tensor:
    """Which of `count` values are kept, as in dropout.h."""
    numbers = torch.arange(count, device="cpu") & MASK
    return _mix_bits(_mix_bits(numbers ^ (seed & MASK)) ^ (seed >> 32)) >= dropped


def _mix_bits(h: Tensor) -> Tensor:
    """The finaliser of MurmurHash3 for values of 32 bits, in int64."""
    h = _multiply(h ^ h >> 16, 0x85EBCA6B)
    h = _multiply(h ^ h >> 13, 0xC2B2AE35)
    return h ^ h >> 16


def _multiply(h: Tensor, factor: int) -> Tensor:
    """The lower 32 bits of a product, whose parts stay below 2^63."""
    return (h * (factor & 0xFFFF) + ((h * (factor >> 16) & 0xFFFF) << 16)) & MASK
