"""Word vectors as means of contextual vectors, and their neighbours."""

from __future__ import annotations

import copy
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import SENTENCES, all_layers, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.word_vectors import WordVectors, mean_vectors, open_words

TEXT = [*SENTENCES, ["the", "the", "bank"], [], ["of", "the", "river", "bank"], ["他", "!"]]


def small_elmo(**changes: Any) -> Elmo:
    return Elmo(random_model(small_config()), **changes)


def test_the_vector_of_a_word_is_the_mean_of_its_usages() -> None:
    elmo = small_elmo()
    usages = defaultdict(list)
    for tokens, layers in zip(TEXT, all_layers(elmo.model, [t or ["x"] for t in TEXT]), strict=True):
        for word, vector in zip(tokens, layers[-1], strict=False):
            usages[word].append(vector.astype(np.float64))
    words = mean_vectors(elmo, TEXT, min_count=1)
    assert set(words.words) == set(usages)
    for word, vectors in usages.items():
        assert words.count(word) == len(vectors)
        np.testing.assert_allclose(words[word], np.mean(vectors, axis=0), atol=1e-6)
    assert words.words[0] == "the"
    assert list(words.counts) == sorted(words.counts, reverse=True)
    np.testing.assert_allclose(words.centre, words.vectors.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("batch_tokens", [1, 6, 4096])
def test_an_iterator_gives_the_same_vectors(batch_tokens: int) -> None:
    expected = mean_vectors(small_elmo(), TEXT, min_count=2)
    words = mean_vectors(small_elmo(batch_tokens=batch_tokens), iter(TEXT), min_count=2)
    assert dict(zip(words.words, words.counts, strict=True)) == dict(
        zip(expected.words, expected.counts, strict=True)
    )
    for word in expected.words:
        np.testing.assert_allclose(words[word], expected[word], atol=1e-6)


def test_a_stream_of_many_words_grows_its_table() -> None:
    elmo = small_elmo()
    sentences = [[f"w{number}", f"w{number + 1}"] for number in range(1500)]
    words = mean_vectors(elmo, iter(sentences), min_count=2)
    assert len(words) == 1499
    expected = mean_vectors(elmo, sentences, words=["w1400"], min_count=1)
    np.testing.assert_allclose(words["w1400"], expected["w1400"], atol=1e-6)


def test_usages_can_be_bounded_and_are_spread_over_the_text() -> None:
    text = [["early", "the"]] * 30 + [["late", "the"]] * 30
    words = mean_vectors(small_elmo(), text, min_count=1, max_usages=6)
    assert words.count("early") == words.count("late") == 6
    assert words.count("the") == 12
    with pytest.raises(UsageError, match="max_usages is 0"):
        mean_vectors(small_elmo(), text, max_usages=0)
    with pytest.raises(UsageError, match="pass a list, not a generator"):
        mean_vectors(small_elmo(), iter(text), max_usages=6)


def test_words_and_min_count_select_the_words() -> None:
    elmo = small_elmo()
    assert set(mean_vectors(elmo, TEXT, min_count=2).words) == {"the", "bank", "river", "他", "!"}
    assert set(mean_vectors(elmo, TEXT, words=["the", "of", "never"], min_count=1).words) == {"the", "of"}
    assert len(mean_vectors(elmo, TEXT, min_count=99)) == 0
    assert len(mean_vectors(elmo, [])) == 0


def test_layers_and_raw_text_work_as_in_embed() -> None:
    elmo = small_elmo()
    words = mean_vectors(elmo, ["the bank", "of"], layer=0, min_count=1)
    np.testing.assert_allclose(words["of"], elmo.embed("of", layer=0)[0], atol=1e-6)
    mixed = mean_vectors(elmo, ["他去银行"], layer=[0.5, 0.5, 0], min_count=1, segment="zh")
    assert set(mixed.words) == {"他", "去", "银行"}


def hand_made(centre: bool) -> WordVectors:
    vectors = np.array([[9, 1, 0], [9, 0.9, 0.1], [9, -1, 0], [9, 0, 1]], np.float32)
    middle = vectors.mean(axis=0) if centre else np.zeros(3, np.float32)
    return WordVectors(("king", "queen", "river", "x"), np.array([9, 5, 3, 1]), vectors, middle)


def test_neighbours_are_sorted_by_cosine_around_the_centre() -> None:
    nearest = hand_made(centre=True).nearest("king", k=2)
    assert [word for word, _ in nearest] == ["queen", "x"]
    moved = hand_made(centre=True).vectors - hand_made(centre=True).centre
    cosine = moved[0] @ moved[1] / np.linalg.norm(moved[0]) / np.linalg.norm(moved[1])
    assert nearest[0][1] == pytest.approx(cosine, rel=1e-5)
    assert hand_made(centre=True).similarity("king", "queen") == pytest.approx(cosine, rel=1e-5)
    assert hand_made(centre=True).similarity("king", "river") < -0.8
    assert hand_made(centre=False).similarity("king", "river") > 0.9  # all vectors point the same way


def test_neighbours_can_be_filtered() -> None:
    vectors = hand_made(centre=True)
    assert [word for word, _ in vectors.nearest("king", min_count=3)] == ["queen", "river"]
    assert [word for word, _ in vectors.nearest("king", min_chars=2)] == ["queen", "river"]
    assert vectors.nearest("king", min_count=100) == []
    assert "king" in vectors
    assert len(vectors) == 4


def test_an_unknown_word_suggests_similar_spellings() -> None:
    with pytest.raises(UsageError, match=r"'quene' is not among the 4 words.*Did you mean queen\?"):
        hand_made(centre=True).nearest("quene")
    with pytest.raises(UsageError, match=r"too rare\)\.$"):
        hand_made(centre=True)["曹操"]


def test_invalid_calls_are_refused() -> None:
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


def test_analogies_are_sums_of_directions_and_the_odd_one_out_is_farthest() -> None:
    spread = np.eye(4, dtype=np.float32)
    rows = [spread[0] + spread[2], spread[0] + spread[3], spread[1] + spread[2], spread[1] + spread[3]]
    names = ("king", "queen", "man", "woman")
    vectors = np.stack([*rows, -spread[0] - spread[1]])
    words = WordVectors((*names, "river"), np.array([9, 8, 7, 6, 5]), vectors, np.zeros(4, np.float32))
    assert words.most_similar(["king", "woman"], ["man"], topn=1)[0][0] == "queen"
    assert words.most_similar(["queen", "man"], ["woman"], topn=1)[0][0] == "king"
    assert words.odd_one_out(["king", "river", "queen"]) == "river"
    assert words.odd_one_out(["river", "king", "woman"]) == "river"


def test_most_similar_behaves_as_in_gensim() -> None:
    words = hand_made(centre=True)
    assert words.most_similar("king") == words.nearest("king")
    assert words.most_similar(positive=["king"], topn=1) == words.nearest("king", 1)
    assert words.most_similar([("king", 2.0), "x"], [("river", -0.5)], 2) == words.nearest_to_sum(
        [("king", 2.0), ("x", 1.0), ("river", -0.5)], 2
    )
    nearest = words.most_similar(words["king"], topn=1)  # a vector excludes no word
    assert nearest == [("king", pytest.approx(1, abs=1e-6))]
    assert words.most_similar(np.stack([words["king"], words["x"]]), topn=4)
    assert words.most_similar("king", topn=0) == []
    cosines = words.most_similar("king", topn=None)
    assert cosines.shape == (4,)
    assert cosines[1] == pytest.approx(words.similarity("king", "queen"))
    assert words.most_similar("king", topn=None, clip_start=1, clip_end=3).tolist() == cosines[1:3].tolist()
    assert [word for word, _ in words.most_similar("king", clip_start=2)] == ["x", "river"]
    assert [word for word, _ in words.most_similar("king", clip_start=2, restrict_vocab=3)] == [
        "queen",
        "river",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs a word"),
        ({"positive": "king", "indexer": "annoy"}, "indexer"),
        ({"positive": [3]}, "expected a word, a vector"),
        ({"positive": [("king", "much")]}, "expected a word, a vector"),
        ({"positive": np.zeros(5, np.float32)}, "3 finite values"),
        ({"positive": np.array([1, np.nan, 0], np.float32)}, "3 finite values"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hand_made(centre=True).most_similar(**arguments)


def test_reprs_are_short_and_notebooks_get_an_escaped_table() -> None:
    many = np.ones((3000, 4), np.float32)
    names = ("<script>", *(f"w{number}" for number in range(2999)))
    words = WordVectors(names, np.arange(3000, 0, -1), many, np.zeros(4, np.float32))
    assert repr(words) == f"WordVectors(3,000 words, 4 values, means of {words.counts.sum():,} usages)"
    page = words._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<tr>") == 11
    near = hand_made(centre=True).nearest("king", 2)
    assert repr(near).splitlines()[0] == "Nearest to king"
    assert "<td" in near._repr_html_()
    assert hand_made(centre=True).nearest_to_sum([("king", 1), ("x", -1)]).caption == "Nearest to king - x"


def test_opened_word_vectors_pickle_by_path_and_others_by_value(tmp_path: Path) -> None:
    words = hand_made(centre=True)
    for copied in (pickle.loads(pickle.dumps(words)), copy.deepcopy(words), copy.copy(words)):
        assert copied.words == words.words
        assert copied.nearest("king") == words.nearest("king")
    words.save(tmp_path / "w.safetensors")
    opened = open_words(tmp_path / "w.safetensors")
    pickled = pickle.dumps(opened)
    assert len(pickled) < 400
    assert pickle.loads(pickled).nearest("king") == opened.nearest("king")
    hand_made(centre=False).save(tmp_path / "w.safetensors", force=True)
    with pytest.raises(FormatError, match="has changed since"):
        pickle.loads(pickled)
