"""The mean contextual vector of a word, and its neighbours."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from builders import SENTENCES, all_layers, random_model, small_config
from polyseme.embedder import Elmo
from polyseme.errors import UsageError
from polyseme.words import WordVectors, mean_vectors

TEXT = [*SENTENCES, ["the", "the", "bank"], [], ["of", "the", "river", "bank"], ["他", "!"]]


def small_elmo(**changes: Any) -> Elmo:
    return Elmo(random_model(small_config()), **changes)


def test_a_words_vector_is_the_mean_over_its_usages() -> None:
    elmo = small_elmo()
    usages = defaultdict(list)
    for tokens, layers in zip(TEXT, all_layers(elmo.model, [t or ["x"] for t in TEXT]), strict=True):
        for word, vector in zip(tokens, layers[-1], strict=False):
            usages[word].append(vector.astype(np.float64))
    found = mean_vectors(elmo, TEXT, min_count=1)
    assert set(found.words) == set(usages)
    for word, vectors in usages.items():
        assert found.count(word) == len(vectors)
        np.testing.assert_allclose(found[word], np.mean(vectors, axis=0), atol=1e-6)
    assert found.words[0] == "the"
    assert list(found.counts) == sorted(found.counts, reverse=True)
    np.testing.assert_allclose(found.centre, found.vectors.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("batch_tokens", [1, 6, 4096])
def test_a_stream_that_runs_once_gives_the_same(batch_tokens: int) -> None:
    wanted = mean_vectors(small_elmo(), TEXT, min_count=2)
    found = mean_vectors(small_elmo(batch_tokens=batch_tokens), iter(TEXT), min_count=2)
    assert dict(zip(found.words, found.counts, strict=True)) == dict(
        zip(wanted.words, wanted.counts, strict=True)
    )
    for word in wanted.words:
        np.testing.assert_allclose(found[word], wanted[word], atol=1e-6)


def test_a_stream_of_many_words_grows_its_table() -> None:
    elmo = small_elmo()
    sentences = [[f"w{number}", f"w{number + 1}"] for number in range(1500)]
    found = mean_vectors(elmo, iter(sentences), min_count=2)
    assert len(found) == 1499
    wanted = mean_vectors(elmo, sentences, words=["w1400"], min_count=1)
    np.testing.assert_allclose(found["w1400"], wanted["w1400"], atol=1e-6)


def test_only_the_wanted_words_have_a_vector() -> None:
    elmo = small_elmo()
    assert set(mean_vectors(elmo, TEXT, min_count=2).words) == {"the", "bank", "river", "他", "!"}
    assert set(mean_vectors(elmo, TEXT, words=["the", "of", "never"], min_count=1).words) == {"the", "of"}
    assert len(mean_vectors(elmo, TEXT, min_count=99)) == 0
    assert len(mean_vectors(elmo, [])) == 0


def test_layers_and_raw_text_work_as_in_embed() -> None:
    elmo = small_elmo()
    found = mean_vectors(elmo, ["the bank", "of"], layer=0, min_count=1)
    np.testing.assert_allclose(found["of"], elmo.embed("of", layer=0)[0], atol=1e-6)
    mixed = mean_vectors(elmo, ["他去银行"], layer=[0.5, 0.5, 0], min_count=1, segment="zh")
    assert set(mixed.words) == {"他", "去", "银行"}


def hand_made(centre: bool) -> WordVectors:
    vectors = np.array([[9, 1, 0], [9, 0.9, 0.1], [9, -1, 0], [9, 0, 1]], np.float32)
    middle = vectors.mean(axis=0) if centre else np.zeros(3, np.float32)
    return WordVectors(("king", "queen", "river", "x"), np.array([9, 5, 3, 1]), vectors, middle)


def test_neighbours_are_sorted_by_cosine_around_the_centre() -> None:
    found = hand_made(centre=True).nearest("king", k=2)
    assert [word for word, _ in found] == ["queen", "x"]
    moved = hand_made(centre=True).vectors - hand_made(centre=True).centre
    cosine = moved[0] @ moved[1] / np.linalg.norm(moved[0]) / np.linalg.norm(moved[1])
    assert found[0][1] == pytest.approx(cosine, rel=1e-5)
    assert hand_made(centre=True).similarity("king", "queen") == pytest.approx(cosine, rel=1e-5)
    assert hand_made(centre=True).similarity("king", "river") < -0.8
    assert hand_made(centre=False).similarity("king", "river") > 0.9  # the cone


def test_neighbours_can_be_filtered() -> None:
    vectors = hand_made(centre=True)
    assert [word for word, _ in vectors.nearest("king", min_count=3)] == ["queen", "river"]
    assert [word for word, _ in vectors.nearest("king", min_chars=2)] == ["queen", "river"]
    assert vectors.nearest("king", min_count=100) == []
    assert "king" in vectors
    assert len(vectors) == 4


def test_a_missing_word_names_near_spellings() -> None:
    with pytest.raises(UsageError, match=r"'quene' is not among the 4 words.*Did you mean queen\?"):
        hand_made(centre=True).nearest("quene")
    with pytest.raises(UsageError, match=r"too rare\)\.$"):
        hand_made(centre=True)["曹操"]


def test_bad_calls_are_refused() -> None:
    elmo = small_elmo()
    with pytest.raises(UsageError, match="one string"):
        mean_vectors(elmo, "the bank")
    with pytest.raises(UsageError, match="layer is 'all'"):
        mean_vectors(elmo, TEXT, layer="all")
    with pytest.raises(UsageError, match="min_count is 0"):
        mean_vectors(elmo, TEXT, min_count=0)
    with pytest.raises(UsageError, match="k is 0"):
        hand_made(centre=True).nearest("king", k=0)
    with pytest.raises(UsageError, match="token 0 of sentence 1 holds white space"):
        mean_vectors(elmo, [["a"], ["b c"]])
