"""The mixture of layers, with all its options.

L layers, B sentences, T tokens, H = both directions.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import reference
from polyseme.model.mix import Mix


@pytest.fixture
def layers() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(3, 2, 5, 8) * torch.tensor([1.0, 5.0, 0.2])[:, None, None, None] + 2  # (L, B, T, H)


def test_untrained_mix_is_the_mean_of_the_layers(layers):
    mixed = Mix(n_layers=3)(layers)
    assert mixed.shape == (2, 5, 8)
    torch.testing.assert_close(mixed, layers.mean(dim=0))


def test_mix_is_equation_one_of_the_paper(layers):
    mix = Mix(3, weights=[0.3, -1.0, 2.0], gamma=0.7)
    expected = reference.mix(layers.double().numpy(), [0.3, -1.0, 2.0], 0.7)
    np.testing.assert_allclose(mix(layers).detach().numpy(), expected, atol=1e-5)


def test_shares_are_the_softmax_of_the_weights():
    mix = Mix(3, weights=[0.0, 1.0, 3.0])
    powers = np.exp([0.0, 1.0, 3.0])
    np.testing.assert_allclose(mix.shares, powers / powers.sum(), rtol=1e-6)


def test_directions_can_have_separate_weights(layers):
    mix = Mix(3, by_direction=True)
    torch.testing.assert_close(mix(layers), layers.mean(dim=0))
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([[50.0, 0.0], [0.0, 50.0], [0.0, 0.0]]))
    mixed = mix(layers)
    torch.testing.assert_close(mixed[..., :4], layers[0, ..., :4])  # forward: all from layer 0
    torch.testing.assert_close(mixed[..., 4:], layers[1, ..., 4:])  # backward: all from layer 1
    np.testing.assert_allclose(mix.shares, [[1, 0], [0, 1], [0, 0]], atol=1e-6)


def test_initial_weights_apply_to_both_directions(layers):
    separate, shared = (Mix(3, by_direction=flag, weights=[0.5, 1.5, -1]) for flag in (True, False))
    torch.testing.assert_close(separate(layers), shared(layers))


def test_top_only_is_the_top_layer_times_gamma(layers):
    mix = Mix(3, top_only=True, gamma=0.5)
    torch.testing.assert_close(mix(layers), 0.5 * layers[-1])
    assert mix.shares == [0.0, 0.0, 1.0]
    assert [name for name, _ in mix.named_parameters()] == ["gamma"]
    assert mix.penalty() == 0


@pytest.mark.parametrize("n_layers", [1, 2, 3, 5])
def test_any_number_of_layers_can_be_mixed(n_layers: int):
    layers = torch.randn(n_layers, 1, 2, 4)
    torch.testing.assert_close(Mix(n_layers)(layers), layers.mean(dim=0))


def test_layer_norm_uses_one_mean_and_deviation_per_layer(layers):
    normalised = [(layer - layer.mean()) / layer.std(correction=0) for layer in layers]
    torch.testing.assert_close(Mix(3, layer_norm=True)(layers), torch.stack(normalised).mean(dim=0))
    torch.testing.assert_close(Mix(3, layer_norm=True, top_only=True)(layers), normalised[-1])


def test_layer_norm_ignores_masked_tokens(layers):
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])  # (B, T)
    mix = Mix(3, layer_norm=True)
    mixed = mix(layers, mask)
    real = [layer[mask] for layer in layers]
    normalised = [(values - values.mean()) / values.std(correction=0) for values in real]
    torch.testing.assert_close(mixed[mask], torch.stack(normalised).mean(dim=0))
    changed = torch.where(mask[..., None], layers, 99.0)
    torch.testing.assert_close(mix(changed, mask)[mask], mixed[mask])


def test_layer_norm_of_constant_layers_is_finite():
    assert torch.isfinite(Mix(2, layer_norm=True)(torch.ones(2, 1, 3, 4))).all()


def test_a_fixed_mix_has_nothing_to_train(layers):
    mix = Mix(3, trained=False, weights=[1, 2, 3])
    assert not any(parameter.requires_grad for parameter in mix.parameters())
    assert not mix(layers).requires_grad


@pytest.mark.parametrize("options", [{}, {"by_direction": True}, {"top_only": True}, {"layer_norm": True}])
def test_every_parameter_of_a_trained_mix_gets_a_gradient(layers, options):
    mix = Mix(3, **options)
    mix(layers).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in mix.parameters())


def test_dropout_is_applied_in_training_only(layers):
    mix = Mix(3, dropout=0.5)
    dropped = mix(layers)
    share = (dropped == 0).float().mean()
    assert 0.2 < share < 0.8
    not_dropped = dropped != 0
    torch.testing.assert_close(dropped[not_dropped], 2 * layers.mean(dim=0)[not_dropped])
    torch.testing.assert_close(mix.eval()(layers), layers.mean(dim=0))


def test_the_penalty_is_the_sum_of_squared_weights_and_can_be_trained():
    mix = Mix(3, weights=[1.0, -2.0, 0.5])
    penalty = mix.penalty()
    assert penalty.item() == pytest.approx(5.25)
    penalty.backward()
    torch.testing.assert_close(mix.weights.grad, torch.tensor([2.0, -4.0, 1.0]))


def test_a_wrong_number_of_weights_is_refused():
    with pytest.raises(ValueError, match="2 weights do not fit 3 layers"):
        Mix(3, weights=[1, 2])
    with pytest.raises(ValueError, match="3 weights do not fit 1 layers"):
        Mix(3, weights=[1, 2, 3], top_only=True)
