"""Dense layers at the end of a network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyseme.model.dropout import Dropout


class Dense(nn.Module):
    """Dropout, a hidden layer unless its size is 0, the last layer."""

    def __init__(self, inputs: int, hidden: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.hidden = nn.Linear(inputs, hidden) if hidden else None
        self.last = nn.Linear(hidden or inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) -> (…, outputs)."""
        x = self.dropout(x)
        if self.hidden is not None:
            x = self.dropout(torch.relu(self.hidden(x)))
        return self.last(x)  # type: ignore[no-any-return]
