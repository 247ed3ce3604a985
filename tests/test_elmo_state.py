"""State is carried from call to call only if `stateful`, as in the published programs.

L layers, T tokens, H = both directions.
"""

from __future__ import annotations

import numpy as np
import pytest

import reference
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.formats.models.pretrained import Pretrained

CELLS = {
    "lstm": {"layers": 2, "cells": 6, "outputs": 4},
    "gru": {"cell": "gru", "layers": 1, "cells": 4, "outputs": 4, "output_clip": None},
    "rnn": {"cell": "rnn", "layers": 2, "cells": 5, "outputs": 3, "residual": False},
}
CALLS = [  # batches that grow and shrink, with rows that stay empty
    [["the", "bank"], ["of", "the", "river", "!"]],
    [["failed"], ["他"], ["银行", "naïve"], ["x"]],
    [["river"]],
    [[], ["the", "bank", "failed"], ["!"]],
    [["a"], ["b", "c"], [], ["d"], ["e", "f"]],
]


@pytest.fixture(params=CELLS)
def model(request) -> Pretrained:
    return random_model(small_config(recurrent=CELLS[request.param]))


@pytest.fixture
def lstm() -> Elmo:
    return Elmo(random_model(small_config()))


def reference_layers(model: Pretrained, calls: list[list[list[str]]]) -> list[list[np.ndarray]]:
    """All layers of every sentence; each row continues from its state in the call before."""
    weights = {name: value.numpy() for name, value in model.network.state_dict().items()}
    max_chars = model.config.chars.max_chars
    rows: dict[int, dict] = {}
    results = []
    for call in calls:
        results.append([])
        for row, tokens in enumerate(call):
            if not tokens:
                results[-1].append(np.zeros((model.config.layers, 0, model.config.size)))
                continue
            chars = [reference.byte_row(token, max_chars) for token in ["<S>", *tokens, "</S>"]]
            read = reference.read(
                model.config, weights, [len(chars)], chars=np.array([chars]), state=rows.get(row)
            )
            rows[row] = read.state
            results[-1].append(read.layers[0][:, 1:-1])
    return results


def assert_close(arrays: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert [array.shape for array in arrays] == [array.shape for array in expected]
    for array, expected_array in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, expected_array, atol=1e-5)


def test_each_row_continues_from_the_call_before_in_both_directions(model):
    elmo = Elmo(model)
    for call, expected in zip(CALLS, reference_layers(model, CALLS), strict=True):
        assert_close(elmo.embed(call, layer="all", stateful=True), expected)


def test_after_a_reset_state_starts_from_zero(model):
    elmo = Elmo(model)
    first = [elmo.embed(call, stateful=True) for call in CALLS]
    elmo.reset()
    for call, expected in zip(CALLS, first, strict=True):
        assert_close(elmo.embed(call, stateful=True), expected)


def test_state_changes_the_vectors(lstm):
    fresh, stateless = (lstm.embed(["the bank failed"], stateful=flag)[0] for flag in (True, False))
    np.testing.assert_allclose(fresh, stateless, atol=1e-6)
    carried = lstm.embed(["the bank failed"], stateful=True)[0]
    assert np.abs(carried - stateless).max() > 1e-2


def test_stateless_calls_neither_use_nor_change_the_state(lstm):
    expected = reference_layers(lstm.model, CALLS[:2])
    before = lstm.embed(["the river"])[0]
    assert_close(lstm.embed(CALLS[0], layer="all", stateful=True), expected[0])
    np.testing.assert_array_equal(lstm.embed(["the river"])[0], before)
    lstm.outputs(["the river"])
    lstm.features(["the river"])
    assert_close(lstm.embed(CALLS[1], layer="all", stateful=True), expected[1])


def test_rows_keep_their_order_for_any_lengths(lstm):
    long, short = ["the", "bank", "of", "the", "river"], ["failed"]
    calls = [[short, long], [long, short]]
    for call, expected in zip(calls, reference_layers(lstm.model, calls), strict=True):
        assert_close(lstm.embed(call, layer="all", stateful=True), expected)


def test_a_stateful_call_is_one_batch_for_any_token_budget():
    model = random_model(small_config())
    elmo = Elmo(model, batch_tokens=1)
    for call, expected in zip(CALLS, reference_layers(model, CALLS), strict=True):
        assert_close(elmo.embed(call, layer="all", stateful=True), expected)


def test_strings_and_pooling_carry_state(lstm):
    calls = [[["the", "bank"]], [["of", "the", "river"]], [["failed"]]]
    first, second, third = (expected[0] for expected in reference_layers(lstm.model, calls))
    np.testing.assert_allclose(lstm.embed("the bank", layer="all", stateful=True), first, atol=1e-5)
    pooled = lstm.embed("of the river", layer="top", pool="mean", stateful=True)
    np.testing.assert_allclose(pooled, second[-1].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(lstm.embed("failed", layer=1, stateful=True), third[1], atol=1e-5)


@pytest.mark.parametrize("sentences", [[], [[]], "", [[], []]])
def test_a_call_without_tokens_leaves_the_state(lstm, sentences):
    expected = reference_layers(lstm.model, CALLS[:2])
    lstm.embed(sentences, stateful=True)
    assert_close(lstm.embed(CALLS[0], layer="all", stateful=True), expected[0])
    lstm.embed(sentences, stateful=True)
    assert_close(lstm.embed(CALLS[1], layer="all", stateful=True), expected[1])


def test_a_refused_call_leaves_the_state(lstm):
    expected = reference_layers(lstm.model, CALLS[:2])
    lstm.embed(CALLS[0], stateful=True)
    with pytest.raises(UsageError):
        lstm.embed([["two words"]], stateful=True)
    with pytest.raises(UsageError):
        lstm.embed(CALLS[1], layer=7, stateful=True)
    assert_close(lstm.embed(CALLS[1], layer="all", stateful=True), expected[1])
