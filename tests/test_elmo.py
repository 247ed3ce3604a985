"""Sentences in, arrays out: layers, halves, pooling, shapes, and independence of the batch.

B sentences, T tokens incl. <S> and </S>, C characters, H = both directions, L layers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest
import torch

import reference
from builders import SENTENCES, random_model, small_config
from polyseme.elmo import Counts, Elmo, load
from polyseme.errors import UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.model.output import resolve_output

L, H = 3, 8  # of small_config
CHINESE = {"encoding": "codepoints", "max_chars": 12, "dim": 3, "filters": [[1, 2], [2, 3]]}
POOLS = {
    "mean": lambda vectors: vectors.mean(axis=-2),
    "max": lambda vectors: vectors.max(axis=-2),
    "first": lambda vectors: vectors[..., 0, :],
    "last": lambda vectors: vectors[..., -1, :],
    "sum": lambda vectors: vectors.sum(axis=-2),
    "concat": lambda x: np.concatenate([x.mean(axis=-2), x.max(axis=-2), x.min(axis=-2)], axis=-1),
}


@pytest.fixture(scope="module")
def model() -> Pretrained:
    return random_model(small_config())


@pytest.fixture
def elmo(model: Pretrained) -> Elmo:
    return Elmo(model)


def run_reference(model: Pretrained, sentences: Sequence[Sequence[str]], state=None) -> reference.Read:
    """The layers and state of the numpy reference; sentences without tokens are skipped."""
    framed = [["<S>", *tokens, "</S>"] if tokens else [] for tokens in sentences]
    max_chars = model.config.chars.max_chars
    chars = np.zeros((len(framed), max(map(len, framed)), max_chars), np.int64)
    for b, tokens in enumerate(framed):
        for t, token in enumerate(tokens):
            chars[b, t] = reference.byte_row(token, max_chars)
    weights = {name: value.numpy() for name, value in model.network.state_dict().items()}
    return reference.read(model.config, weights, list(map(len, framed)), chars=chars, state=state)


def random_sentences(count: int, longest: int, seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    words = ["the", "bank", "of", "river", "failed", "他", "银行", "naïve", "!", "a-word-too-long-to-read"]
    return [list(rng.choice(words, length)) for length in rng.integers(0, longest, count)]


def assert_close(arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray], atol: float = 1e-6) -> None:
    assert [array.shape for array in arrays] == [array.shape for array in expected]
    for array, expected_array in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, expected_array, atol=atol, rtol=1e-5)


# ---- layers, halves, pooling ----


def test_every_layer_of_every_token_matches_the_reference(elmo, model):
    arrays = elmo.embed([*SENTENCES, []], layer="all")
    expected = [layers[:, 1:-1] for layers in run_reference(model, SENTENCES).layers]
    assert_close(arrays, [*expected, np.zeros((L, 0, H))], atol=1e-5)
    assert all(array.dtype == np.float32 for array in arrays)


@pytest.mark.parametrize(
    ("layer", "weights"),
    [
        ("mean", [1 / 3, 1 / 3, 1 / 3]),
        ("top", [0, 0, 1]),
        (0, [1, 0, 0]),
        (1, [0, 1, 0]),
        (np.int64(2), [0, 0, 1]),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ((0.2, 0.3, 0.5), [0.2, 0.3, 0.5]),
        (([0.2, 0.3, 0.5], 2.0), [0.4, 0.6, 1.0]),
        (np.array([0.0, -1.0, 3.0]), [0, -1, 3]),
        ((np.array([0.0, -1.0, 3.0]), 0.5), [0, -0.5, 1.5]),
        ([0, 0, 0], [0, 0, 0]),
    ],
    ids=str,
)
def test_a_layer_is_a_weighted_sum_of_all_layers(elmo, layer, weights):
    expected = [np.tensordot(weights, layers, axes=1) for layers in elmo.embed(SENTENCES, layer="all")]
    assert_close(elmo.embed(SENTENCES, layer=layer), expected)


def test_a_pair_of_numbers_for_a_model_of_two_layers_is_two_weights():
    elmo = Elmo(random_model(small_config(recurrent={"layers": 1, "cells": 6, "outputs": 4})))
    layers = elmo.embed("the river", layer="all")
    np.testing.assert_allclose(elmo.embed("the river", layer=(0.25, 0.5)), 0.25 * layers[0] + 0.5 * layers[1])


@pytest.mark.parametrize("layer", ["mean", "all", 1])
@pytest.mark.parametrize("pool", POOLS)
def test_pooling_is_over_the_real_tokens_only(elmo, layer, pool):
    arrays = elmo.embed(SENTENCES, layer=layer)  # of different lengths, so that there is padding
    pooled = elmo.embed(SENTENCES, layer=layer, pool=pool)
    assert isinstance(pooled, np.ndarray)
    size = 3 * H if pool == "concat" else H
    assert pooled.shape == ((3, L, size) if layer == "all" else (3, size))
    np.testing.assert_allclose(pooled, [POOLS[pool](vectors) for vectors in arrays], atol=1e-6)


@pytest.mark.parametrize("layer", ["mean", "top", "all", [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("pool", [None, "max"])
def test_a_direction_is_one_half_of_both(elmo, layer, pool):
    both, forward, backward = (
        elmo.embed(SENTENCES, layer=layer, pool=pool, direction=d) for d in ("both", "forward", "backward")
    )
    for whole, *halves in zip(both, forward, backward, strict=True):
        np.testing.assert_array_equal(np.concatenate(halves, axis=-1), whole)
        assert halves[0].shape == halves[1].shape


def test_the_forward_half_does_not_depend_on_following_tokens(elmo):
    first, second = elmo.embed(["the bank failed", "the bank of"], layer="top")
    np.testing.assert_allclose(first[:2, :4], second[:2, :4], atol=1e-6)
    assert np.abs(first[:2, 4:] - second[:2, 4:]).max() > 1e-3


# ---- shapes ----


@pytest.mark.parametrize(("direction", "size"), [("both", H), ("backward", H // 2)])
@pytest.mark.parametrize("stateful", [False, True])
def test_input_without_tokens_gives_empty_arrays(elmo, direction, size, stateful):
    def shapes(sentences, **options):
        result = elmo.embed(sentences, direction=direction, stateful=stateful, **options)
        arrays = result if isinstance(result, list) else [result]
        assert all(array.dtype == np.float32 for array in arrays)
        assert not any(array.any() for array in arrays)
        return [array.shape for array in result] if isinstance(result, list) else result.shape

    for text in ("", " \n\t　"):
        assert shapes(text) == (0, size)
        assert shapes(text, layer="all") == (L, 0, size)
        assert shapes(text, pool="max") == (size,)
        assert shapes(text, pool="first", layer="all") == (L, size)
    assert shapes(["", []]) == [(0, size), (0, size)]
    assert shapes(["", []], pool="last", layer="all") == (2, L, size)
    assert shapes([]) == []
    assert shapes([], pool="mean") == (0, size)
    assert shapes([], pool="mean", layer="all") == (0, L, size)


def test_empty_sentences_stay_in_order_and_change_nothing(elmo):
    with_empty = elmo.embed([[], SENTENCES[0], [], SENTENCES[1], []])
    assert [len(array) for array in with_empty] == [0, 4, 0, 5, 0]
    assert_close([with_empty[1], with_empty[3]], elmo.embed(SENTENCES[:2]))
    pooled = elmo.embed([[], SENTENCES[0]], pool="max")
    assert not pooled[0].any()
    np.testing.assert_allclose(pooled[1], with_empty[1].max(axis=0), atol=1e-6)


def test_a_string_strings_and_token_lists_give_the_same_vectors(elmo):
    texts = [" ".join(tokens) for tokens in SENTENCES]
    from_tokens = elmo.embed(SENTENCES)
    assert_close(elmo.embed(texts), from_tokens)
    assert_close(elmo.embed(tuple(map(tuple, SENTENCES))), from_tokens)
    assert_close([elmo.embed(text) for text in texts], from_tokens)


@pytest.mark.parametrize("segment", ["split", "en", "zh", "zh-char", "auto"])
def test_a_string_of_several_sentences_is_one_result(elmo, segment):
    text = "The bank failed. He left!\n\nIt rained.\n他走了。下雨了！"
    vectors = elmo.embed(text, segment=segment)
    assert vectors.shape == (len(elmo.tokenize(text, segment)), H)
    assert [len(array) for array in elmo.embed([text, text], segment=segment)] == [len(vectors)] * 2


@pytest.mark.parametrize("options", [{}, {"layer": "all"}, {"layer": 1, "direction": "backward"}])
def test_arrays_do_not_share_memory(elmo, options):
    for array in elmo.embed(SENTENCES, **options):
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert (
            array.base is None or array.base.untyped_storage().nbytes() == array.nbytes
        )  # so that they do not keep their batch in memory


# ---- segmentation ----


def test_strings_are_segmented_as_the_model_was_trained():
    elmo = Elmo(random_model(small_config(segment="zh", chars=CHINESE)))
    text = "他在银行工作。"
    words = [token.text for token in elmo.tokenize(text)]
    assert words == ["他", "在", "银行", "工作", "。"]
    np.testing.assert_array_equal(elmo.embed(text), elmo.embed([words])[0])
    assert elmo.embed(text, segment="zh-char").shape == (7, H)
    assert elmo.embed(text, segment="split").shape == (1, H)
    assert elmo.embed([["银行"]], segment="zh-char")[0].shape == (1, H)  # token lists stay as they are


def test_the_segmentation_is_saved_with_the_model(tmp_path):
    save_pretrained(random_model(small_config(segment="zh", chars=CHINESE)), tmp_path / "model")
    elmo = load(tmp_path / "model")
    assert elmo.config.segment == "zh"
    assert len(elmo.embed("他在银行工作。")) == 5


@pytest.mark.parametrize("segment", [None, "en", "auto", "zh-char"])
def test_tokens_have_their_offsets(elmo, segment):
    text = "  Don't go , 银行\tnaïve 😀!"
    tokens = elmo.tokenize(text, segment)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert "".join(token.text for token in tokens) == "".join(text.split())
    assert [token.text for token in elmo.tokenize(text)] == text.split()


def test_a_text_is_split_into_sentences_with_offsets(elmo):
    text = "He left. 他走了。\n\nIt rained!"
    sentences = elmo.split_sentences(text, "en")
    assert [[token.text for token in sentence] for sentence in sentences][-1] == ["It", "rained", "!"]
    assert all(text[token.start : token.end] == token.text for sentence in sentences for token in sentence)
    assert len(elmo.split_sentences(text)) == 2  # split: a line is a sentence
    with pytest.raises(UsageError, match="'' is not a segmentation"):
        elmo.split_sentences(text, "")


# ---- independence ----


def test_vectors_do_not_depend_on_batch_order_or_neighbours(model):
    sentences = random_sentences(40, 15)
    expected = [Elmo(model).embed([tokens], layer="all")[0] for tokens in sentences]
    for batch_tokens in (1, 7, 30, 4096):
        assert_close(Elmo(model, batch_tokens=batch_tokens).embed(sentences, layer="all"), expected)
    order = np.random.default_rng(1).permutation(len(sentences))
    shuffled = Elmo(model, batch_tokens=50).embed([sentences[n] for n in order], layer="all")
    assert_close(shuffled, [expected[n] for n in order])


def test_the_same_call_gives_the_same_bits(model):
    sentences = random_sentences(30, 12)
    elmo = Elmo(model, batch_tokens=64)
    new_elmo = Elmo(model, batch_tokens=64)
    results = (elmo.embed(sentences), elmo.embed(sentences), new_elmo.embed(sentences))
    for arrays in zip(*results, strict=True):
        assert len({array.tobytes() for array in arrays}) == 1


def test_batches_respect_the_token_budget_and_contain_every_sentence_once(model):
    sentences = random_sentences(60, 20)
    batches = list(Elmo(model, batch_tokens=50).batches(sentences))
    assert sorted(number for batch in batches for number in batch.numbers) == list(range(60))
    for batch in batches:
        assert batch.sentences == [sentences[number] for number in batch.numbers]
        assert len(batch.sentences) * (max(map(len, batch.sentences)) + 2) <= 50
    assert len(batches) < 40  # several sentences share a batch
    assert [len(batch.numbers) for batch in Elmo(model, batch_tokens=1).batches(sentences)] == [1] * 60


@pytest.mark.parametrize("size", [0, -5])
def test_a_token_budget_below_1_is_refused(model, size):
    with pytest.raises(UsageError, match=f"batch_tokens is {size}, expected 1 or more"):
        Elmo(model, batch_tokens=size)


# ---- counts ----


def test_counts_are_those_of_the_embedded_text(elmo, caplog):
    with caplog.at_level(logging.WARNING, "polyseme"):
        elmo.embed(["the bank", ""])
        elmo.embed([["naïve", "0123456789"]], pool="mean")  # 10 bytes fit exactly
    assert (elmo.counts.sentences, elmo.counts.tokens, elmo.counts.truncated) == (3, 4, 0)
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "polyseme"):
        elmo.embed([["0123456789a", "银行银行", "ok"]])
    assert (elmo.counts.sentences, elmo.counts.tokens, elmo.counts.truncated) == (4, 7, 2)
    assert caplog.messages == [
        "2 of 3 tokens are longer than 10 bytes and were truncated. This warning is shown once; "
        "`Elmo.counts` has the total."
    ]
    elmo.embed([["0123456789a"]])
    assert elmo.counts.truncated == 3
    assert len(caplog.messages) == 1  # once per model


def test_a_truncated_token_has_the_vectors_of_its_first_characters(elmo):
    long, truncated = elmo.embed([["0123456789abc"], ["0123456789"]])
    np.testing.assert_allclose(long, truncated, atol=1e-6)


def test_code_points_are_counted_as_characters(caplog):
    elmo = Elmo(random_model(small_config(chars=CHINESE)))
    elmo.embed([["银" * 10]])
    assert elmo.counts.truncated == 0
    elmo.embed([["银" * 11]])
    assert elmo.counts.truncated == 1
    assert "1 of 1 tokens are longer than 10 characters" in caplog.text


def test_a_model_of_word_ids_truncates_nothing():
    elmo = Elmo(random_model(small_config(chars=None, words={"dim": 4})))
    arrays = elmo.embed(["the bank", "x" * 1000])
    assert [array.shape for array in arrays] == [(2, H), (1, H)]
    assert elmo.counts.truncated == 0


def test_the_repr_describes_the_model(elmo):
    assert repr(elmo) == "Elmo(3 layers, 8 values, 'split')"


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("layer", ["top", 0, [0.2, 0.3, 0.5]])
def test_embed_into_writes_the_vectors_of_the_sentences(elmo: Elmo, dtype, layer):
    sentences, spec = random_sentences(9, 6), resolve_output(layer, None, "both", L)
    sentences.append([])
    expected = np.concatenate(elmo.embed_tokens(sentences, spec, Counts()))
    rows = torch.full((len(expected) + 1, H), 7.0, dtype=dtype)
    counts = Counts()
    elmo.embed_into(rows[:-1], sentences, spec, counts)
    assert torch.equal(rows[:-1], torch.from_numpy(expected).to(dtype))
    assert (rows[-1] == 7).all()
    assert (counts.sentences, counts.tokens) == (len(sentences), len(expected))
