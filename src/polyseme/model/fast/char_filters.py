"""The filters of a char-CNN: multiply each distinct character once, then add up windows.

    model.tokens  ->  model.fast.char_filters

A filter of width w is a sum of w parts; each part depends only on one character and its position in the
filter. The parts of all characters that occur are one product per filter width; a window adds up w of them.
Only the strongest window of each word and filter has a gradient.

N words, C positions, K distinct characters, n filters of one width w, F filters in all.
`model.fast.lookup_tables` does the same with stored parts, for small alphabets at inference.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

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
    vectors = F.embedding(used, embedding, 0)
    return _MaxOverWindows.apply(vectors, columns, lengths, block_words, *weights)  # type: ignore[no-any-return, no-untyped-call]


class _MaxOverWindows(torch.autograd.Function):
    """Vectors of the characters that occur (K, dim) and their indices (N, C) to (N, F)."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, columns: Tensor, lengths: Tensor, block_words: int, *weights: Tensor
    ) -> Tensor:
        widest = max(weight.shape[2] for weight in weights)
        blocks = _blocks(lengths, columns.shape[1], widest, block_words)
        values, windows = [], []
        for weight in weights:
            n, _, w = weight.shape
            parts = (vectors @ _flat(weight)).to(vectors.dtype).view(-1, n)  # (K * w, n)
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
        counts = [len(weight) for weight in weights]
        for weight, d, first in zip(weights, d_values.split(counts, dim=1), ctx.windows, strict=True):
            n, dim, w = weight.shape
            d_parts = d.new_zeros(len(vectors), w, n)
            for offset in range(w):
                d_parts[:, offset].scatter_add_(0, columns.gather(1, first.long() + offset), d)
            d_parts = d_parts.view(len(vectors), -1)
            d_vectors.addmm_(d_parts, _flat(weight).t())
            d_weights.append((vectors.t() @ d_parts).view(dim, w, n).permute(2, 0, 1))
        return d_vectors, None, None, None, *d_weights


def _flat(weight: Tensor) -> Tensor:
    """(n, dim, w) -> (dim, w * n)."""
    return weight.permute(1, 2, 0).reshape(weight.shape[1], -1)


def _blocks(lengths: Tensor, positions: int, widest: int, block_words: int) -> list[tuple[Tensor, int]]:
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
