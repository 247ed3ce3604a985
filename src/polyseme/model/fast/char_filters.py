"""The filters of a char-CNN: multiply each distinct character once, then add up windows.

    model.tokens  ->  model.fast.char_filters  ->  kernels.windows, model.fast.parallel

A filter of width w is a sum of w parts; each part depends only on one character and its position in the
filter. The parts of all characters that occur are one product per filter width; a window adds up w of them.
Only the strongest window of each word and filter has a gradient. On the CPU, training runs in C if the
library is available, the widths on several cores; torch computes the same otherwise.

N words, C positions, K distinct characters, n filters of one width w, F filters in all.
`model.fast.lookup_tables` does the same with stored parts, for small alphabets at inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.kernels.lookups import take_rows
from polyseme.model.fast.kernels.windows import find_gradients, find_strongest
from polyseme.model.fast.parallel import is_torch_kept_on_one_core, run_parallel

BLOCK_WORDS = 256  # words of similar length whose windows are added up together


def max_over_windows(
    chars: Tensor,
    lengths: Tensor,
    embedding: Tensor,
    weights: list[Tensor],
    *,
    block_words: int = BLOCK_WORDS,
) -> Tensor:
    """Characters (N, C) of words with `lengths` to the maximum of each filter over its windows (N, F).

    Args:
        chars: Character ids.
        lengths: Characters of each word before its padding (N,).
        embedding: Vectors (characters, dim); row 0 is not trained.
        weights: One tensor (n, dim, w) for each width.
        block_words: Words of similar length whose windows are added up together.

    """
    used, columns = torch.unique(chars, return_inverse=True)
    vectors = take_rows(embedding, used, 0)
    if torch.is_grad_enabled() and len(chars) and lstm.is_supported(vectors, *weights):
        low = torch.is_autocast_enabled("cpu") and lstm.multiplies_bf16()
        dtype = torch.bfloat16 if low else torch.float32
        return _NativeWindows.apply(vectors, columns, lengths, dtype, *weights)  # type: ignore[no-any-return, no-untyped-call]
    return _MaxOverWindows.apply(vectors, columns, lengths, block_words, *weights)  # type: ignore[no-any-return, no-untyped-call]


class _MaxOverWindows(torch.autograd.Function):
    """Vectors of the characters that occur (K, dim) and their indices (N, C) to (N, F)."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, columns: Tensor, lengths: Tensor, block_words: int, *weights: Tensor
    ) -> Tensor:
        widest = max(weight.shape[2] for weight in weights)
        blocks = _split_blocks(lengths, columns.shape[1], widest, block_words)
        values, windows = [], []
        for weight in weights:
            n, _, w = weight.shape
            parts = (vectors @ _flatten(weight)).to(vectors.dtype).view(-1, n)  # (K * w, n)
            best = parts.new_empty(len(columns), n)
            first = torch.empty_like(best, dtype=torch.int32)
            for words, width in blocks:
                best[words], first[words] = _scan(parts, columns[words, :width], w)
            values.append(best)
            windows.append(first)
        ctx.save_for_backward(vectors, columns, *weights)
        ctx.windows = windows
        return torch.cat(values, dim=1)

    @staticmethod
    def backward(ctx: Any, d_values: Tensor) -> tuple[Tensor | None, ...]:
        vectors, columns, *weights = ctx.saved_tensors
        d_vectors = torch.zeros_like(vectors)
        d_weights: list[Tensor] = []
        for weight, d, first in zip(weights, _split(d_values, weights), ctx.windows, strict=True):
            n, dim, w = weight.shape
            d_parts = d.new_zeros(len(vectors), w, n)
            for offset in range(w):
                d_parts[:, offset].scatter_add_(0, columns.gather(1, first.long() + offset), d)
            d_parts = d_parts.view(len(vectors), -1)
            d_vectors.addmm_(d_parts, _flatten(weight).t())
            d_weights.append((vectors.t() @ d_parts).view(dim, w, n).permute(2, 0, 1))
        return d_vectors, None, None, None, *d_weights


class _NativeWindows(torch.autograd.Function):
    """The C version of `_MaxOverWindows`; the widest filters, which take longest, start first."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, columns: Tensor, lengths: Tensor, dtype: torch.dtype, *weights: Tensor
    ) -> Tensor:
        values = vectors.new_empty(len(columns), sum(len(weight) for weight in weights))
        packed = dtype == torch.bfloat16 or is_torch_kept_on_one_core()
        tasks = [
            # Windows from the end of the word on are all padding, and equal.
            partial(
                find_strongest,
                vectors,
                columns,
                lengths.clamp(max=columns.shape[1] - weight.shape[2]) + 1,
                weight,
                dtype,
                part,
                packed=packed,
            )
            for weight, part in zip(weights, _split(values, weights), strict=True)
        ]
        windows = run_parallel(tasks[::-1])[::-1]
        ctx.save_for_backward(vectors, columns, *weights, *windows)
        ctx.dtype = dtype
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_values: Tensor) -> tuple[Tensor | None, ...]:
        vectors, columns, *rest = ctx.saved_tensors
        weights, windows = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        tasks = [
            partial(find_gradients, vectors, columns, weight, ctx.dtype, part, first)
            for weight, part, first in zip(
                weights, _split(d_values.contiguous(), weights), windows, strict=True
            )
        ]
        gradients = run_parallel(tasks[::-1])[::-1]
        d_vectors = gradients[0][0]
        for more, _ in gradients[1:]:
            d_vectors += more
        return d_vectors, None, None, None, *(d_weight for _, d_weight in gradients)


def _split(values: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """The columns of each width."""
    return list(values.split([len(weight) for weight in weights], dim=1))


def _flatten(weight: Tensor) -> Tensor:
    """(n, dim, w) -> (dim, w * n)."""
    return weight.permute(1, 2, 0).reshape(weight.shape[1], -1)


def _split_blocks(lengths: Tensor, positions: int, widest: int, block_words: int) -> list[tuple[Tensor, int]]:
    """Blocks of `block_words` words of similar length, and the number of their positions that are needed.

    Behind the longest word there must be one window of padding only for every filter, since its value takes
    part in the maximum; all further windows are equal to it.
    """
    words = torch.argsort(lengths).split(block_words)
    return [(block, min(positions, int(lengths[block[-1]]) + widest)) for block in words if len(block)]


def _scan(parts: Tensor, columns: Tensor, w: int) -> tuple[Tensor, Tensor]:
    """Parts (K * w, n) and indices (N, C) to the highest window of each filter (N, n) and its number."""
    ids = columns.unfold(1, w, 1) * w + torch.arange(w, device=columns.device)  # (N, windows, w)
    sums = F.embedding_bag(ids.transpose(0, 1).reshape(-1, w), parts, mode="sum")
    windows = sums.view(ids.shape[1], len(columns), -1)
    best, first = windows[0], torch.zeros_like(windows[0], dtype=torch.int32)
    for number, window in enumerate(windows[1:], start=1):
        first.masked_fill_(window > best, number)
        best = torch.maximum(best, window)
    return best, first
