"""Linear layers in C, in fp32 and under autocast to bf16, have the values and gradients of torch."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

from polyseme.model.fast.kernels import linears, lstm, native
from polyseme.model.fast.parallel import keep_torch_on_one_core
from polyseme.model.tokens import Highway, Linear, apply_linears

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")
needs_bf16 = pytest.mark.skipif(not lstm.multiplies_bf16(), reason="needs a CPU with bf16 products")

Apply = Callable[[torch.Tensor], torch.Tensor]


def find_gradients(module: torch.nn.Module, x: torch.Tensor, apply: Apply) -> list[torch.Tensor]:
    """The output and all gradients of `apply(x)` for a weighted sum of its values."""
    x = x.clone().requires_grad_()
    out = apply(x)
    weights = torch.linspace(-1, 1, out.numel()).view_as(out)
    return [out, *torch.autograd.grad((out * weights).sum(), [x, *module.parameters()])]


def with_autocast(apply: Apply) -> Apply:
    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return apply(x)

    return run


def assert_alike(results: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    """Values differ by the rounding of factors to bf16 only."""
    for result, other in zip(results, expected, strict=True):
        assert result.dtype == torch.float32
        assert (result - other).norm() < 6e-3 * other.norm()


@needs_bf16
@pytest.mark.parametrize("size", [16, 80, 256])
def test_a_highway_has_the_values_and_gradients_of_torch(size):
    torch.manual_seed(0)
    highway, x = Highway(size), torch.randn(100, size)
    torch.nn.init.constant_(highway.transform.bias, 5.0)  # far from the edge of relu, where rounding decides
    assert_alike(find_gradients(highway, x, with_autocast(highway)), find_gradients(highway, x, highway))


@needs_bf16
@pytest.mark.parametrize("outputs", [5, 127, 300])
def test_a_single_layer_has_the_values_and_gradients_of_torch(outputs):
    torch.manual_seed(0)
    layer, x = Linear(70, outputs), torch.randn(64, 70)
    results = find_gradients(layer, x, with_autocast(lambda x: apply_linears([layer], x)[0]))
    assert_alike(results, find_gradients(layer, x, layer))


@needs_bf16
def test_only_the_factors_of_products_are_rounded():
    torch.manual_seed(0)
    layer, x = Linear(96, 64), torch.randn(50, 96)
    with torch.autocast("cpu", torch.bfloat16):
        out = apply_linears([layer], x)[0]
    exact = x.bfloat16().double() @ layer.weight.bfloat16().double().t() + layer.bias.double()
    torch.testing.assert_close(out.double(), exact, rtol=0, atol=1e-5)


@needs_bf16
def test_results_have_the_same_bits_for_any_number_of_cores():
    torch.manual_seed(0)
    highway, x = Highway(80), torch.randn(60, 80)
    results, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(find_gradients(highway, x, with_autocast(highway)))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@needs_bf16
def test_frozen_weights_get_no_gradient_and_their_input_does():
    layer, x = Linear(40, 200).requires_grad_(False), torch.randn(64, 40, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        apply_linears([layer], x)[0].sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, layer.weight.sum(dim=0).expand(64, -1), rtol=1e-2, atol=1e-2)
    assert layer.weight.grad is None


@needs_bf16
def test_fp32_few_rows_and_inference_are_left_to_other_code():
    layer = Linear(40, 200)
    assert linears.find_dtype(torch.randn(100, 40), layer.weight) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert linears.find_dtype(torch.randn(100, 40), layer.weight) == torch.bfloat16
        assert linears.find_dtype(torch.randn(linears.MIN_ROWS - 1, 40), layer.weight) is None
        with torch.no_grad():
            assert linears.find_dtype(torch.randn(100, 40), layer.weight) is None
    with torch.autocast("cpu", torch.float16):
        assert linears.find_dtype(torch.randn(100, 40), layer.weight) is None


@pytest.mark.parametrize("size", [16, 80, 150, 520])  # the last has too large weights for C
def test_fp32_layers_of_a_training_step_have_the_values_and_gradients_of_torch(size):
    torch.manual_seed(0)
    highway, x, before = Highway(size), torch.randn(100, size), torch.get_num_threads()
    exact = copy.deepcopy(highway).double()
    expected, results = find_gradients(exact, x.double(), exact), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with keep_torch_on_one_core():
                assert linears.find_dtype(x, highway.carry.weight) == torch.float32
                results.append(find_gradients(highway, x, highway))
            assert linears.find_dtype(x, highway.carry.weight) is None
    finally:
        torch.set_num_threads(before)
    for one, two, other in zip(*results, expected, strict=True):
        assert torch.equal(one, two)  # the same bits for any number of cores
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=2e-4)
