"""Filters as sums of parts give the values and gradients of convolutions."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.fast import char_filters
from polyseme.model.fast.char_filters import max_over_windows
from polyseme.model.fast.kernels import native

PADDING = 9


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    """Every instruction set of this machine."""
    before = native.active_instruction_set()
    if not native.select_instruction_set(request.param):
        pytest.skip("not on this machine")
    yield request.param
    native.select_instruction_set(before)


def words(*lengths: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random characters 1 to 8 followed by padding: (N, C), and the lengths."""
    chars = torch.full((len(lengths), positions), PADDING)
    for row, length in zip(chars, lengths, strict=True):
        row[:length] = torch.randint(1, 9, (length,))
    return chars, torch.tensor(lengths, dtype=torch.long)


def convolve(chars: torch.Tensor, embedding: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    x = embedding[chars].transpose(1, 2)
    return torch.cat([torch.conv1d(x, weight).amax(dim=2) for weight in weights], dim=1)


@pytest.mark.parametrize("shape", [((1, 3), (2, 4), (3, 5)), ((6, 2),), ((4, 1), (1, 7))])
@pytest.mark.parametrize("lengths", [(1,), (6, 6), (0, 1, 2, 3, 4, 5, 6), (5, 1, 5, 2, 6, 1, 1, 3)])
def test_values_and_gradients_are_those_of_convolutions(shape, lengths):
    torch.manual_seed(len(lengths))
    chars, sizes = words(*lengths, positions=6)
    embedding = torch.randn(10, 4, dtype=torch.double, requires_grad=True)
    weights = [torch.randn(n, 4, w, dtype=torch.double, requires_grad=True) for w, n in shape]
    values = max_over_windows(chars, sizes, embedding, weights, block_words=3)
    expected = convolve(chars, embedding, weights)
    torch.testing.assert_close(values, expected)
    d_values = torch.randn_like(values)
    gradients = torch.autograd.grad(values, [embedding, *weights], d_values)
    expected_gradients = torch.autograd.grad(expected, [embedding, *weights], d_values)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient)


def test_short_words_are_not_scanned_to_the_end_of_the_row():
    chars, lengths = words(3, 0, positions=50)
    assert [
        width for _, width in char_filters._split_blocks(lengths, chars.shape[1], 7, block_words=256)
    ] == [3 + 7]


def test_the_row_of_sentence_padding_gets_no_gradient():
    embedding = torch.randn(10, 4, requires_grad=True)
    chars = torch.tensor([[0, 0, 0, 0], [1, 2, PADDING, PADDING]])
    max_over_windows(chars, torch.tensor([0, 2]), embedding, [torch.randn(3, 4, 2)]).sum().backward()
    assert embedding.grad is not None
    assert embedding.grad[0].abs().sum() == 0
    assert embedding.grad[1:].abs().sum() > 0


@pytest.mark.skipif(not native.is_available(), reason="needs the C library")
@pytest.mark.parametrize("shape", [((1, 3), (2, 20), (3, 150)), ((6, 2),), ((4, 64), (1, 17))])
@pytest.mark.parametrize("lengths", [(1,), (0, 1, 2, 3, 4, 5, 6), (5, 1, 5, 2, 6, 1, 1, 3)])
def test_values_and_gradients_in_c_are_those_of_convolutions(instruction_set, shape, lengths):
    torch.manual_seed(len(lengths))
    chars, sizes = words(*lengths, positions=6)
    embedding = torch.randn(10, 4, requires_grad=True)
    weights = [torch.randn(n, 4, w, requires_grad=True) for w, n in shape]
    values = max_over_windows(chars, sizes, embedding, weights)
    assert type(values.grad_fn).__name__ == "_NativeWindowsBackward"
    expected = convolve(chars, embedding, weights)
    torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-5)
    d_values = torch.randn_like(values)
    gradients = torch.autograd.grad(values, [embedding, *weights], d_values)
    expected_gradients = torch.autograd.grad(expected, [embedding, *weights], d_values)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not native.is_available(), reason="needs the C library")
def test_results_have_the_same_bits_for_any_number_of_cores():
    torch.manual_seed(0)
    chars, sizes = words(*(n % 7 for n in range(60)), positions=9)
    embedding = torch.randn(10, 4, requires_grad=True)
    weights = [torch.randn(n, 4, w, requires_grad=True) for w, n in ((1, 20), (3, 64))]
    results, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            values = max_over_windows(chars, sizes, embedding, weights)
            results.append([values, *torch.autograd.grad(values.square().sum(), [embedding, *weights])])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.skipif(not native.is_available(), reason="needs the C library")
def test_nan_stays_nan_in_c():
    chars, sizes = words(3, 2, positions=6)
    values = max_over_windows(chars, sizes, torch.full((10, 4), torch.nan), [torch.randn(20, 4, 2)])
    assert values.isnan().all()
