"""Pool the tokens of a sentence into one vector: mean, maximum, attention, biattention.

    tasks.nn.encoder  ->  tasks.nn.pooling  ->  the networks of the tasks

B sentences, T tokens, E values.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LOW = -1e4  # for padding, before a softmax or a maximum


def mean(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, E) -> (B, E), over real tokens."""
    return (x * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def maximum(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, E) -> (B, E), over real tokens; zeros if there are none."""
    highest = x.masked_fill(~mask[..., None], LOW).amax(dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), highest, 0.0)


class Attention(nn.Module):
    """A learned weight for each token, then the weighted sum."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Linear(size, 1)
        self.size = size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, E) -> (B, E)."""
        weights = self.score(x)[..., 0].masked_fill(~mask, LOW).softmax(dim=1)
        return torch.einsum("bt,bte->be", weights * mask, x)


class Biattention(nn.Module):
    """Each token beside what it attends to in the sentence; maximum, mean and attention over both."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.join = nn.Linear(3 * size, size)
        self.attention = Attention(size)
        self.size = 3 * size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, E) -> (B, 3E)."""
        similarity = torch.bmm(x, x.transpose(1, 2)).masked_fill(~mask[:, None, :], LOW)
        attended = torch.bmm(similarity.softmax(dim=2), x)
        joined = torch.relu(self.join(torch.cat([x, x - attended, x * attended], dim=2)))
        return torch.cat([maximum(joined, mask), mean(joined, mask), self.attention(joined, mask)], dim=1)
