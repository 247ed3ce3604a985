"""Quantised weights: the rounding error, and that quantising again changes nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.model.fast.quantisation import quantise
from polyseme.model.recurrent import RecurrentCell


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1000), st.floats(-28, 37), st.sampled_from(["bf16", "int8"]))
def test_quantising_again_gives_the_same_bits(seed, power, precision):
    torch.manual_seed(seed)
    once = quantise(torch.randn(50, 7) * 10**power, precision)
    again = quantise(once.dequantise(), precision)
    assert torch.equal(once.values, again.values)
    if once.scales is not None:
        assert again.scales is not None
        assert torch.equal(once.scales, again.scales)


def test_int8_loses_at_most_half_a_step_of_its_row():
    weight = torch.randn(30, 100) * torch.logspace(-10, 10, 30)[:, None]
    quantised = quantise(weight, "int8")
    assert quantised.values.dtype == torch.int8
    assert (quantised.values.abs().amax(dim=1) == 127).all()
    assert ((quantised.dequantise() - weight).abs() <= 0.5001 * quantised.scales[:, None]).all()


def test_bf16_loses_at_most_one_part_in_256():
    weight = torch.cat([torch.randn(30, 100), torch.full((1, 100), 3.4e38)])
    error = (quantise(weight, "bf16").dequantise() - weight).abs()
    assert (error <= weight.abs() / 256).all()


def test_rows_of_zeros_stay_zeros_and_the_largest_numbers_finite():
    weight = torch.tensor([[0.0, -0.0], [1e-40, 0.0], [3.4028235e38, 1e38]])
    quantised = quantise(weight, "int8")
    assert (quantised.dequantise()[:2] == 0).all()
    assert quantised.dequantise().isfinite().all()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite_cannot_be_quantised(value):
    weight = torch.ones(3, 4)
    weight[1, 2] = value
    for precision in ("bf16", "int8"):
        with pytest.raises(ValueError, match="not finite"):
            quantise(weight, precision)
    assert torch.equal(quantise(weight, "fp32").values.isfinite(), weight.isfinite())


def test_a_cell_with_quantised_weights_dequantises_them_for_gradients():
    torch.manual_seed(0)
    cell, rounded = RecurrentCell("lstm", 5, 6, 4, project=True), RecurrentCell("lstm", 5, 6, 4, project=True)
    rounded.load_state_dict(cell.state_dict())
    rounded.round_weights("int8")
    names = ("input_weight", "hidden_weight", "projection")
    cell.store_quantised({name: quantise(getattr(cell, name), "int8") for name in names})
    assert all(getattr(cell, name).is_meta for name in names)
    x = torch.randn(4, 5)
    with torch.inference_mode():
        cell.pack("int8")
        cell(x, [2, 2], cell.zero_state(2))
    output, _ = cell(x, [2, 2], cell.zero_state(2))
    output.sum().backward()
    assert torch.equal(output, rounded(x, [2, 2], rounded.zero_state(2))[0])
    assert all(getattr(cell, name).grad is not None for name in names)
