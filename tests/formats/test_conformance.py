"""The vectors that bilm-tf itself wrote for a small model, published in AllenNLP's wheel.

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

LARGEST = 2e-6  # no value may be further from the published one


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
    """The top layer (T, H) of the same sentences, <S> and </S> left out."""
    rows = []
    for number in range(3):
        with h5py.File(allennlp_elmo / f"lm_embeddings_{number}.hdf5") as file:
            rows.append([np.concatenate([*file[str(batch)][()]], axis=1) for batch in range(10)])
    return [list(batch) for batch in zip(*rows, strict=True)]


@pytest.fixture
def elmo(allennlp_elmo: Path) -> Elmo:
    return load(allennlp_elmo / "lm_weights.hdf5", allennlp_elmo / "options.json")


def char_ids(sentences: list[list[str]], max_chars: int) -> tuple[np.ndarray, list[int]]:
    """(B, T, C) and the lengths, with <S> and </S>, encoded by the reference."""
    lengths = [len(tokens) + 2 for tokens in sentences]
    chars = np.zeros((len(sentences), max(lengths), max_chars), np.int64)
    for b, tokens in enumerate(sentences):
        chars[b, : lengths[b]] = [reference.byte_row(token, max_chars) for token in ["<S>", *tokens, "</S>"]]
    return chars, lengths


def check(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-6, rtol=1e-5)
    assert np.abs(found - wanted).max() < LARGEST


@pytest.mark.parametrize("grad", [False, True])
def test_thirty_sentences_with_carried_state_get_the_published_vectors(model, batches, published, grad):
    state = None
    for sentences, wanted in zip(batches, published, strict=True):
        chars, lengths = char_ids(sentences, 50)
        with torch.set_grad_enabled(grad):
            layers, state = model.network(torch.from_numpy(chars), None, torch.tensor(lengths), state)
        for b, length in enumerate(lengths):
            check(layers[-1, b, 1 : length - 1].detach().numpy(), wanted[b])


def test_the_first_batch_is_reproducible_from_zero_state(elmo, batches, published):
    for found, wanted in zip(elmo.embed(batches[0], layer="top"), published[0], strict=True):
        check(found, wanted)
    for sentence, wanted in zip(batches[0], published[0], strict=True):  # and one at a time
        check(elmo.embed([sentence], layer="top")[0], wanted)


def test_stateful_embedding_goes_on_from_call_to_call_until_it_is_reset(elmo, batches, published):
    for _ in range(2):
        for sentences, wanted in zip(batches, published, strict=True):
            for one, vectors in zip(elmo.embed(sentences, layer="top", stateful=True), wanted, strict=True):
                check(one, vectors)
        elmo.reset()


def test_later_batches_need_the_state(elmo, batches, published):
    found = elmo.embed(batches[1], layer="top")
    assert max(np.abs(one - wanted).max() for one, wanted in zip(found, published[1], strict=True)) > 1e-3


def test_strings_are_split_at_spaces_as_the_published_sentences_were(elmo, batches, published):
    texts = [" ".join(tokens) for tokens in batches[0]]
    for found, wanted in zip(elmo.embed(texts, layer="top"), published[0], strict=True):
        check(found, wanted)


def test_every_token_gets_its_published_vector_without_context(allennlp_elmo, model, elmo):
    words = (allennlp_elmo / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    with h5py.File(allennlp_elmo / "elmo_token_embeddings.hdf5") as file:
        wanted = file["embedding"][()]
    words = [word.strip() for word in words if word.strip()]
    assert len(words) == len(wanted) == 458
    chars = torch.tensor([reference.byte_row(word, 50) for word in words])
    with torch.no_grad():
        check(model.network.tokens(chars, None).numpy(), wanted)
    layer = np.concatenate(elmo.embed([[word] for word in words], layer=0))  # (458, H): twice the token
    check(layer[:, :16], wanted)
    check(layer[:, 16:], wanted)


def test_the_reference_gets_the_published_vectors(model, batches, published):
    weights = {name: value.numpy() for name, value in model.network.state_dict().items()}
    chars, lengths = char_ids(batches[0], 50)
    found = reference.read(model.config, weights, lengths, chars=chars)
    for layers, wanted in zip(found.layers, published[0], strict=True):
        check(layers[-1, 1:-1], wanted)
    assert found.clipped["memory"] > 0
    assert found.clipped["output"] > 0
