"""Candidates for mixtures of layers, against the whole index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.server import layers


@pytest.mark.parametrize("gathered", [0, 5000])
def test_of_a_frequent_word_the_usages_nearest_in_the_layer_of_the_index_are_taken(
    folders: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch, gathered: int
):
    monkeypatch.setattr(layers, "GATHERED", gathered)
    index = polyseme.open_index(folders[0])
    query = index.vector("天色将晚，人马困乏。", "将")
    found = layers.Layers(index.elmo, index).without_context("将", query, 6)
    wanted = index.usages_near(query, 6, word="将")
    assert {usage.word for usage in found} == {"将"}
    np.testing.assert_allclose([one.cosine for one in found], [one.cosine for one in wanted], atol=1e-5)


def test_no_more_usages_are_taken_than_there_are(folders: tuple[Path, ...]):
    index = polyseme.open_index(folders[0])
    query = index.vector("天色将晚，人马困乏。", "将")
    found = layers.Layers(index.elmo, index).without_context("将", query, len(index) + 7)
    assert sorted(usage.number for usage in found) == list(range(len(index)))
