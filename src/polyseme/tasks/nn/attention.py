"""Attention between two sequences, and of a sequence to itself (Seo et al. 2017, Clark and Gardner 2018).

    tasks.nn.encoder  ->  tasks.nn.attention  ->  tasks.answers.network

B texts, T tokens of a text, Q tokens of the other one, E values.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyseme.tasks.nn.pooling import LOW


class Trilinear(nn.Module):
    """Similarity of all pairs: u·x + v·y + (w∘x)·y."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.Linear(size, 1)
        self.second = nn.Linear(size, 1, bias=False)
        self.both = nn.Parameter(torch.full((size,), size**-0.5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(B, T, E), (B, Q, E) -> (B, T, Q)."""
        products = torch.bmm(x * self.both, y.transpose(1, 2))
        return products + self.first(x) + self.second(y).transpose(1, 2)  # type: ignore[no-any-return]


class CrossAttention(nn.Module):
    """Each token beside what it attends to in the other text, and beside what that text finds important."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.similarity = Trilinear(size)
        self.size = 4 * size

    def forward(self, x: Tensor, y: Tensor, mask: Tensor, other_mask: Tensor) -> Tensor:
        """(B, T, E), (B, Q, E) -> (B, T, 4E); the masks are (B, T) and (B, Q)."""
        scores = self.similarity(x, y).masked_fill(~other_mask[:, None], LOW)  # (B, T, Q)
        attended = torch.bmm(scores.softmax(dim=2), y)  # (B, T, E)
        important = scores.amax(dim=2).masked_fill(~mask, LOW).softmax(dim=1)  # (B, T)
        summary = torch.bmm(important[:, None], x)  # (B, 1, E)
        return torch.cat([x, attended, x * attended, x * summary], dim=2)


class SelfAttention(nn.Module):
    """Each token beside what it attends to in its own text, itself left out."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.similarity = Trilinear(size)
        self.size = 3 * size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, E) -> (B, T, 3E); a text of one token attends to nothing."""
        itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
        forbidden = ~mask[:, None] | itself
        weights = self.similarity(x, x).masked_fill(forbidden, LOW).softmax(dim=2)
        attended = torch.bmm(weights.masked_fill(forbidden, 0.0), x)
        return torch.cat([x, attended, x * attended], dim=2)
