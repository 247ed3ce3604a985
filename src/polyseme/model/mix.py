"""Layers to one vector a token: the learned mixture of equation 1.

    model.bilm  ->  model.mix  ->  layer, tasks

L layers, B sentences, T tokens, H = both directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyseme.model.dropout import Dropout


class Mix(nn.Module):
    """gamma * sum_l softmax(w)_l * layer_l  (Peters et al. 2018, equation 1)."""

    def __init__(
        self,
        n_layers: int,
        *,
        by_direction: bool = False,
        top_only: bool = False,
        layer_norm: bool = False,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        trained: bool = True,
        dropout: float = 0.0,
    ) -> None:
        """Mix `n_layers`, alike at the start unless `weights` (before the softmax) say otherwise.

        by_direction: a weight for each layer and direction, each half with its own softmax;
        top_only: the top layer times a trained gamma; layer_norm: each layer is normalised first;
        trained=False: weights and gamma stay as they are.
        """
        super().__init__()
        if weights is not None and (top_only or len(weights) != n_layers):
            raise ValueError(f"{len(weights)} weights do not fit {1 if top_only else n_layers} layers")
        start = torch.zeros(n_layers) if weights is None else torch.tensor(list(weights), dtype=torch.float)
        if by_direction:
            start = start[:, None].repeat(1, 2)
        self.n_layers, self.by_direction, self.layer_norm = n_layers, by_direction, layer_norm
        self.weights = None if top_only else nn.Parameter(start, requires_grad=trained)  # (L,) or (L, 2)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=trained)
        self.dropout = Dropout(dropout)

    @property
    def shares(self) -> list[float] | list[list[float]]:
        """What part each layer has: a number a layer, or a pair (forward, backward) a layer."""
        if self.weights is None:
            return [0.0] * (self.n_layers - 1) + [1.0]
        return self.weights.detach().softmax(dim=0).tolist()

    def penalty(self) -> Tensor:
        """Sum of the squared weights, for an L2 term that keeps the layers alike."""
        return self.gamma.new_zeros(()) if self.weights is None else self.weights.square().sum()

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix (L, B, T, H) into (B, T, H); `mask` (B, T) says which tokens count for the layer norm."""
        if self.weights is None:
            layers = layers[-1:]
        if self.layer_norm:
            layers = torch.stack([_normalise(layer, mask) for layer in layers])
        if self.weights is None:
            mixed = layers[0]
        elif self.by_direction:
            halves = layers.unflatten(-1, (2, -1))  # (L, B, T, 2, D)
            mixed = torch.einsum("ld,lbtdh->btdh", self.weights.softmax(dim=0), halves).flatten(-2)
        else:
            mixed = torch.einsum("l,lbth->bth", self.weights.softmax(dim=0), layers)
        return self.dropout(self.gamma * mixed)  # type: ignore[no-any-return]


def _normalise(layer: Tensor, mask: Tensor | None) -> Tensor:
    """Subtract one mean and divide by one deviation, taken over all values of the unmasked tokens."""
    values = layer if mask is None else layer[mask.bool()]
    if values.numel() == 0:
        return layer
    mean = values.mean()
    variance = (values - mean).square().mean()
    return (layer - mean) / torch.sqrt(variance + 1e-12)
