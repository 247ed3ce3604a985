"""Initialise a new model as the published ones were.

    an empty network and softmax  ->  model.init  ->  training

characters U(-1, 1); relu filters U(-.05, .05), tanh filters N(0, 1 / sqrt(width * dim)); highways and
projection N(0, 1 / sqrt(inputs)), the carry gate's bias -2; word table and softmax N(0, 1 / sqrt(size));
recurrent weights glorot uniform; all other biases zero. Drawn from torch's global random state.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn

from polyseme.model.bilm import BiLM
from polyseme.model.softmax import AnySoftmax, Softmax


@torch.no_grad()
def initialise(network: BiLM, softmax: AnySoftmax | None = None) -> None:
    """Initialise all weights of a new `network` and its `softmax`."""
    for name, weight in network.named_parameters():
        _fill(name, weight, network)
    for table in (network.tokens.words, network.tokens.chars and network.tokens.chars.embedding):
        if isinstance(table, nn.Embedding):
            table.weight[0].zero_()  # padding
    if isinstance(softmax, Softmax):
        softmax.bias.zero_()
        if softmax.weight is not None:
            softmax.weight.normal_(std=1 / sqrt(softmax.weight.shape[1]))


def _fill(name: str, weight: Tensor, network: BiLM) -> None:
    """Initialise one tensor of the network by its name."""
    chars = network.tokens.chars
    if name.endswith("bias"):
        weight.fill_(-2.0 if ".carry." in name else 0.0)
    elif name == "tokens.chars.embedding.weight":
        weight.uniform_(-1, 1)
    elif ".convolutions." in name and chars is not None and chars.activation == "relu":
        weight.uniform_(-0.05, 0.05)
    elif name.startswith("tokens."):  # tanh filters, highways, projection, word table
        weight.normal_(std=1 / sqrt(weight[0].numel()))
    else:  # recurrent
        nn.init.xavier_uniform_(weight)
