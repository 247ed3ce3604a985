"""An LSTM over the tokens of a sentence, in one direction or in both.

    tasks.nn.featurizer  ->  tasks.nn.encoder  ->  the networks of the tasks

It is the LSTM of the biLM (`model.fast.paired`), with its gradient in C, over packed sentences.
B sentences, T tokens, D values of a token, E = directions * size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from polyseme.model.fast.packing import pack_batch
from polyseme.model.fast.paired import PairDropout, apply_dropout, run_layer_paired
from polyseme.model.recurrent import RecurrentCell
from polyseme.tasks.examples import Tokens
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures
from polyseme.tasks.settings import EncoderSettings


class Encoder(nn.Module):
    """Layers of LSTMs; each reads both directions of the layer below."""

    def __init__(
        self, inputs: int, size: int, layers: int, directions: int, dropout: float, recurrent_dropout: float
    ) -> None:
        super().__init__()
        self.size, self.directions = size * directions, directions
        self._dropout, self._weight_drop = PairDropout(dropout, variational=True), recurrent_dropout
        self.cells = nn.ModuleList(
            RecurrentCell("lstm", inputs if not number else size * directions, size, size, project=False)
            for number in range(layers)
            for _ in range(directions)
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, E); padding is zero."""
        batch, width = x.shape[:2]
        packing = pack_batch(lengths, width)
        sizes, rows = packing.sizes, torch.stack([packing.rows(half) for half in range(self.directions)])
        for number in range(0, len(self.cells), self.directions):
            pair = [cast(RecurrentCell, cell) for cell in self.cells[number : number + self.directions]]
            packed = x.flatten(0, 1)[rows]  # (directions, N, D)
            if self.training:
                packed = apply_dropout(packed, sizes, self._dropout)
            zero = packed.new_zeros(len(pair), batch, pair[0].outputs)
            outputs, _ = run_layer_paired(
                pair, packed, sizes, (zero, zero.clone()), self._weight_drop if self.training else 0.0
            )
            halves = [
                outputs.new_zeros(batch * width, outputs.shape[2]).index_copy(0, positions, half)
                for positions, half in zip(rows, outputs, strict=True)
            ]
            x = torch.cat(halves, dim=1).view(batch, width, -1)
        return x

    def last(self, outputs: Tensor, lengths: Tensor) -> Tensor:
        """The last output of each direction: (B, T, E) -> (B, E)."""
        size = outputs.shape[2] // self.directions
        end = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, size)
        forward = outputs[..., :size].gather(1, end)[:, 0]
        return torch.cat([forward, outputs[:, 0, size:]], dim=1)


class TokenStack(nn.Module):
    """What the networks of most tasks begin with: featurizer, encoder, and ELMo after it if so set."""

    def __init__(self, featurizer: Featurizer, settings: EncoderSettings, extra: int = 0) -> None:
        """Build the layers; `extra` is the number of values that a task appends to each token's input."""
        super().__init__()
        self.featurizer = featurizer
        size = featurizer.size + extra
        self.encoder: Encoder | None = None
        if settings.directions:
            shape = (settings.size, settings.layers, settings.directions)
            self.encoder = Encoder(size, *shape, settings.dropout, settings.recurrent_dropout)
            size = self.encoder.size
        self.size = size + featurizer.late_size

    def read(self, sentences: Sequence[Tokens]) -> TokenFeatures:
        """The sentences of a batch as tensors."""
        return self.featurizer.read(sentences)

    def forward(self, features: TokenFeatures, extra: Tensor | None = None) -> Tensor:
        """A batch to (B, T, E)."""
        x, late = self.featurizer(features)
        if extra is not None:
            x = torch.cat([x, extra], dim=2)
        if self.encoder is not None:
            x = self.encoder(x, features.lengths)
        return x if late is None else torch.cat([x, late], dim=2)
