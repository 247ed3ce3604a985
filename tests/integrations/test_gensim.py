"""Word vectors in gensim and back: the same words, counts, cosines and files."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import MissingExtraError, UsageError
from polyseme.word_vectors import WordVectors

gensim_models = pytest.importorskip("gensim.models")
KeyedVectors = gensim_models.KeyedVectors
TEXT = "the river bank failed and the bank of the river was low\n" * 6 + "the king and the queen\n" * 5


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo(random_model(small_config(segment="en"), words=None))


@pytest.fixture(scope="module")
def words(elmo: Elmo) -> WordVectors:
    return polyseme.mean_vectors(elmo, TEXT.splitlines())


def assert_same_neighbours(keyed, words: WordVectors) -> None:
    for word in words.words:
        expected = words.most_similar(word, topn=5)
        found = keyed.most_similar(word, topn=5)
        assert [name for name, _ in found] == [name for name, _ in expected]
        np.testing.assert_allclose([c for _, c in found], [c for _, c in expected], atol=1e-6)


def test_gensim_gets_the_words_with_their_cosines_and_counts(words: WordVectors):
    keyed = words.to_gensim()
    assert isinstance(keyed, KeyedVectors)
    assert tuple(keyed.index_to_key) == words.words
    assert keyed.vectors.dtype == np.float32
    assert keyed.get_vecattr("river", "count") == words.count("river") == 12
    assert_same_neighbours(keyed, words)
    analogy = ["king", "river"], ["queen"]
    assert keyed.most_similar(*analogy, topn=1)[0][0] == words.most_similar(*analogy, topn=1)[0][0]
    keyed.vectors[:] = 0
    assert words["river"].any()  # gensim has a copy


def test_uncorrected_vectors_are_the_means_that_the_model_computed(words: WordVectors):
    keyed = words.to_gensim(uncorrected=True)
    np.testing.assert_array_equal(keyed["river"], words["river"])
    assert_same_neighbours(keyed, words.uncentred())


def test_an_index_becomes_keyed_vectors(elmo: Elmo, tmp_path: Path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    index = polyseme.index(elmo, tmp_path / "text.txt", tmp_path / "index")
    keyed = index.to_gensim()
    assert tuple(keyed.index_to_key) == index.words.words
    assert_same_neighbours(keyed, index.words)


def test_keyed_vectors_are_read_back(words: WordVectors):
    back = WordVectors.from_gensim(words.to_gensim())
    assert back.words == words.words
    np.testing.assert_array_equal(back.counts, words.counts)
    for word in words.words:
        assert [n.word for n in back.nearest(word, 5)] == [n.word for n in words.nearest(word, 5)]
    exact = WordVectors.from_gensim(words.to_gensim(uncorrected=True), centre=True)
    np.testing.assert_array_equal(exact.vectors, words.vectors)
    np.testing.assert_allclose(exact.centre, words.centre, atol=1e-6)


@pytest.mark.parametrize(("name", "binary"), [("words.vec", False), ("words.bin", True)])
def test_exported_files_are_the_same_in_gensim_and_read_back(
    words: WordVectors, name: str, binary: bool, tmp_path: Path
):
    polyseme.export(words, tmp_path / name)
    keyed = KeyedVectors.load_word2vec_format(tmp_path / name, binary=binary)
    expected = words.to_gensim()
    assert keyed.index_to_key == expected.index_to_key
    np.testing.assert_array_equal(keyed.vectors, expected.vectors)
    keyed.save_word2vec_format(tmp_path / "again", binary=binary)
    static = polyseme.read_vectors(tmp_path / "again")
    assert tuple(static.words) == words.words
    np.testing.assert_allclose(static.matrix, expected.vectors, atol=1e-6)
    back = WordVectors.from_gensim(keyed)
    assert [n.word for n in back.nearest("river", 5)] == [n.word for n in words.nearest("river", 5)]


def test_most_similar_takes_the_arguments_of_gensim(words: WordVectors):
    theirs = inspect.signature(KeyedVectors.most_similar).parameters
    ours = inspect.signature(WordVectors.most_similar).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert all(ours[name].default == theirs[name].default for name in theirs)


@pytest.mark.parametrize("key", [3, float("nan"), {"river"}, [3]])
def test_what_is_neither_word_nor_vector_is_refused(words: WordVectors, key):
    with pytest.raises(UsageError, match="expected a word, a vector, or"):
        words.most_similar(key)


def test_what_is_no_keyed_vectors_is_refused(words: WordVectors):
    with pytest.raises(UsageError, match="is of type dict, expected KeyedVectors of gensim"):
        WordVectors.from_gensim({"river": [1.0]})
    model = gensim_models.Word2Vec([["a", "b"]], vector_size=4, min_count=1)
    with pytest.raises(
        UsageError, match=r"is of type Word2Vec, expected KeyedVectors of gensim: `model\.wv`"
    ):
        WordVectors.from_gensim(model)
    assert set(WordVectors.from_gensim(model.wv).words) == {"a", "b"}
    with pytest.raises(UsageError, match="no words"):
        WordVectors.from_gensim(KeyedVectors(4))


def test_without_gensim_the_message_has_the_command(words: WordVectors, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(MissingExtraError, match=r'needs gensim: pip install "polyseme\[gensim\]"'):
        words.to_gensim()
