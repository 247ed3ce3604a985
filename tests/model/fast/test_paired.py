"""Both directions in one tensor give the values and gradients of the two stacks."""

from __future__ import annotations

import pytest
import torch

from polyseme.config import ModelSettings
from polyseme.formats.models.pretrained import build_network
from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.paired import PairDropout, apply_dropout, run_stacks_paired, zero_pair_state

SIZES = [5, 5, 4, 2, 1]  # packed sentences of 5, 4, 3, 3 and 2 tokens


def make_network(kind="lstm", outputs=4, clip=None, residual=True):
    recurrent = {
        "cell": kind,
        "layers": 3,
        "cells": 6,
        "outputs": outputs,
        "cell_clip": clip,
        "output_clip": clip,
        "residual": residual,
    }
    config = ModelSettings.model_validate({"words": {"dim": outputs}, "recurrent": recurrent})
    torch.manual_seed(3)
    model = build_network(config, n_chars=1, n_words=10, padding=0).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def run_separately(model, x, sizes, state):
    """The stacks one after the other, by autograd."""
    tops, last = [], []
    for direction, stack in enumerate((model.forward_stack, model.backward_stack)):
        layers, after = stack(x[direction], sizes, [(h[direction], c[direction]) for h, c in state])
        tops.append(layers[-1])
        last.append(after)
    merged = [(torch.stack([f[0], b[0]]), torch.stack([f[1], b[1]])) for f, b in zip(*last, strict=True)]
    return torch.stack(tops), merged


def compute_gradients(model, run, x, sizes, state):
    """Outputs, last states and all gradients of a loss that uses every one of them."""
    model.zero_grad()
    x = x.clone().requires_grad_()
    top, last = run(model, x, sizes, state)
    loss = (top * torch.linspace(-1, 1, top.numel()).view_as(top)).sum()
    loss = loss + sum((h.sin() * 0.3).sum() + (c.cos() * 0.2).sum() for h, c in last)
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if "stack" in name}
    return [top, *(part for pair in last for part in pair), x.grad], gradients


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("outputs", [4, 6])
@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("residual", [True, False])
def test_values_and_gradients_are_those_of_the_two_stacks(kind, outputs, clip, residual):
    model = make_network(kind, outputs, clip, residual)
    x = torch.randn(2, sum(SIZES), outputs, dtype=torch.double)
    state = [
        (0.5 * torch.randn_like(h).clamp(-0.3, 0.3), torch.randn_like(c).clamp(-0.15, 0.15))
        for h, c in zero_pair_state(model, SIZES[0])
    ]

    def run_paired(model, x, sizes, state):
        return run_stacks_paired(model, x, sizes, state, PairDropout())

    values, gradients = compute_gradients(model, run_paired, x, SIZES, state)
    expected_values, expected_gradients = compute_gradients(model, run_separately, x, SIZES, state)
    for value, expected in zip(values, expected_values, strict=True):
        torch.testing.assert_close(value, expected)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], msg=name)


def test_published_dropout_drops_single_values_and_preserves_the_mean():
    x = torch.ones(2, 4000, 5)
    dropped = apply_dropout(x, [4000], PairDropout(0.25))
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert dropped.mean() == pytest.approx(1.0, abs=0.03)


def test_gradients_are_dropped_where_values_were_for_any_number_of_cores():
    before, results = torch.get_num_threads(), []
    x = torch.rand(2, 300, 20, requires_grad=True)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(3)
            dropped = apply_dropout(x, [300], PairDropout(0.25))
            (gradient,) = torch.autograd.grad(dropped.sum(), x)
            assert torch.equal(gradient * x, dropped)
            results.append(dropped)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
    assert not torch.equal(results[0][0] == 0, results[0][1] == 0)  # each direction has its own bits


@pytest.mark.parametrize("sizes", [[3, 3, 3], [3, 2, 1]])
def test_variational_dropout_drops_the_same_values_at_every_step_of_a_sentence(sizes):
    dropped = apply_dropout(torch.ones(2, sum(sizes), 50), sizes, PairDropout(0.5, variational=True))
    steps = dropped.split(sizes, dim=1)
    for step in steps[1:]:
        torch.testing.assert_close(step, steps[0][:, : step.shape[1]])
    assert not torch.equal(steps[0][:, 0], steps[0][:, 1])


def test_weight_drop_changes_the_outputs_at_random():
    model = make_network()
    x = torch.randn(2, sum(SIZES), 4, dtype=torch.double)
    first = run_stacks_paired(model, x, SIZES, zero_pair_state(model, 5), PairDropout(weights=0.5))[0]
    second = run_stacks_paired(model, x, SIZES, zero_pair_state(model, 5), PairDropout(weights=0.5))[0]
    without = run_stacks_paired(model, x, SIZES, zero_pair_state(model, 5), PairDropout())[0]
    assert not torch.allclose(first, second)
    assert not torch.allclose(first, without)


@pytest.mark.parametrize("outputs", [4, 6])
def test_bf16_products_in_c_stay_near_fp32_values_and_gradients(outputs):
    if not lstm.multiplies_bf16():
        pytest.skip("this machine has no bf16 products")
    torch.manual_seed(5)
    model = make_network(outputs=outputs).float()
    x = torch.randn(2, sum(SIZES), outputs)
    state = [(h + 0.1, c - 0.2) for h, c in zero_pair_state(model, SIZES[0])]

    def run(model, x, sizes, state):
        return run_stacks_paired(model, x, sizes, state, PairDropout())

    exact, exact_gradients = compute_gradients(model, run, x, SIZES, state)
    with torch.autocast("cpu", torch.bfloat16):
        rounded, rounded_gradients = compute_gradients(model, run, x, SIZES, state)
    assert any(not torch.equal(value, expected) for value, expected in zip(rounded, exact, strict=True))
    for value, expected in zip(rounded, exact, strict=True):
        assert (value - expected).norm() < 0.02 * expected.norm()
    for name, gradient in rounded_gradients.items():
        assert (gradient - exact_gradients[name]).norm() < 0.03 * exact_gradients[name].norm(), name
