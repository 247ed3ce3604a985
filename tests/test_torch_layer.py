"""ELMo as a layer of a PyTorch network.

L layers, B sentences, T tokens, C characters, H = both directions.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import polyseme
from builders import SENTENCES, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.torch_layer import ElmoLayer, batch_to_ids
from reference import byte_row

H = 8  # of small_config
WORDS = {"words": {"dim": 4}}
WITH_EMPTY = [[], *SENTENCES, []]


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


def make_layer(elmo: Elmo, **options) -> ElmoLayer:
    """A layer in evaluation mode, so without dropout."""
    return ElmoLayer(elmo, **options).eval()


def assert_rows(vectors: torch.Tensor, mask: torch.Tensor, expected: list[np.ndarray]) -> None:
    """(B, T, H) contains the `expected` arrays (tokens, H), followed by zeros."""
    assert vectors.shape == (len(expected), mask.shape[1], H)
    assert mask.dtype == torch.bool
    for row, real, array in zip(vectors.detach().numpy(), mask.numpy(), expected, strict=True):
        assert real.tolist() == [position < len(array) for position in range(len(real))]
        np.testing.assert_allclose(row[: len(array)], array, atol=1e-5)
        assert not row[len(array) :].any()


# ---- inputs and outputs ----


def test_an_untrained_layer_is_the_mean_of_embed(elmo):
    layer = make_layer(elmo)
    expected = elmo.embed(WITH_EMPTY)
    vectors, mask = layer(WITH_EMPTY)
    assert len(vectors) == 1
    assert_rows(vectors[0], mask, expected)
    from_ids = layer(layer.batch_to_ids(WITH_EMPTY))
    assert_rows(from_ids.vectors[0], from_ids.mask, expected)
    assert layer.size == H


@pytest.mark.parametrize("changes", [{"chars": None, **WORDS}, WORDS], ids=["words", "both"])
def test_models_of_word_ids_take_token_lists_and_refuse_ids(changes):
    elmo = Elmo(random_model(small_config(**changes)))
    layer = make_layer(elmo)
    vectors, mask = layer(SENTENCES)
    assert_rows(vectors[0], mask, elmo.embed(SENTENCES))
    for use_ids in (lambda: layer.batch_to_ids(SENTENCES), lambda: layer(torch.ones(1, 2, 12).long())):
        with pytest.raises(UsageError, match="reads word ids too: give its layer token lists"):
            use_ids()


def test_a_layer_can_be_made_from_a_path_or_a_model(elmo, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    expected = make_layer(elmo)(SENTENCES).vectors[0]
    for source in (tmp_path / "model", str(tmp_path / "model"), elmo.model):
        torch.testing.assert_close(ElmoLayer(source).eval()(SENTENCES).vectors[0], expected)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_boundaries_can_be_kept(elmo, layer_norm):
    without = make_layer(elmo, layer_norm=layer_norm)(WITH_EMPTY)
    with_boundaries = make_layer(elmo, layer_norm=layer_norm, keep_boundaries=True)(WITH_EMPTY)
    assert with_boundaries.mask.sum(dim=1).tolist() == [0, 6, 7, 3, 0]
    assert without.mask.sum(dim=1).tolist() == [0, 4, 5, 1, 0]
    for row, inner, length in zip(
        with_boundaries.vectors[0], without.vectors[0], (0, 4, 5, 1, 0), strict=True
    ):
        torch.testing.assert_close(row[1 : length + 1], inner[:length])
        assert not row[length + 2 if length else 0 :].any()
        if length:
            assert row[0].any()  # <S>
            assert row[length + 1].any()  # </S>


@pytest.mark.parametrize("keep_boundaries", [False, True])
def test_a_batch_of_empty_sentences_has_no_tokens(elmo, keep_boundaries):
    layer = make_layer(elmo, keep_boundaries=keep_boundaries)
    vectors, mask = layer([[], []])
    assert vectors[0].shape[0] == 2
    assert vectors[0].shape[2] == H
    assert not mask.any()
    from_ids = layer(layer.batch_to_ids([[], []]))
    assert not from_ids.mask.any()
    assert not from_ids.vectors[0].any()


def test_extra_padding_of_ids_changes_nothing(elmo):
    layer = make_layer(elmo)
    ids = layer.batch_to_ids(SENTENCES)
    wide = layer(nn.functional.pad(ids, (0, 0, 0, 4)))
    assert wide.vectors[0].shape == (3, 9, H)
    torch.testing.assert_close(wide.vectors[0][:, :5], layer(ids).vectors[0])
    assert not wide.vectors[0][:, 5:].any()


# ---- ids ----


def test_batch_to_ids_follows_the_convention_of_allennlp():
    ids = batch_to_ids([["The", "naïve", "银行"], ["x" * 60]])
    assert ids.shape == (2, 3, 50)
    assert ids.dtype == torch.int64
    assert ids[0, 0].tolist() == [259, *(ord(c) + 1 for c in "The"), 260] + [261] * 45
    assert ids[0].tolist() == [byte_row(token, 50) for token in ("The", "naïve", "银行")]
    assert ids[1, 0].tolist() == [259, *[ord("x") + 1] * 48, 260]
    assert not ids[1, 1:].any()
    assert polyseme.batch_to_ids is batch_to_ids


def test_batch_to_ids_of_another_width_fits_the_model(elmo):
    layer = make_layer(elmo)
    assert torch.equal(batch_to_ids(SENTENCES, max_chars=12), layer.batch_to_ids(SENTENCES))
    assert batch_to_ids([[], []]).shape == (2, 0, 50)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("the bank", "sentences is the string 'the bank', expected a list of token lists."),
        (["the bank"], "sentence 0 is the string 'the bank', expected a list of tokens. Split it, or use"),
        ([["the"], "bank"], "sentence 1 is the string 'bank', expected a list of tokens."),
        ([["the bank"]], "token 0 of sentence 0 holds white space ('the bank')."),
        ([["the", ""]], "token 1 of sentence 0 is empty."),
        ([["the", 5]], "token 1 of sentence 0 is 5, expected a string."),
        ([5], "sentence 0 is 5, expected a string or a list of tokens."),
        (None, "sentences is of type NoneType, expected strings in a list or another iterable."),
        ({"the"}, "sentences is a set, which has no order"),
        ([], "There is no sentence in the batch."),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_invalid_token_lists_are_refused(elmo, sentences, message):
    layer = make_layer(elmo)
    for call in (batch_to_ids, layer.batch_to_ids, layer):
        with pytest.raises(UsageError) as error:
            call(sentences)
        assert str(error.value).startswith(message)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 50), (3, 12), (1, 2, 3, 12)])
def test_ids_of_a_wrong_shape_are_refused(elmo, shape):
    with pytest.raises(
        UsageError, match=r"expected \(sentences, tokens, 12\)\. Make them with `batch_to_ids`"
    ):
        make_layer(elmo)(torch.ones(shape, dtype=torch.long))


# ---- mixes ----


def test_mixes_are_independent(elmo):
    layer = make_layer(elmo, mixes=3)
    with torch.no_grad():
        layer.mixes[1].weights.copy_(torch.tensor([0.0, 0.0, 50.0]))
        layer.mixes[2].gamma.fill_(-2.0)
    mean, top, doubled = layer(SENTENCES).vectors
    assert_rows(mean, layer(SENTENCES).mask, elmo.embed(SENTENCES))
    assert_rows(top, layer(SENTENCES).mask, elmo.embed(SENTENCES, layer="top"))
    torch.testing.assert_close(doubled, -2 * mean)


def test_options_are_passed_to_the_mix(elmo):
    def rows(**options):
        return make_layer(elmo, **options)(SENTENCES).vectors[0]

    mask = make_layer(elmo)(SENTENCES).mask
    assert_rows(rows(top_only=True), mask, elmo.embed(SENTENCES, layer="top"))
    shares = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    expected = elmo.embed(SENTENCES, layer=(list(shares), 0.5))
    assert_rows(rows(weights=[1.0, 2.0, 3.0], gamma=0.5), mask, expected)
    fixed = ElmoLayer(elmo, trained_mix=False)
    assert not any(parameter.requires_grad for parameter in fixed.parameters())
    assert ElmoLayer(elmo, by_direction=True).mixes[0].weights.shape == (3, 2)
    with pytest.raises(ValueError, match="2 weights do not fit 3 layers"):
        ElmoLayer(elmo, weights=[1.0, 2.0])


def test_layer_norm_is_over_the_tokens_and_boundaries_of_the_batch(elmo):
    layers, _ = elmo.compute_layers(SENTENCES)  # (L, B, T, H)
    real = torch.arange(layers.shape[2]) < torch.tensor([6, 7, 3])[:, None]
    normalised = [(layer - layer[real].mean()) / layer[real].std(correction=0) for layer in layers]
    expected = [
        row[1 : n + 1].numpy() for row, n in zip(torch.stack(normalised).mean(0), (4, 5, 1), strict=True)
    ]
    output = make_layer(elmo, layer_norm=True)(SENTENCES)
    assert_rows(output.vectors[0], output.mask, expected)


def test_dropout_is_applied_in_training_only(elmo):
    torch.manual_seed(0)
    layer = ElmoLayer(elmo, dropout=0.5)
    whole = layer.eval()(SENTENCES).vectors[0]
    torch.testing.assert_close(layer(SENTENCES).vectors[0], whole)
    dropped, mask = layer.train()(SENTENCES)
    share = (dropped[0][mask] == 0).float().mean()
    assert 0.3 < share < 0.7
    not_dropped = dropped[0] != 0
    torch.testing.assert_close(dropped[0][not_dropped], 2 * whole[not_dropped])
    none = ElmoLayer(elmo, dropout=0.0).train()
    torch.testing.assert_close(none(SENTENCES).vectors[0], whole)


# ---- autocast and tracing ----


@pytest.mark.parametrize("fine_tune", [False, True])
@pytest.mark.parametrize("gradients", [False, True])
def test_autocast_changes_neither_vectors_nor_their_dtype(elmo, fine_tune, gradients):
    layer = ElmoLayer(elmo, fine_tune=fine_tune, dropout=0.0)
    with torch.set_grad_enabled(gradients):
        expected = layer(SENTENCES).vectors[0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors = layer(SENTENCES).vectors[0]
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors, expected, atol=0, rtol=0)


def test_a_network_under_autocast_trains_on_top_of_the_layer(elmo):
    layer = ElmoLayer(elmo, fine_tune=True, dropout=0.0)
    head = torch.nn.Linear(layer.size, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = head(layer(SENTENCES).vectors[0])
    assert output.dtype == torch.bfloat16
    output.float().sum().backward()
    assert all(weight.grad is not None for weight in layer.network.forward_stack.parameters())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch deprecates tracing
def test_the_layer_refuses_to_be_traced(elmo):
    layer = ElmoLayer(elmo).eval()
    with pytest.raises(UsageError, match=r"torch\.jit\.trace would keep the sentence lengths"):
        torch.jit.trace(layer, layer.batch_to_ids(SENTENCES), check_trace=False)
