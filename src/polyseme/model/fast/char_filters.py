"""The filters of a char-CNN: each distinct character is multiplied once, windows are sums.

    model.tokens  ->  model.fast.char_filters

A filter of width w over characters gives the sum of w parts, each of which depends on one character and its
place under the filter alone. The parts of all characters that occur are one product a filter; a window adds
up w of them. In the gradient only the strongest window of each word and filter takes part.

N words, C positions, K distinct characters, n filters of one width w, F filters in all.
`model.fast.lookup_tables` does the same with parts that are kept, for alphabets that are small enough.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 256  # words of like length whose windows are added up together


def max_over_windows(chars: Tensor, lengths: Tensor, embedding: Tensor, weights: list[Tensor]) -> Tensor:
    """Characters (N, C) of words with `lengths` to the maximum of each filter over its windows (N, F).

    embedding (characters, dim), of which row 0 is not trained; weights: one (n, dim, w) for each width.
    """
    used, places = torch.unique(chars, return_inverse=True)
    return _MaxOverWindows.apply(F.embedding(used, embedding, 0), places, lengths, *weights)  # type: ignore[no-any-return, no-untyped-call]


class _MaxOverWindows(torch.autograd.Function):
    """Vectors of the characters that occur (K, dim) and places (N, C) among them to (N, F)."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, places: Tensor, lengths: Tensor, *weights: Tensor) -> Tensor:
        blocks = _blocks(lengths, places.shape[1], max(weight.shape[2] for weight in weights))
        values, windows = [], []
        for weight in weights:
            n, _, w = weight.shape
            parts = (vectors @ _flat(weight)).to(vectors.dtype).view(-1, n)  # (K * w, n)
            best = parts.new_empty(len(places), n)
            first = torch.empty_like(best, dtype=torch.int32)
            for words, width in blocks:
                best[words], first[words] = _scan(parts, places[words, :width], w)
            values.append(best)
            windows.append(first)
        ctx.save_for_backward(vectors, places, *weights)
        ctx.windows = windows
        return torch.cat(values, dim=1)

    @staticmethod
    def backward(ctx: Any, d_values: Tensor) -> tuple[Tensor | None, ...]:
        vectors, places, *weights = ctx.saved_tensors
        d_vectors = torch.zeros_like(vectors)
        d_weights: list[Tensor] = []
        counts = [len(weight) for weight in weights]
        for weight, d, first in zip(weights, d_values.split(counts, dim=1), ctx.windows, strict=True):
            n, dim, w = weight.shape
            d_parts = d.new_zeros(len(vectors), w, n)
            for place in range(w):
                d_parts[:, place].scatter_add_(0, places.gather(1, first.long() + place), d)
            d_parts = d_parts.view(len(vectors), -1)
            d_vectors.addmm_(d_parts, _flat(weight).t())
            d_weights.append((vectors.t() @ d_parts).view(dim, w, n).permute(2, 0, 1))
        return d_vectors, None, None, *d_weights


def _flat(weight: Tensor) -> Tensor:
    """(n, dim, w) -> (dim, w * n)."""
    return weight.permute(1, 2, 0).reshape(weight.shape[1], -1)


def _blocks(lengths: Tensor, positions: int, widest: int) -> list[tuple[Tensor, int]]:
    """Words of like length, and how many of their positions are needed.

    Behind the longest word one window of padding alone must remain for every filter, since its value takes
    part in the maximum; all further ones are equal to it.
    """
    words = torch.argsort(lengths).split(BLOCK)
    return [(block, min(positions, int(lengths[block[-1]]) + widest)) for block in words if len(block)]


def _scan(parts: Tensor, places: Tensor, w: int) -> tuple[Tensor, Tensor]:
    """Parts (K * w, n) and places (N, C) to the highest window of each filter (N, n) and its number."""
    ids = places.unfold(1, w, 1) * w + torch.arange(w, device=places.device)  # (N, windows, w)
    sums = F.embedding_bag(ids.transpose(0, 1).reshape(-1, w), parts, mode="sum")
    windows = sums.view(ids.shape[1], len(places), -1)
    best, first = windows[0], torch.zeros_like(windows[0], dtype=torch.int32)
    for number, window in enumerate(windows[1:], start=1):
        first.masked_fill_(window > best, number)
        best = torch.maximum(best, window)
    return best, first
