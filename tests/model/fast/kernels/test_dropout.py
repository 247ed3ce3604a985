"""Dropout without masks: C and torch drop the same values, and the gradient is dropped with them."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.fast.kernels import dropout, native

SEEDS = [5 << 40 | 77, 1_234_567_891_011]


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    """Each instruction set of this machine in turn; the best one again afterwards."""
    if not native.is_available():
        pytest.skip("needs the C library")
    before = native.active_instruction_set()
    if not native.select_instruction_set(request.param):
        pytest.skip("this CPU has other instructions")
    yield request.param
    native.select_instruction_set(before)


def test_c_drops_the_values_that_torch_drops(instruction_set):
    x = torch.randn(2, 300, 77)
    dropped = dropout.drop_values(x, 0.25, SEEDS)
    exact = dropout.drop_values(x.double(), 0.25, SEEDS)  # not fp32: torch
    assert torch.equal(dropped != 0, exact != 0)
    torch.testing.assert_close(dropped, exact.float())


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_the_share_of_dropped_values_is_as_asked_and_the_mean_stays(share):
    dropped = dropout.drop_values(torch.ones(1, 200_000), share, SEEDS[:1])
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=0.005)
    assert dropped.max().item() == pytest.approx(1 / (1 - share))


def test_neighbours_and_seeds_are_dropped_independently():
    kept = (dropout.drop_values(torch.ones(3, 200_000), 0.5, [*SEEDS, SEEDS[0] + 1]) != 0).double() - 0.5
    for step in (1, 2, 16, 512):
        assert abs((kept[:, step:] * kept[:, :-step]).mean().item()) < 0.01
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert abs((kept[first] * kept[second]).mean().item()) < 0.01


def test_gradients_of_transposed_values_are_dropped_where_values_were():
    x = torch.rand(20, 300, 2).transpose(0, 2).requires_grad_()
    dropped = dropout.drop_values(x, 0.25, SEEDS)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    torch.testing.assert_close(gradient * x, dropped)
