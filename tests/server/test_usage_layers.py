"""Candidates for mixtures of layers, against the whole index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.server.usage_layers import UsageLayers


@pytest.mark.parametrize("max_gathered", [0, 5000])
def test_of_a_frequent_word_the_usages_nearest_in_the_layer_of_the_index_are_taken(
    folders: tuple[Path, ...], max_gathered: int
):
    index = polyseme.open_index(folders[0])
    query = index.vector("天色将晚，人马困乏。", "将")
    layers = UsageLayers(index.elmo, index, max_gathered=max_gathered)
    found = layers.nearest_in_token_layer("将", query, 6)
    wanted = index.nearest(query, 6, word="将")
    assert {usage.word for usage in found} == {"将"}
    np.testing.assert_allclose([one.cosine for one in found], [one.cosine for one in wanted], atol=1e-5)


def test_no_more_usages_are_taken_than_there_are(folders: tuple[Path, ...]):
    index = polyseme.open_index(folders[0])
    query = index.vector("天色将晚，人马困乏。", "将")
    found = UsageLayers(index.elmo, index).nearest_in_token_layer("将", query, len(index) + 7)
    assert sorted(usage.number for usage in found) == list(range(len(index)))


@pytest.mark.parametrize("layer", ["top", "mean"])
def test_layers_of_an_index_of_places_are_those_of_places(
    folders: tuple[Path, ...], tmp_path: Path, layer: str
):
    words = polyseme.open_index(folders[0])
    (text,) = {usage.document for usage in (words.usage(0), words.usage(len(words) - 1))}
    index = polyseme.index(words.elmo, text, tmp_path / "places", layer=layer, view="context")
    layers = UsageLayers(index.elmo, index)
    tokens = index.encoder.segment("天色将晚，人马困乏。")
    place = tokens.index("将")
    query = index.vector_at(tokens, place)
    assert layers.nearest_in_token_layer("将", query, 6) == []
    near = index.nearest(query, 6)
    found = layers.dot_products(tokens, place, near)
    weights = np.array([0, 0, 1] if layer == "top" else [1 / 3] * 3)
    own = weights @ np.array(found["query"]["own"]) @ weights
    for usage, rows in zip(near, found["usages"], strict=True):
        its, cross = (weights @ np.array(rows[name]) @ weights for name in ("own", "cross"))
        assert cross / np.sqrt(own * its) == pytest.approx(usage.cosine, abs=2e-3)
