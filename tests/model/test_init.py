"""A new model is initialised like the published ones."""

from __future__ import annotations

import pytest
import torch

from polyseme.config import ModelSettings
from polyseme.formats.models.pretrained import build_network
from polyseme.model.init import initialise
from polyseme.model.softmax import Softmax


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_new_model_is_initialised_like_the_published_ones(activation: str):
    chars = {"dim": 16, "filters": [[3, 200], [5, 200]], "activation": activation, "highways": 2}
    recurrent = {"cells": 64, "outputs": 32, "layers": 1}
    config = ModelSettings.model_validate({"chars": chars, "words": {"dim": 50}, "recurrent": recurrent})
    network = build_network(config, n_chars=262, n_words=400, padding=261)
    softmax = Softmax(400, 32)
    torch.manual_seed(0)
    initialise(network, softmax)
    tokens = network.tokens
    assert not tokens.chars.embedding.weight[0].any()
    assert not tokens.words.weight[0].any()
    assert 0.9 < tokens.chars.embedding.weight.abs().max() <= 1
    for convolution in tokens.chars.convolutions:
        assert not convolution.bias.any()
        deviation = 0.05 / 3**0.5 if activation == "relu" else (16 * convolution.kernel_size[0]) ** -0.5
        assert convolution.weight.std().item() == pytest.approx(deviation, rel=0.05)
    for highway in tokens.chars.highways:
        assert (highway.carry.bias == -2).all()
        assert not highway.transform.bias.any()
        assert highway.transform.weight.std().item() == pytest.approx(400**-0.5, rel=0.05)
    assert not tokens.projection.bias.any()
    assert tokens.projection.weight.std().item() == pytest.approx(450**-0.5, rel=0.05)
    assert softmax.weight.std().item() == pytest.approx(32**-0.5, rel=0.05)
    limit = (6 / (256 + 32)) ** 0.5
    for stack in (network.forward_stack, network.backward_stack):
        assert 0.95 * limit < stack.cells[0].hidden_weight.abs().max() <= limit
        assert not stack.cells[0].bias.any()


def test_the_seed_determines_the_initial_weights():
    config = ModelSettings.model_validate({"words": {"dim": 8}, "recurrent": {"cells": 8, "outputs": 4}})
    weights = []
    for seed in (1, 1, 2):
        network = build_network(config, n_chars=1, n_words=9, padding=0)
        torch.manual_seed(seed)
        initialise(network)
        weights.append(torch.cat([parameter.flatten() for parameter in network.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
