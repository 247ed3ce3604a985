"""What cosines are usual in an index, and the comparison of two usages with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.search.index import Index
from polyseme.search.usual_cosines import measure_usual_cosines

LINES = ("the bank failed", "the bank of the river", "the war began here", "peace came late")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("usual")
    (folder / "text.txt").write_text("\n".join(f"{line} {n}" for n in range(12) for line in LINES))
    return api.index(
        Elmo(random_model(small_config())), folder / "text.txt", folder / "index", progress=False
    )


def test_usages_of_one_word_are_nearer_than_random_words(index: Index):
    usual = index.usual_cosines
    assert usual is not None
    for quantiles in (usual.same_word, usual.random):
        assert len(quantiles) == 21
        assert list(quantiles) == sorted(quantiles)
        assert -1.001 <= quantiles[0] <= quantiles[-1] <= 1.001
    assert usual.same_word[10] > usual.random[10]


def test_the_quantiles_are_those_of_pairs_of_usages_of_one_word(index: Index):
    """With few usages all are drawn, and no pair is of two words."""
    usual = index.usual_cosines
    assert usual is not None
    words = [word for word in index.words.words if index.context_reader.is_content[index.words.row(word)]]
    cosines = []
    for word in words:
        vectors = index.vectors(index.usage_numbers(word))
        cosines += (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)].tolist()
    assert min(cosines) - 1e-5 <= usual.same_word[0]
    assert usual.same_word[-1] <= max(cosines) + 1e-5


def test_the_same_seed_gives_the_same_values_and_a_part_those_of_the_whole(index: Index):
    assert measure_usual_cosines(index) == measure_usual_cosines(index)
    assert index.restrict("1").usual_cosines == index.usual_cosines


def test_similarity_says_what_is_usual_in_an_index_only(index: Index):
    pair = ("the [bank] failed", "the [bank] of the river")
    assert api.similarity(index, *pair).usual == index.usual_cosines
    assert api.similarity(index, "the bank failed", "peace came late").usual == index.usual_cosines
    assert api.similarity(index, "bank", "river").usual is None  # mean vectors of words are nearer
    assert api.similarity(index.elmo, *pair).usual is None


def test_without_two_usages_of_a_word_nothing_is_usual(tmp_path: Path):
    (tmp_path / "text.txt").write_text("bank river failed")
    elmo = Elmo(random_model(small_config()))
    assert api.index(elmo, tmp_path / "text.txt", tmp_path / "index", progress=False).usual_cosines is None


def test_the_command_prints_what_is_usual(index: Index, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    from polyseme.cli import neighbours

    index.elmo.save(tmp_path / "model")
    neighbours.similarity(
        str(index.folder), ["the [bank] failed", "the [bank] of the river"], model=str(tmp_path / "model")
    )
    assert capsys.readouterr().out.splitlines()[-1].startswith("usual: one word ")
