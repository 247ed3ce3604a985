"""The code for AVX-512, VNNI and bf16 gives the same bits as AVX2. The instructions are emulated."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.model.fast.kernels import dots, dropout, linears, lstm, native, updates, windows
from polyseme.model.fast.kernels.gradients import multiply_transposed
from polyseme.model.fast.kernels.loss import mean_loss
from polyseme.model.fast.kernels.training import LayerWeights, run_layer_in_c
from polyseme.model.fast.quantisation import PRECISIONS, quantise
from polyseme.model.tokens import CharCnn

COMPILER = os.environ.get("CC") or "cc"
pytestmark = [
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates instructions of x86"),
]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """The library with emulated instructions, in place of the usual one."""
    here, library = Path(__file__).parent, tmp_path_factory.mktemp("native") / "emulated.so"
    flags = ["-std=gnu11", "-O2", "-mavx2", "-mfma", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
    source = Path(native.__file__).with_name("native.c")
    subprocess.run(
        [COMPILER, *flags, "-include", str(here / "emulated.h"), str(source), "-o", str(library)], check=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "NAME", str(library))
        patch.delenv("POLYSEME_NATIVE", raising=False)
        native._load.cache_clear()
        assert native.is_available(), native.unavailable_reason()
        yield library
    native._load.cache_clear()


def run_everything(precision: str) -> list[torch.Tensor]:
    """Products of several heights, a layer and searches, with the active instruction set."""
    torch.manual_seed(0)
    products = []
    for rows, n, k in ((1, 70, 33), (5, 64, 300), (40, 17, 8), (7, 130, 129)):
        a, weight = torch.randn(rows, k), quantise(torch.randn(n, k), precision)
        products.append(lstm.multiply(a, lstm.pack_weight(weight)))
    hidden, projection, inputs = (torch.randn(shape) / 4 for shape in ((4 * 37, 12), (12, 37), (4 * 37, 9)))
    packed = lstm.pack_layer(*(quantise(weight, precision) for weight in (hidden, projection, inputs)))
    state = torch.randn(6, 12), torch.randn(6, 37)
    layer = lstm.LstmLayer(packed, torch.randn(4 * 37), (1.0, 2.0), forget=1.0)
    output, after = lstm.run_layer(layer, torch.randn(15, 9), [6, 5, 3, 1], state)
    vectors = torch.randn(300, 75).half().numpy()
    query, lengths = torch.randn(75).numpy(), np.ones(300, np.float32)
    arrays: list[np.ndarray] = [*dots.score_query(vectors, query, 0.5, lengths)]
    queries = dots.PackedQueries(torch.randn(20, 75).numpy(), np.zeros(20, np.float32))
    arrays += queries.find_above(vectors, lengths, np.zeros(20, np.float32))
    norms = dots.TransformedNorms(torch.randn(75).numpy(), torch.randn(75, 75).numpy())
    sums = np.zeros((9, 75), np.float32)
    dots.add_rows(sums, np.arange(300, dtype=np.int32) % 9, vectors)
    arrays += [norms.lengths(vectors), sums]
    return [*products, output, *after, *map(torch.from_numpy, arrays)]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("instruction_set", ["bf16", "vnni", "avx512"])
def test_wider_instructions_give_the_same_bits(emulated, instruction_set, precision):
    if (instruction_set, precision) == ("bf16", "bf16"):
        pytest.skip("rounds its rows to bf16: see the next test")
    assert native.select_instruction_set("avx2")
    expected = run_everything(precision)
    assert native.select_instruction_set(instruction_set)
    assert native.active_instruction_set() == instruction_set
    for result, expected_result in zip(run_everything(precision), expected, strict=True):
        assert torch.equal(result, expected_result)


def test_pairs_of_bf16_give_the_products_of_rounded_rows(emulated):
    torch.manual_seed(0)
    for rows, n, k in ((1, 70, 33), (5, 64, 300), (40, 17, 8), (7, 130, 1029)):
        a, weight = torch.randn(rows, k), lstm.pack_weight(quantise(torch.randn(n, k), "bf16"))
        assert native.select_instruction_set("avx2")
        expected = lstm.multiply(a.bfloat16().float(), weight)
        assert native.select_instruction_set("bf16")
        torch.testing.assert_close(lstm.multiply(a, weight), expected, rtol=0, atol=1e-3)
        start = torch.randn(rows, n)
        torch.testing.assert_close(
            lstm.multiply(a, weight, start.clone()), start + expected, rtol=0, atol=1e-3
        )


def test_a_layer_with_rounded_rows_stays_near_the_exact_layer(emulated):
    assert native.select_instruction_set("avx2")
    expected = run_everything("bf16")
    assert native.select_instruction_set("bf16")
    for result, expected_result in zip(
        run_everything("bf16")[4:7], expected[4:7], strict=True
    ):  # output, state
        torch.testing.assert_close(result, expected_result, rtol=0, atol=0.03)


@pytest.mark.parametrize("instruction_set", ["bf16", "vnni", "avx512", "portable"])
@pytest.mark.parametrize(
    ("groups", "rows", "k"), [(1, 16, 16), (1, 48, 32), (4, 32, 65), (1, 33, 97), (1, 7, 3)]
)
def test_weights_are_packed_alike_in_every_instruction_set(emulated, instruction_set, groups, rows, k):
    torch.manual_seed(0)
    weight = torch.randn(groups * rows, k)
    weight[0, 0], weight[-1, -1], weight[0, -1] = float("nan"), float("inf"), 1e-40
    for values in (weight, weight.t().contiguous().t()):  # values of k adjacent, rows adjacent
        for dtype in (torch.float32, torch.bfloat16):
            assert native.select_instruction_set("avx2")
            expected = lstm.pack_rounded(values, dtype, groups).packed
            assert native.select_instruction_set(instruction_set)
            assert torch.equal(lstm.pack_rounded(values, dtype, groups).packed, expected)


def run_layer_with_gradients(dtype: torch.dtype) -> list[torch.Tensor]:
    """An LSTM layer of two directions, with all gradients."""
    sizes = [5, 5, 3, 1]
    shapes = (4 * 37, 9), (4 * 37,), (4 * 37, 12), (12, 37)
    weights = [[(torch.randn(shape) / 4).requires_grad_() for shape in shapes] for _ in range(2)]
    x = torch.randn(2, sum(sizes), 9, requires_grad=True)
    state = torch.randn(2, 5, 12, requires_grad=True), torch.randn(2, 5, 37, requires_grad=True)
    directions = [LayerWeights(*direction) for direction in weights]
    output, after = run_layer_in_c(x, state, directions, sizes, (1.5, 2.0), dtype)
    total = torch.cat([values.flatten() for values in (output, *after)]).sin().sum()
    gradients = torch.autograd.grad(total, [x, *state, *weights[0], *weights[1]])
    return [output.detach(), *(values.detach() for values in after), *gradients]


def run_encoder() -> list[torch.Tensor]:
    """Filters and a highway at inference, both directions unpacked."""
    torch.manual_seed(0)
    encoder = CharCnn(10, 4, [(1, 16), (2, 32), (3, 80)], activation="relu", highways=1, padding=9)
    elmo = Elmo(random_model(small_config()))
    with torch.no_grad():
        words = encoder(torch.randint(1, 9, (40, 12)))
    return [words, *map(torch.from_numpy, elmo.embed([["a", "b"], ["c"] * 5], layer="all"))]


@pytest.mark.parametrize("instruction_set", ["bf16", "vnni", "avx512", "avx2", "portable"])
def test_words_are_encoded_nearly_alike_in_every_instruction_set(emulated, instruction_set):
    assert native.select_instruction_set("avx2")
    expected = run_encoder()
    assert native.select_instruction_set(instruction_set)
    for result, expected_result in zip(run_encoder(), expected, strict=True):
        torch.testing.assert_close(result, expected_result, rtol=1e-5, atol=1e-5)


def run_training(dtype: torch.dtype) -> list[torch.Tensor]:
    """Linear layers and filters with their gradients, steps of optimisers, dropout."""
    torch.manual_seed(0)
    weights = [torch.randn(70, 33, requires_grad=True) for _ in range(2)]
    biases = [torch.randn(70, requires_grad=True) for _ in range(2)]
    x = torch.randn(60, 33, requires_grad=True)
    outputs = linears.apply_in_c(x, weights, biases, dtype)
    gradients = torch.autograd.grad(torch.cat(outputs).sin().sum(), [x, *weights, *biases])
    vectors, counts = torch.randn(9, 20), torch.arange(50) % 6 + 1
    columns = torch.randint(9, (50, 8))
    strongest = []
    for n, width in ((70, 3), (5, 1), (128, 2)):  # several vectors, less than one, several at once
        weight, values = torch.randn(n, 20, width), torch.empty(50, n)
        first = windows.find_strongest(vectors, columns, counts, weight, dtype, values)
        strongest += [values, *windows.find_gradients(vectors, columns, weight, dtype, values.sin(), first)]
    stepped = [torch.nn.Parameter(torch.randn(shape)) for shape in ((40_001,), (3, 7))]
    for optimizer in (torch.optim.AdamW(stepped, 0.1), torch.optim.Adagrad(stepped, 0.1)):
        for weight in stepped:
            weight.grad = torch.randn(weight.shape)
        assert updates.clip_and_step(optimizer, 1.0) is not None
    dropped = dropout.drop_values(torch.randn(2, 333), 0.3, [1 << 40, 7 << 33])
    layer = run_layer_with_gradients(dtype)
    return [out.detach() for out in outputs] + [
        *gradients,
        *strongest,
        *(weight.detach() for weight in stepped),
        dropped,
        *layer,
    ]


@pytest.mark.parametrize("instruction_set", ["bf16", "vnni", "avx512", "portable"])
def test_wider_instructions_give_the_same_training(emulated, instruction_set):
    assert native.select_instruction_set("avx2")
    expected = run_training(torch.float32)
    assert native.select_instruction_set(instruction_set)
    for result, expected_result in zip(run_training(torch.float32), expected, strict=True):
        if instruction_set == "portable":  # it has no fused multiply-add
            torch.testing.assert_close(result, expected_result, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(result, expected_result)


def test_training_with_pairs_of_bf16_stays_near_the_exact_values(emulated):
    assert native.select_instruction_set("avx2")
    expected = run_training(torch.float32)
    assert native.select_instruction_set("bf16")
    results = run_training(torch.bfloat16)
    assert not torch.equal(results[0], expected[0])
    for result, exact in zip(results[:7], expected[:7], strict=True):
        assert (result - exact).norm() < 0.02 * exact.norm()
    for at in range(7, 16, 3):  # where two windows are nearly the same, the other one may be the strongest
        assert (results[at] - expected[at]).norm() < 0.02 * expected[at].norm()


def run_gradients(dtype: torch.dtype) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A sum over tokens, and a loss with its gradients, with the active instruction set."""
    torch.manual_seed(0)
    sums = multiply_transposed(torch.randn(530, 37), torch.randn(530, 70), dtype)
    outputs, rows, bias = (torch.randn(shape, requires_grad=True) for shape in ((40, 21), (70, 21), (70,)))
    loss = mean_loss(outputs, rows, bias, torch.arange(40), 50, dtype)
    return sums, [loss.detach(), *torch.autograd.grad(loss, (outputs, rows, bias))]


@pytest.mark.parametrize("instruction_set", ["bf16", "vnni", "avx512"])
def test_wider_instructions_give_the_same_gradients(emulated, instruction_set):
    assert native.select_instruction_set("avx2")
    expected_sums, expected = run_gradients(torch.float32)
    assert native.select_instruction_set(instruction_set)
    sums, results = run_gradients(torch.float32)
    assert torch.equal(sums, expected_sums)
    for result, expected_result in zip(results, expected, strict=True):
        torch.testing.assert_close(result, expected_result)


def test_pairs_of_bf16_give_gradients_near_the_exact_ones(emulated):
    assert native.select_instruction_set("avx2")
    expected_sums, expected = run_gradients(torch.float32)
    assert native.select_instruction_set("bf16")
    sums, results = run_gradients(torch.bfloat16)
    for result, exact in zip([sums, *results], [expected_sums, *expected], strict=True):
        assert (result - exact).norm() < 0.02 * exact.norm()
        assert not torch.equal(result, exact)
