"""Conformance with vectors that bilm-tf wrote for a small model, published in AllenNLP's wheel.

30 sentences in 10 batches of 3, state carried from batch to batch; 458 tokens without context.
B sentences, T tokens incl. <S> and </S>, C characters, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import reference
from polyseme.elmo import Elmo, load
from polyseme.formats.models import hdf5
from polyseme.formats.models.pretrained import Pretrained

MAX_ERROR = 2e-6  # of any value


@pytest.fixture(scope="module")
def model(allennlp_elmo: Path) -> Pretrained:
    return hdf5.read(allennlp_elmo / "lm_weights.hdf5", allennlp_elmo / "options.json", None)


@pytest.fixture(scope="module")
def batches(allennlp_elmo: Path) -> list[list[list[str]]]:
    """10 batches of 3 sentences, as token lists."""
    texts = json.loads((allennlp_elmo / "sentences.json").read_text(encoding="utf-8"))
    return [[text.split() for text in batch] for batch in zip(*texts, strict=True)]


@pytest.fixture(scope="module")
def published(allennlp_elmo: Path) -> list[list[np.ndarray]]:
    """The top layer (T, H) of the same sentences, without <S> and </S>."""
    rows = []
    for number in range(3):
        with h5py.File(allennlp_elmo / f"lm_embeddings_{number}.hdf5") as file:
            rows.append([np.concatenate([*file[str(batch)][()]], axis=1) for batch in range(10)])
    return [list(batch) for batch in zip(*rows, strict=True)]


@pytest.fixture
def elmo(allennlp_elmo: Path) -> Elmo:
    return load(allennlp_elmo / "lm_weights.hdf5", allennlp_elmo / "options.json")


def char_ids(sentences: list[list[str]], max_chars: int) -> tuple[np.ndarray, list[int]]:
    """Character ids (B, T, C) and lengths, with <S> and </S>, encoded by the reference."""
    lengths = [len(tokens) + 2 for tokens in sentences]
    chars = np.zeros((len(sentences), max(lengths), max_chars), np.int64)
    for b, tokens in enumerate(sentences):
        chars[b, : lengths[b]] = [reference.byte_row(token, max_chars) for token in ["<S>", *tokens, "</S>"]]
    return chars, lengths


def assert_close(vectors: np.ndarray, expected: np.ndarray) -> None:
    assert vectors.shape == expected.shape
    np.testing.assert_allclose(vectors, expected, atol=1e-6, rtol=1e-5)
    assert np.abs(vectors - expected).max() < MAX_ERROR


@pytest.mark.parametrize("grad", [False, True])
def test_thirty_sentences_with_carried_state_get_the_published_vectors(model, batches, published, grad):
    state = None
    for sentences, expected in zip(batches, published, strict=True):
        chars, lengths = char_ids(sentences, 50)
        with torch.set_grad_enabled(grad):
            layers, state = model.network(torch.from_numpy(chars), None, torch.tensor(lengths), state)
        for b, length in enumerate(lengths):
            assert_close(layers[-1, b, 1 : length - 1].detach().numpy(), expected[b])


def test_the_first_batch_gets_the_published_vectors_without_state(elmo, batches, published):
    for vectors, expected in zip(elmo.embed(batches[0], layer="top"), published[0], strict=True):
        assert_close(vectors, expected)
    for sentence, expected in zip(batches[0], published[0], strict=True):  # one at a time, too
        assert_close(elmo.embed([sentence], layer="top")[0], expected)


def test_stateful_embedding_carries_state_between_calls_until_reset(elmo, batches, published):
    for _ in range(2):
        for sentences, expected in zip(batches, published, strict=True):
            for vectors, rows in zip(
                elmo.embed(sentences, layer="top", stateful=True), expected, strict=True
            ):
                assert_close(vectors, rows)
        elmo.reset()


def test_later_batches_need_the_state(elmo, batches, published):
    pairs = zip(elmo.embed(batches[1], layer="top"), published[1], strict=True)
    assert max(np.abs(vectors - expected).max() for vectors, expected in pairs) > 1e-3


def test_strings_are_split_at_spaces_like_the_published_sentences(elmo, batches, published):
    texts = [" ".join(tokens) for tokens in batches[0]]
    for vectors, expected in zip(elmo.embed(texts, layer="top"), published[0], strict=True):
        assert_close(vectors, expected)


def test_every_token_gets_its_published_vector_without_context(allennlp_elmo, model, elmo):
    words = (allennlp_elmo / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    with h5py.File(allennlp_elmo / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][()]
    words = [word.strip() for word in words if word.strip()]
    assert len(words) == len(expected) == 458
    chars = torch.tensor([reference.byte_row(word, 50) for word in words])
    with torch.no_grad():
        assert_close(model.network.tokens(chars, None).numpy(), expected)
    layer = np.concatenate(elmo.embed([[word] for word in words], layer=0))  # (458, H): the token, twice
    assert_close(layer[:, :16], expected)
    assert_close(layer[:, 16:], expected)


def test_the_reference_gets_the_published_vectors(model, batches, published):
    weights = {name: value.numpy() for name, value in model.network.state_dict().items()}
    chars, lengths = char_ids(batches[0], 50)
    result = reference.read(model.config, weights, lengths, chars=chars)
    for layers, expected in zip(result.layers, published[0], strict=True):
        assert_close(layers[-1, 1:-1], expected)
    assert result.clipped["memory"] > 0
    assert result.clipped["output"] > 0
