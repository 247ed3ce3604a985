"""Mix the layers of a biLM into one vector per token (Peters et al. 2018, equation 1).

    model.bilm  ->  model.mix  ->  torch_layer, tasks

L layers, B sentences, T tokens, H = both directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyseme.model.dropout import Dropout


class Mix(nn.Module):
    """Weighted sum of layers: gamma * sum_l softmax(w)_l * layer_l."""

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
        trained_gamma: bool = True,
        dropout: float = 0.0,
    ) -> None:
        """Create the parameters of a mix.

        Args:
            n_layers: L, with the token layer.
            by_direction: One weight per layer and direction, with a softmax for each direction.
            top_only: No weights: the top layer times gamma.
            layer_norm: Normalise each layer first.
            weights: Initial weights, before the softmax; equal by default.
            gamma: Initial scale.
            trained: Whether weights and gamma are trained.
            trained_gamma: Whether gamma is, if the weights are.
            dropout: Share of the mixed values that is dropped in training.

        Raises:
            ValueError: If `weights` do not fit the number of layers.

        """
        super().__init__()
        if weights is not None and (top_only or len(weights) != n_layers):
            raise ValueError(f"{len(weights)} weights do not fit {1 if top_only else n_layers} layers")
        values = [0.0] * n_layers if weights is None else list(weights)
        initial = torch.tensor(values, dtype=torch.float32, device="cpu")
        if by_direction:
            initial = initial[:, None].repeat(1, 2)
        self.n_layers, self.by_direction, self.layer_norm = n_layers, by_direction, layer_norm
        self.weights = None if top_only else nn.Parameter(initial, requires_grad=trained)  # (L,) or (L, 2)
        self.gamma = nn.Parameter(
            torch.tensor(gamma, dtype=torch.float32, device="cpu"), requires_grad=trained and trained_gamma
        )
        self.dropout = Dropout(dropout)

    @property
    def shares(self) -> list[float] | list[list[float]]:
        """Weight of each layer after the softmax; with `by_direction` a pair (forward, backward) each."""
        if self.weights is None:
            return [0.0] * (self.n_layers - 1) + [1.0]
        return self.weights.detach().softmax(dim=0).tolist()

    def penalty(self) -> Tensor:
        """Sum the squared weights, for an L2 term that keeps the weights equal.

        Returns:
            A scalar; zero without weights.

        """
        return self.gamma.new_zeros(()) if self.weights is None else self.weights.square().sum()

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the layers of a batch.

        Args:
            layers: (L, B, T, H).
            mask: (B, T) the real tokens, to which the layer norm is restricted; None is all.

        Returns:
            The mixed vectors (B, T, H).

        """
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
    """Normalise by one mean and one deviation over all values of the unmasked tokens."""
    values = layer if mask is None else layer[mask.bool()]
    if values.numel() == 0:
        return layer
    mean = values.mean()
    variance = (values - mean).square().mean()
    return (layer - mean) / torch.sqrt(variance + 1e-12)
