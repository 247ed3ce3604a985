"""Outputs of one direction to scores of the next word.

    model.bilm (one half of the top layer)  ->  model.softmax  ->  language, training

N places, D one direction, V words of the vocabulary. Both directions share one softmax.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn


class Softmax(nn.Module):
    """A row and a bias for each word of the vocabulary."""

    def __init__(self, n_words: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, size).normal_(std=1 / sqrt(size)))
        self.bias = nn.Parameter(torch.zeros(n_words))

    def forward(self, outputs: Tensor) -> Tensor:
        """(N, D) -> log probabilities (N, V)."""
        return torch.log_softmax(torch.addmm(self.bias, outputs, self.weight.t()), dim=1)
