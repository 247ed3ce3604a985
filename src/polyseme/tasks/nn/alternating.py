"""Stacked LSTMs that alternate between the directions, with highways (He et al. 2017).

    tasks.nn.featurizer  ->  tasks.nn.alternating  ->  tasks.roles.network

It is the LSTM of the biLM (`model.fast.paired`), with its gradient in C. Each layer reads the sentence in the
opposite direction of the layer below. Unlike in the paper, the highway gate depends on the layer's input
alone, so that the recurrence stays that of a plain LSTM: y = g * lstm(x) + (1 - g) * W x with
g = sigmoid(V x + b).

B sentences, T tokens, N tokens without padding, D values of a token, E = size.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from polyseme.model.fast.packing import pack_batch
from polyseme.model.fast.paired import PairDropout, apply_dropout, run_layer_paired
from polyseme.model.recurrent import RecurrentCell

OPEN = 1.0  # initial bias of the gates: mostly the LSTM


class AlternatingEncoder(nn.Module):
    """Layers of LSTMs, the first one forward, the second backward, and so on."""

    def __init__(self, inputs: int, size: int, layers: int, dropout: float, recurrent_dropout: float) -> None:
        super().__init__()
        self.size = size
        self._dropout, self._weight_drop = PairDropout(dropout, variational=True), recurrent_dropout
        sizes = [inputs, *[size] * (layers - 1)]
        self.cells = nn.ModuleList(RecurrentCell("lstm", below, size, size, project=False) for below in sizes)
        self.gates = nn.ModuleList(nn.Linear(below, size) for below in sizes)
        self.carries = nn.ModuleList(nn.Linear(below, size, bias=False) for below in sizes)
        for gate in self.gates:
            nn.init.constant_(cast(nn.Linear, gate).bias, OPEN)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, E); padding is zero."""
        batch, width = x.shape[:2]
        packing = pack_batch(lengths, width)
        flat = x.flatten(0, 1)
        for number, (cell, gate, carry) in enumerate(zip(self.cells, self.gates, self.carries, strict=True)):
            rows = packing.rows(number % 2)
            packed = flat[rows][None]  # (1, N, D)
            if self.training:
                packed = apply_dropout(packed, packing.sizes, self._dropout)
            zero = packed.new_zeros(1, batch, self.size)
            outputs, _ = run_layer_paired(
                [cast(RecurrentCell, cell)],
                packed,
                packing.sizes,
                (zero, zero.clone()),
                self._weight_drop if self.training else 0.0,
            )
            opened = torch.sigmoid(gate(packed[0]))
            mixed = opened * outputs[0] + (1 - opened) * carry(packed[0])  # (N, E)
            flat = mixed.new_zeros(batch * width, self.size).index_copy(0, rows, mixed)
        return flat.view(batch, width, self.size)
