"""The token cache: exact, bounded, shared, and aware of changed weights."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from builders import SENTENCES, random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.formats.models.precision import set_precision
from polyseme.model.fast.kernels import native
from polyseme.text.vocab import Vocab
from polyseme.token_cache import TokenCache

WORDS = [f"word{number}" for number in range(40)]
VOCAB = Vocab(["<S>", "</S>", "<UNK>", "bank", "river", "银行"])


@pytest.fixture
def model():
    return random_model(small_config())


def encoded(model, words):
    with torch.inference_mode():
        return model.network.tokens(*model.token_ids(words))


def test_vectors_are_those_of_the_encoder(model):
    cache = TokenCache(model)
    for words in (["bank", "river"], ["river", "new", "bank"], [], ["new"]):
        torch.testing.assert_close(cache.vectors(words), encoded(model, words), atol=1e-6, rtol=0)


@pytest.mark.skipif(
    not native.is_available(), reason="torch rounds products differently for other numbers of rows"
)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_word_has_the_same_bits_alone_and_among_others(precision):
    chars = {"max_chars": 12, "dim": 16, "filters": [[1, 104], [2, 200]]}
    model = random_model(small_config(chars=chars, recurrent={"layers": 1, "cells": 40, "outputs": 32}))
    set_precision(model, precision)
    together = TokenCache(model).vectors(WORDS)
    alone = TokenCache(model)
    for number, word in enumerate(WORDS):
        assert torch.equal(alone.vectors([word])[2], together[number + 2])


def test_a_word_is_encoded_once(model):
    cache = TokenCache(model)
    cache.vectors(["bank", "river"])
    cache.vectors(["river", "bank", "new"])
    assert (cache.counts.hits, cache.counts.misses) == (2, 3)
    assert len(cache) == 3


def test_a_full_cache_drops_the_least_recently_used_word(model):
    size = 4 * model.config.recurrent.outputs
    cache = TokenCache(model, max_bytes=3 * size)
    cache.vectors(["a", "b", "c"])
    cache.vectors(["a"])
    cache.vectors(["d"])  # instead of b
    assert cache.bytes <= 3 * size
    before = cache.counts.misses
    cache.vectors(["a", "c", "d"])
    assert cache.counts.misses == before
    cache.vectors(["b"])
    assert cache.counts.misses == before + 1


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_vectors_are_correct_if_there_are_more_words_than_fit(model, rows: int):
    cache = TokenCache(model, max_bytes=rows * 4 * model.config.recurrent.outputs)
    for _ in range(3):
        torch.testing.assert_close(cache.vectors(WORDS), encoded(model, WORDS), atol=1e-6, rtol=0)
    assert len(cache) == rows


@pytest.mark.parametrize("fused", [False, True])
def test_changed_weights_empty_the_cache(model, fused: bool):
    cache = TokenCache(model)
    cache.vectors(WORDS)
    parameters = list(model.network.tokens.parameters())
    optimizer = torch.optim.AdamW(parameters, 0.1, fused=fused)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    torch.testing.assert_close(cache.vectors(WORDS), encoded(model, WORDS), atol=1e-6, rtol=0)


def test_threads_can_share_a_cache(model):
    cache = TokenCache(model, max_bytes=10 * 4 * model.config.recurrent.outputs)
    expected = encoded(model, WORDS)

    def check_random_words(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            numbers = rng.choice(len(WORDS), rng.integers(1, 20), replace=False)
            vectors = cache.vectors([WORDS[number] for number in numbers])
            if not torch.allclose(vectors[2:], expected[numbers + 2], atol=1e-6, rtol=0):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check_random_words, range(8)))


def test_embedding_gives_the_same_vectors_with_and_without_a_cache(model):
    with_cache, without = Elmo(model), Elmo(model, cache_bytes=0)
    for _ in range(2):
        for vectors, expected in zip(
            with_cache.embed(SENTENCES, layer="all"), without.embed(SENTENCES, layer="all"), strict=True
        ):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert with_cache.cache.counts.hits > 0
    assert without.cache.counts.hits == 0


def test_a_vocabulary_is_written_row_by_row_as_bilm_tf_does(model, tmp_path: Path):
    TokenCache(model).write(tmp_path / "tokens.hdf5", VOCAB)
    with h5py.File(tmp_path / "tokens.hdf5") as file:
        rows = file["embedding"][...]
    expected = encoded(model, ["<UNK>", "bank", "river", "银行"]).numpy()
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_a_written_cache_is_read_and_used(model, tmp_path: Path):
    TokenCache(model).write(tmp_path / "tokens.hdf5", VOCAB)
    cache = TokenCache(model)
    cache.read(tmp_path / "tokens.hdf5", VOCAB)
    torch.testing.assert_close(
        cache.vectors(["bank", "unseen"]), encoded(model, ["bank", "unseen"]), atol=1e-6, rtol=0
    )
    assert (cache.counts.hits, cache.counts.misses) == (1, 1)


def test_a_file_of_another_model_or_vocabulary_is_refused(model, tmp_path: Path):
    TokenCache(model).write(tmp_path / "tokens.hdf5", VOCAB)
    with pytest.raises(DataError, match="differ from the model's by"):
        TokenCache(random_model(small_config(), seed=9)).read(tmp_path / "tokens.hdf5", VOCAB)
    with pytest.raises(DataError, match="6 rows of 4 values, but the vocabulary has 3 words"):
        TokenCache(model).read(tmp_path / "tokens.hdf5", Vocab(["<S>", "</S>", "<UNK>"]))


def test_a_size_below_zero_is_refused(model):
    with pytest.raises(UsageError, match="cache_bytes is -1"):
        Elmo(model, cache_bytes=-1)


def test_the_verb_writes_a_vocabulary(model, tmp_path: Path):
    Elmo(model).save(tmp_path / "model")
    VOCAB.write(tmp_path / "vocab.txt")
    count = api.cache(tmp_path / "model", tmp_path / "vocab.txt", tmp_path / "tokens.hdf5")
    assert count == 6
    assert (tmp_path / "tokens.hdf5").exists()
