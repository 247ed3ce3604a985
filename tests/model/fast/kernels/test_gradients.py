"""Gradients of weights, and of a softmax with its loss, computed in C, are those of autograd."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.kernels.gradients import multiply_transposed
from polyseme.model.fast.kernels.loss import mean_loss
from polyseme.model.softmax import Softmax, draw_sample, index_labels

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    before = native.active_instruction_set()
    if not native.select_instruction_set(request.param):
        pytest.skip("not supported by this CPU")
    yield request.param
    native.select_instruction_set(before)


@pytest.mark.parametrize(("tokens", "m", "n"), [(1, 1, 1), (7, 33, 16), (300, 70, 130), (1030, 64, 48)])
def test_sums_over_tokens_are_exact_to_fp32(instruction_set, tokens, m, n):
    torch.manual_seed(0)
    a, b = torch.randn(tokens, m + 3)[:, :m], torch.randn(tokens, n)
    exact = a.double().t() @ b.double()
    torch.testing.assert_close(
        multiply_transposed(a, b, torch.float32).double(), exact, rtol=0, atol=1e-6 * tokens**0.5 * 8
    )


@pytest.mark.parametrize(("tokens", "m", "n"), [(1, 1, 1), (7, 33, 16), (1030, 64, 48)])
def test_sums_over_tokens_of_bf16_are_those_of_rounded_factors(tokens, m, n):
    if not lstm.multiplies_bf16():
        pytest.skip("this machine has no bf16 products")
    torch.manual_seed(0)
    a, b = torch.randn(tokens, m), torch.randn(tokens, n)
    expected = a.bfloat16().double().t() @ b.bfloat16().double()
    result = multiply_transposed(a, b, torch.bfloat16).double()
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-5 * tokens**0.5 * 8)


def test_sums_over_no_tokens_are_zero():
    assert not multiply_transposed(torch.empty(0, 5), torch.empty(0, 3), torch.float32).any()


def test_unequal_numbers_of_tokens_are_refused():
    with pytest.raises(ValueError, match="as many in both"):
        multiply_transposed(torch.zeros(4, 5), torch.zeros(3, 5), torch.float32)


@pytest.mark.parametrize(("n", "k"), [(70, 33), (16, 64), (5, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_weights_packed_with_rounding_are_packed_bf16(n, k, transposed):
    weight = torch.randn(k, n).t() if transposed else torch.randn(n, k)
    rounded = lstm.pack_rounded(weight, torch.bfloat16)
    expected = lstm.pack_weight(lstm.QuantisedMatrix(weight.bfloat16()))
    assert torch.equal(rounded.packed, expected.packed)
    assert (rounded.kind, rounded.n, rounded.k) == (expected.kind, expected.n, expected.k)


def compute_gradients(loss, *tensors):
    """The loss and the gradients of `tensors`."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    value = loss(*leaves)
    (3 * value).backward()
    return [value, *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize(
    ("targets", "size", "words", "samples"), [(1, 3, 2, 1), (37, 16, 90, 50), (450, 20, 700, 700)]
)
def test_loss_and_gradients_of_a_softmax_are_those_of_autograd(
    instruction_set, targets, size, words, samples
):
    torch.manual_seed(0)
    outputs, rows, bias = 2 * torch.randn(targets, size), torch.randn(words, size), 3 * torch.randn(words)
    labels = torch.randint(words, (targets,))

    def reference(outputs, rows, bias):
        scores = outputs @ rows.t() + bias
        label = scores.gather(1, labels[:, None])
        left_out = torch.nn.functional.one_hot(labels, words).bool()
        others = scores.masked_fill(left_out, float("-inf"))[:, :samples]
        return (torch.logsumexp(torch.cat([label, others], dim=1), dim=1) - label[:, 0]).mean()

    def in_c(outputs, rows, bias):
        return mean_loss(outputs, rows, bias, labels, samples, torch.float32)

    expected = compute_gradients(reference, outputs.double(), rows.double(), bias.double())
    for value, exact in zip(compute_gradients(in_c, outputs, rows, bias), expected, strict=True):
        torch.testing.assert_close(value.double(), exact, rtol=2e-5, atol=2e-6)


def test_loss_and_gradients_have_the_same_bits_for_one_and_two_threads():
    torch.manual_seed(0)
    outputs, rows, bias, labels = (
        torch.randn(99, 8), torch.randn(60, 8), torch.randn(60), torch.randint(60, (99,))
    )  # fmt: skip
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(
                compute_gradients(
                    lambda x, w, b: mean_loss(x, w, b, labels, 50, torch.float32), outputs, rows, bias
                )
            )
    finally:
        torch.set_num_threads(threads)
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def test_bf16_loss_and_gradients_stay_near_fp32():
    if not lstm.multiplies_bf16():
        pytest.skip("this machine has no bf16 products")
    torch.manual_seed(0)
    outputs, rows, bias, labels = (
        torch.randn(300, 64), torch.randn(500, 64) / 8, torch.randn(500), torch.randint(500, (300,))
    )  # fmt: skip
    exact, rounded = (
        compute_gradients(lambda x, w, b, d=dtype: mean_loss(x, w, b, labels, 400, d), outputs, rows, bias)
        for dtype in (torch.float32, torch.bfloat16)
    )
    for value, expected in zip(rounded, exact, strict=True):
        assert (value - expected).norm() < 0.01 * expected.norm()


def test_labels_beyond_the_words_are_refused():
    with pytest.raises(ValueError, match="must be among the 4 words"):
        mean_loss(torch.zeros(1, 2), torch.zeros(4, 2), torch.zeros(4), torch.tensor([4]), 2, torch.float32)


def test_sampled_words_come_first_and_targets_after_them():
    words, labels = index_labels(torch.tensor([7, 2, 5]), torch.tensor([9, 2, 0, 9, 7]), 10)
    assert words[:3].tolist() == [7, 2, 5]
    assert words[labels].tolist() == [9, 2, 0, 9, 7]
    assert len(words.unique()) == len(words) == 5


def test_the_sampled_loss_in_c_is_that_of_torch(monkeypatch):
    torch.manual_seed(0)
    softmax = Softmax(300, 16)
    for parameter in softmax.parameters():
        torch.nn.init.normal_(parameter)
    sample = draw_sample(300, 60, torch.Generator().manual_seed(1))
    outputs, targets = torch.randn(80, 16), torch.randint(300, (80,))

    def run():
        softmax.zero_grad()
        leaf = outputs.clone().requires_grad_()
        loss = softmax.sampled_loss(leaf, targets, sample)
        loss.backward()
        return [loss, leaf.grad, *(parameter.grad.clone() for parameter in softmax.parameters())]

    in_c = run()
    monkeypatch.setattr("polyseme.model.softmax.softmax_in_c.is_supported", lambda *_: False)
    for value, expected in zip(in_c, run(), strict=True):
        torch.testing.assert_close(value, expected, rtol=2e-5, atol=1e-6)
