"""An LSTM over the tokens of a sentence, in one direction or in both.

    tasks.nn.featurizer  ->  tasks.nn.encoder  ->  the heads of the tasks

It is the LSTM of the biLM (`model.fast.paired`), with its gradient in C, over packed sentences.
B sentences, T tokens, D values of a token, E = directions * size.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from polyseme.model.fast.packing import pack_batch
from polyseme.model.fast.paired import PairDropout, apply_dropout, run_layer_paired
from polyseme.model.recurrent import RecurrentCell
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures
from polyseme.tasks.settings import EncoderConfig


class Encoder(nn.Module):
    """Layers of LSTMs; each reads both directions of the one below."""

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
        """(B, T, D) -> (B, T, E); what stands behind a sentence is zero."""
        batch, width = x.shape[:2]
        packing = pack_batch(lengths, width)
        sizes, rows = packing.sizes, torch.stack([packing.rows(half) for half in range(self.directions)])
        for number in range(0, len(self.cells), self.directions):
            pair = [cast(RecurrentCell, cell) for cell in self.cells[number : number + self.directions]]
            packed = x.flatten(0, 1)[rows]  # (directions, N, D)
            if self.training:
                packed = apply_dropout(packed, sizes, self._dropout)
            zero = packed.new_zeros(len(pair), batch, pair[0].outputs)
            found, _ = run_layer_paired(
                pair, packed, sizes, (zero, zero.clone()), self._weight_drop if self.training else 0.0
            )
            halves = [
                found.new_zeros(batch * width, found.shape[2]).index_copy(0, places, half)
                for places, half in zip(rows, found, strict=True)
            ]
            x = torch.cat(halves, dim=1).view(batch, width, -1)
        return x

    def last(self, outputs: Tensor, lengths: Tensor) -> Tensor:
        """What each direction gave when it had read all: (B, T, E) -> (B, E)."""
        size = outputs.shape[2] // self.directions
        end = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, size)
        forward = outputs[..., :size].gather(1, end)[:, 0]
        return torch.cat([forward, outputs[:, 0, size:]], dim=1)


class TokenStack(nn.Module):
    """What the heads of all tasks stand on: inputs, encoder, and ELMo once more behind it where asked."""

    def __init__(self, inputs: Featurizer, config: EncoderConfig, more: int = 0) -> None:
        """`more`: values that a task joins to each token's input."""
        super().__init__()
        self.inputs = inputs
        size = inputs.size + more
        self.encoder: Encoder | None = None
        if config.directions:
            shape = (config.size, config.layers, config.directions)
            self.encoder = Encoder(size, *shape, config.dropout, config.recurrent_dropout)
            size = self.encoder.size
        self.size = size + inputs.late_size

    def forward(self, side: TokenFeatures, more: Tensor | None = None) -> Tensor:
        """A batch to (B, T, E)."""
        x, late = self.inputs(side)
        if more is not None:
            x = torch.cat([x, more], dim=2)
        if self.encoder is not None:
            x = self.encoder(x, side.lengths)
        return x if late is None else torch.cat([x, late], dim=2)
