"""An ElmoLayer in training: frozen or fine-tuned, with carried state, saved and moved."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from builders import SENTENCES, random_model, small_config
from polyseme.elmo import Elmo, load
from polyseme.formats.models.save import save_pretrained
from polyseme.torch_layer import ElmoLayer

H = 8  # of small_config
CALLS = [SENTENCES, [["bank"], ["!", "river"]], [[], ["the"], ["the", "bank"], ["of"]]]


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


class Tagger(nn.Module):
    """Predicts for each token whether it is the word `bank`."""

    def __init__(self, elmo: Elmo, **options) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.elmo = ElmoLayer(elmo, **options)
        self.output = nn.Linear(H, 1)

    def loss(self) -> torch.Tensor:
        vectors, mask = self.elmo(SENTENCES)
        labels = torch.zeros(mask.shape)
        labels[0, 1] = 1.0
        return nn.functional.binary_cross_entropy_with_logits(
            self.output(vectors[0])[..., 0][mask], labels[mask]
        )

    def fit(self, steps: int) -> list[float]:
        optimiser = torch.optim.Adam(self.parameters(), lr=0.02)
        losses = []
        for _ in range(steps):
            optimiser.zero_grad()
            loss = self.loss()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses


def weights_of(elmo: Elmo) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in elmo.model.network.state_dict().items()}


def assert_unchanged(elmo: Elmo, before: dict[str, torch.Tensor]) -> None:
    for name, parameter in elmo.model.network.named_parameters():
        assert torch.equal(parameter, before[name]), name
        assert parameter.requires_grad, name
        assert parameter.grad is None, name


# ---- frozen and fine-tuned ----


def test_a_frozen_layer_trains_only_its_mix_and_does_not_change_the_model(elmo):
    before = weights_of(elmo)
    tagger = Tagger(elmo, dropout=0.0)
    losses = tagger.fit(30)
    assert losses[-1] < losses[0]
    assert tagger.elmo.mixes[0].weights.grad.abs().sum() > 0
    for name, parameter in tagger.elmo.network.named_parameters():
        assert not parameter.requires_grad
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])
    assert_unchanged(elmo, before)


def test_a_frozen_layer_shares_the_memory_of_the_weights(elmo):
    pairs = zip(ElmoLayer(elmo).network.parameters(), elmo.model.network.parameters(), strict=True)
    assert all(weight.data_ptr() == loaded.data_ptr() for weight, loaded in pairs)


def test_fine_tuning_trains_a_copy(elmo):
    before = weights_of(elmo)
    tagger = Tagger(elmo, dropout=0.0, fine_tune=True)
    losses = tagger.fit(60)
    frozen = Tagger(elmo, dropout=0.0).fit(60)
    assert losses[-1] < 0.3 * losses[0]
    assert losses[-1] < frozen[-1]  # more to learn with
    changed = [n for n, p in tagger.elmo.network.named_parameters() if not torch.equal(p, before[n])]
    assert {name.split(".")[0] for name in changed} == {"tokens", "forward_stack", "backward_stack"}
    assert_unchanged(elmo, before)


def test_fine_tuning_works_after_a_frozen_layer_of_the_same_model(elmo):
    ElmoLayer(elmo)
    tuned = ElmoLayer(elmo, fine_tune=True)
    assert all(parameter.requires_grad for parameter in tuned.network.parameters())


def test_a_frozen_word_table_stays_frozen_when_the_rest_is_fine_tuned():
    elmo = Elmo(random_model(small_config(chars=None, words={"dim": 4, "trained": False})))
    tagger = Tagger(elmo, dropout=0.0, fine_tune=True)
    table = elmo.model.network.tokens.words.weight.clone()
    losses = tagger.fit(5)
    assert losses[-1] < losses[0]
    assert torch.equal(tagger.elmo.network.tokens.words.weight, table)


def test_without_gradients_a_fine_tuned_layer_keeps_no_graph(elmo):
    layer = ElmoLayer(elmo, fine_tune=True)
    with torch.no_grad():
        assert not layer(SENTENCES).vectors[0].requires_grad
    assert layer(SENTENCES).vectors[0].requires_grad


# ---- state ----


def check_calls(layer: ElmoLayer, elmo: Elmo) -> None:
    """The layer gives the vectors of stateful embedding from zero state, call by call."""
    elmo.reset()
    for call in CALLS:
        vectors, _ = layer(call)
        for row, expected in zip(vectors[0].detach().numpy(), elmo.embed(call, stateful=True), strict=True):
            np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-5)


@pytest.mark.parametrize("fine_tune", [False, True])
def test_a_stateful_layer_carries_state_between_batches_until_a_reset(elmo, fine_tune):
    layer = ElmoLayer(elmo, stateful=True, fine_tune=fine_tune).eval()
    check_calls(layer, elmo)
    layer.reset()
    check_calls(layer, elmo)


def test_state_is_carried_for_ids(elmo):
    layer, token_layer = (ElmoLayer(elmo, stateful=True).eval() for _ in range(2))
    for call in CALLS:
        from_ids = layer(layer.batch_to_ids(call)).vectors[0]
        torch.testing.assert_close(from_ids, token_layer(call).vectors[0])


def test_without_state_batches_are_independent(elmo):
    layer = ElmoLayer(elmo).eval()
    first = layer(SENTENCES).vectors[0]
    layer(CALLS[1])
    assert torch.equal(layer(SENTENCES).vectors[0], first)


def test_state_does_not_leak_from_training_into_evaluation(elmo):
    tagger = Tagger(elmo, stateful=True, dropout=0.0)
    tagger.train()
    tagger.fit(2)
    fresh = ElmoLayer(elmo, stateful=True).eval()
    fresh.load_state_dict(tagger.elmo.state_dict())
    tagger.eval()
    torch.testing.assert_close(tagger.elmo(SENTENCES).vectors[0], fresh(SENTENCES).vectors[0])
    tagger.eval()  # the mode does not change, so the state is carried
    torch.testing.assert_close(tagger.elmo(SENTENCES).vectors[0], fresh(SENTENCES).vectors[0])


def test_a_fine_tuned_stateful_layer_trains_over_many_batches(elmo):
    losses = Tagger(elmo, stateful=True, fine_tune=True, dropout=0.0).fit(
        20
    )  # would raise if the graph were kept
    assert losses[-1] < losses[0]


# ---- saved and moved ----


@pytest.mark.parametrize("fine_tune", [False, True])
def test_weights_survive_a_state_dict(elmo, fine_tune, tmp_path):
    options = {"mixes": 2, "fine_tune": fine_tune}
    layer = ElmoLayer(elmo, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.requires_grad:
                parameter.add_(0.25)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    loaded = ElmoLayer(elmo, **options)
    loaded.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True))
    for expected, vectors in zip(
        layer.eval()(SENTENCES).vectors, loaded.eval()(SENTENCES).vectors, strict=True
    ):
        torch.testing.assert_close(vectors, expected)
    untouched = ElmoLayer(elmo, **options).eval()(SENTENCES).vectors[0]
    assert not torch.allclose(untouched, loaded(SENTENCES).vectors[0])


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_loading_other_weights_into_a_frozen_layer_does_not_change_the_model(tmp_path, precision, assign):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    elmo = load(tmp_path / "model", precision=precision)
    expected = elmo.embed(SENTENCES)
    trained = ElmoLayer(elmo, fine_tune=True).eval()
    with torch.no_grad():
        for weight in trained.network.parameters():
            weight.mul_(0.5)
    tagger = Tagger(elmo).eval()
    state = {f"elmo.{name}": value for name, value in trained.state_dict().items()}
    tagger.load_state_dict(tagger.state_dict() | state, assign=assign)
    vectors = tagger.elmo(SENTENCES).vectors[0]
    torch.testing.assert_close(vectors, trained(SENTENCES).vectors[0], atol=0.02, rtol=0)
    assert (vectors[0, :4] - torch.from_numpy(expected[0])).abs().max() > 0.1
    assert not any(weight.requires_grad for weight in tagger.elmo.network.parameters())
    for array, before in zip(elmo.embed(SENTENCES), expected, strict=True):
        np.testing.assert_array_equal(array, before)
    assert elmo.path == str(tmp_path / "model")


def test_loading_its_own_weights_keeps_a_frozen_layer_small(tmp_path):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    elmo = load(tmp_path / "model")
    layer = ElmoLayer(elmo)
    layer.load_state_dict(ElmoLayer(elmo).state_dict())
    assert layer._has_shared_weights()
    assert elmo.path == str(tmp_path / "model")
    assert len(pickle.dumps(layer)) < 10_000


@pytest.mark.parametrize("fine_tune", [False, True])
def test_a_layer_can_change_its_precision_without_changing_the_model(elmo, fine_tune):
    before = weights_of(elmo)
    layer = ElmoLayer(elmo, stateful=True, fine_tune=fine_tune).eval()
    single = layer(SENTENCES).vectors[0]
    second = layer(SENTENCES).vectors[0]
    layer.reset()
    layer(SENTENCES)
    layer.to(torch.float64)
    doubled = layer(SENTENCES).vectors[0]  # continues from a state in single precision
    assert doubled.dtype == torch.float64
    torch.testing.assert_close(doubled.float(), second, atol=1e-5, rtol=1e-5)
    assert layer.to(torch.float32)(SENTENCES).vectors[0].dtype == torch.float32  # and back again
    layer.to(torch.float64)
    layer.reset()
    torch.testing.assert_close(layer(SENTENCES).vectors[0].float(), single, atol=1e-5, rtol=1e-5)
    assert_unchanged(elmo, before)
    assert elmo.embed(SENTENCES)[0].dtype == np.float32


def test_a_layer_can_move_to_another_device_without_the_model(elmo):
    layer = ElmoLayer(elmo).to("meta")
    assert all(parameter.is_meta for parameter in layer.parameters())
    assert np.isfinite(elmo.embed(SENTENCES)[0]).all()


def test_a_layer_can_be_copied(elmo):
    layer = ElmoLayer(elmo).eval()
    torch.testing.assert_close(deepcopy(layer)(SENTENCES).vectors[0], layer(SENTENCES).vectors[0])
