"""Steps of an optimiser in C equal those of torch, for every instruction set and number of cores."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from polyseme.model.fast.kernels import native
from polyseme.model.fast.kernels.updates import clip_and_step

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")
SHAPES = [(70_001,), (3, 17), (), (40, 64), (1,)]
OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, 0.01, weight_decay=0.1, fused=True),
    "adagrad": lambda groups: torch.optim.Adagrad(
        groups, 0.2, weight_decay=0.1, lr_decay=0.01, initial_accumulator_value=1.0, fused=True
    ),
}


def make_run(name: str) -> tuple[list[nn.Parameter], torch.optim.Optimizer]:
    """Weights in two groups with different rates, and their optimiser."""
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    return weights, OPTIMIZERS[name]([{"params": weights[:2]}, {"params": weights[2:], "lr": 0.005}])


def draw_gradients(weights: list[nn.Parameter], seed: int) -> None:
    """Random gradients; one weight has none in every second step."""
    torch.manual_seed(seed)
    for weight in weights:
        weight.grad = torch.randn(weight.shape)
    if seed % 2:
        weights[1].grad = None


def collect(weights: list[nn.Parameter], optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All weights and all values that the optimiser remembers."""
    states = [value for weight in weights for _, value in sorted(optimizer.state[weight].items())]
    return [value.detach().clone() for value in (*weights, *states)]


def run_in_c(name: str) -> tuple[list[float], list[torch.Tensor]]:
    """Some steps in C: the norms, and the weights and states at the end."""
    weights, optimizer = make_run(name)
    norms = []
    for seed in range(5):
        draw_gradients(weights, seed)
        norm = clip_and_step(optimizer, 100.0)
        assert norm is not None
        norms.append(norm)
    return norms, collect(weights, optimizer)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_equal_those_of_torch(instruction_set, name):
    norms, results = run_in_c(name)
    weights, optimizer = make_run(name)
    for seed, norm in enumerate(norms):
        draw_gradients(weights, seed)
        assert math.isclose(float(nn.utils.clip_grad_norm_(weights, 100.0)), norm, rel_tol=1e-5)
        optimizer.step()
    for result, expected in zip(results, collect(weights, optimizer), strict=True):
        torch.testing.assert_close(result, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_have_the_same_bits_for_any_cores_and_instruction_set(name):
    before, best = torch.get_num_threads(), native.active_instruction_set()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(run_in_c(name))
        for instruction_set in native.INSTRUCTION_SETS:
            if native.select_instruction_set(instruction_set):
                results.append(run_in_c(name))
    finally:
        torch.set_num_threads(before)
        native.select_instruction_set(best)
    for norms, values in results[1:]:
        assert norms == results[0][0]
        assert all(torch.equal(a, b) for a, b in zip(values, results[0][1], strict=True))


def test_nothing_changes_if_a_gradient_is_not_finite():
    weights, optimizer = make_run("adamw")
    draw_gradients(weights, 0)
    weights[0].grad[5] = float("nan")  # type: ignore[index]
    values = [weight.detach().clone() for weight in weights]
    norm = clip_and_step(optimizer, 1.0)
    assert norm is not None
    assert not math.isfinite(norm)
    assert all(torch.equal(weight, value) for weight, value in zip(weights, values, strict=True))
    assert not optimizer.state


def test_other_optimisers_and_sparse_gradients_are_left_to_torch():
    weights, _ = make_run("adamw")
    draw_gradients(weights, 0)
    assert clip_and_step(torch.optim.SGD(weights, 0.1), 1.0) is None
    assert clip_and_step(torch.optim.AdamW(weights, 0.1, amsgrad=True), 1.0) is None
    weights[3].grad = weights[3].grad.to_sparse()  # type: ignore[union-attr]
    assert clip_and_step(torch.optim.AdamW(weights, 0.1), 1.0) is None
    assert clip_and_step(torch.optim.AdamW(make_run("adamw")[0], 0.1), 1.0) is None  # no gradient at all
