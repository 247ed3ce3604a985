"""Models of every kind agree with the numpy reference.

B sentences, T tokens incl. <S> and </S>, C characters, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
import torch

import reference
from polyseme.config import ModelSettings
from polyseme.model.bilm import BiLM
from polyseme.model.fast.packing import BiState
from random_models import Batch, Case, arrays, random_batch, random_config, random_network

GRID: dict[str, tuple[Any, ...]] = {
    "cell": ("lstm", "gru", "rnn"),
    "layers": (1, 2, 3),
    "projected": (True, False),
    "clipped": (True, False),
    "residual": (True, False),
    "highways": (0, 1, 2),
    "activation": ("relu", "tanh"),
    "tokens": ("bytes", "codepoints", "words", "words+chars"),
}
LENGTHS = [4, 9, 1, 0, 7, 2, 3, 8, 5, 6]  # ragged, unsorted, with an empty sentence
CASES = [Case(*point) for point in random.Random(20).sample(list(product(*GRID.values())), 150)]


def run(network: BiLM, batch: Batch, state: BiState | None = None, *, grad: bool = False):
    """All layers (L, B, T, H) and the state, on the path with or without gradients."""
    with torch.set_grad_enabled(grad):
        layers, state = network(batch.chars, batch.words, batch.lengths, state)
    return layers.detach(), state


def run_reference(config: ModelSettings, network: BiLM, batch: Batch, state=None) -> reference.Read:
    """The output of the numpy reference for the same weights and ids."""
    chars, words = (None if ids is None else ids.numpy() for ids in (batch.chars, batch.words))
    lengths = batch.lengths.tolist()
    return reference.read(config, arrays(network), lengths, chars=chars, words=words, state=state)


def difference(layers: torch.Tensor, state: BiState, expected: reference.Read) -> float:
    """The largest difference of any layer or state from the reference."""
    worst = 0.0
    for b, sentence in enumerate(expected.layers):
        vectors = layers[:, b, : sentence.shape[1]].numpy()
        worst = max(worst, np.abs(vectors - sentence).max(initial=0))
        for direction in reference.DIRECTIONS:
            for layer, (expected_output, expected_memory) in enumerate(expected.state[direction][b]):
                output, memory = getattr(state, direction)[layer]
                worst = max(worst, np.abs(output[b].detach().numpy() - expected_output).max())
                worst = max(worst, np.abs(memory[b].detach().numpy() - expected_memory).max())
    return worst


def test_the_sample_contains_every_pair_of_options():
    for (first, first_values), (second, second_values) in combinations(GRID.items(), 2):
        covered = {(getattr(case, first), getattr(case, second)) for case in CASES}
        assert covered == set(product(first_values, second_values))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_layers_and_state_match_the_reference(case: Case):
    rng = np.random.default_rng(CASES.index(case))
    config = random_config(case, rng)
    network = random_network(config, rng)
    batch = random_batch(config, LENGTHS, rng)
    expected = run_reference(config, network, batch)
    layers, state = run(network, batch)
    assert layers.shape == (case.layers + 1, len(LENGTHS), 9, config.size)
    assert difference(layers, state, expected) < 1e-5
    for b, length in enumerate(LENGTHS):
        assert not layers[:, b, length:].any()  # zero after the last token

    with_gradients, _ = run(network, batch, grad=True)
    torch.testing.assert_close(with_gradients, layers, atol=1e-6, rtol=1e-6)
    double, state = run(network.double(), batch)
    assert difference(double, state, expected) < 1e-12  # so the formulas are the same

    assert bool(expected.clipped["memory"]) == case.clipped
    assert bool(expected.clipped["output"]) == (case.clipped and case.projected)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("cell", GRID["cell"])
def test_carried_state_matches_the_reference(cell: str, projected: bool, grad: bool):
    rng = np.random.default_rng(3)
    case = Case(cell=cell, projected=projected, tokens="words")
    config = random_config(case, rng)
    network = random_network(config, rng)
    state, expected = None, None
    for lengths in ([3, 1, 0, 6], [0, 4, 2, 5], [1, 1, 1, 1]):
        batch = random_batch(config, lengths, rng)
        expected = run_reference(config, network, batch, expected and expected.state)
        layers, state = run(network, batch, state, grad=grad)
        assert difference(layers, state, expected) < 1e-5


def test_a_model_of_published_proportions_matches_the_reference():
    rng = np.random.default_rng(5)
    recurrent = {"cells": 64, "outputs": 16, "layers": 2}
    filters = [(1, 4), (2, 4), (3, 8), (4, 8), (5, 8), (6, 8), (7, 16)]
    config = ModelSettings.model_validate({"chars": {"filters": filters}, "recurrent": recurrent})
    network = random_network(config, rng)
    batch = random_batch(config, LENGTHS, rng)  # words of 0 to 55 bytes in rows of 50
    layers, state = run(network, batch)
    assert difference(layers, state, run_reference(config, network, batch)) < 1e-5
