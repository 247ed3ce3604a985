"""Candidates for mixes of layers, compared with the whole index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.server.usage_layers import UsageLayers


@pytest.mark.parametrize("max_gathered", [0, 5000])
def test_candidates_for_a_frequent_word_are_nearest_in_the_layer_of_the_index(
    folders: tuple[Path, ...], max_gathered: int
):
    index = polyseme.open_index(folders[0])
    query = index.query_vector("将", "天色将晚，人马困乏。")
    layers = UsageLayers(index.elmo, index, max_gathered=max_gathered)
    candidates = layers.nearest_in_token_layer("将", query, 6)
    expected = index.nearest(query, 6, word="将")
    assert {usage.word for usage in candidates} == {"将"}
    np.testing.assert_allclose(
        [usage.cosine for usage in candidates], [usage.cosine for usage in expected], atol=1e-5
    )


def test_there_are_no_more_candidates_than_usages(folders: tuple[Path, ...]):
    index = polyseme.open_index(folders[0])
    query = index.query_vector("将", "天色将晚，人马困乏。")
    candidates = UsageLayers(index.elmo, index).nearest_in_token_layer("将", query, len(index) + 7)
    assert sorted(usage.number for usage in candidates) == list(range(len(index)))


@pytest.mark.parametrize("layer", ["top", "mean"])
def test_dot_products_of_a_context_index_give_its_cosines(
    folders: tuple[Path, ...], tmp_path: Path, layer: str
):
    words = polyseme.open_index(folders[0])
    (text,) = {usage.document for usage in (words.usage(0), words.usage(len(words) - 1))}
    index = polyseme.index(words.elmo, text, tmp_path / "contexts", layer=layer, view="context")
    layers = UsageLayers(index.elmo, index)
    tokens = index.encoder.segment("天色将晚，人马困乏。")
    position = tokens.index("将")
    query = index.query_vector("将", tokens, position=position)
    assert layers.nearest_in_token_layer("将", query, 6) == []
    near = index.nearest(query, 6)
    products = layers.dot_products(tokens, position, near)
    weights = np.array([0, 0, 1] if layer == "top" else [1 / 3] * 3)
    of_query = weights @ np.array(products["query"]["own"]) @ weights
    for usage, rows in zip(near, products["usages"], strict=True):
        of_usage, cross = (weights @ np.array(rows[name]) @ weights for name in ("own", "cross"))
        assert cross / np.sqrt(of_query * of_usage) == pytest.approx(usage.cosine, abs=2e-3)
