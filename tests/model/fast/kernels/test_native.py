"""The C library loads or says why not, and its functions are correct in every instruction set."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.quantisation import PRECISIONS, QuantisedMatrix, quantise

needs_library = pytest.mark.skipif(
    not native.is_available(), reason=f"C library: {native.unavailable_reason()}"
)


def apply_activation(function: int, values: np.ndarray) -> np.ndarray:
    x = torch.tensor(values, dtype=torch.float32)
    y = torch.empty_like(x)
    native.load_library().polyseme_map(function, x.data_ptr(), y.data_ptr(), len(x))
    return y.numpy()


@needs_library
def test_the_instruction_set_in_use_is_known(instruction_set):
    assert native.active_instruction_set() == instruction_set
    assert not native.select_instruction_set("abacus")
    assert native.active_instruction_set() == instruction_set


@needs_library
@pytest.mark.parametrize("function", [0, 1], ids=["sigmoid", "tanh"])
def test_activations_are_accurate_to_the_last_bits(instruction_set, function):
    x = np.concatenate(
        [np.linspace(-100, 100, 200_001), np.linspace(-2, 2, 100_001), np.logspace(-40, 1, 5_003)]
    )
    x = x.astype(np.float32)
    expected = np.tanh(x.astype(float)) if function else 1 / (1 + np.exp(-x.astype(float)))
    values = apply_activation(function, x)
    assert np.abs(values - expected).max() < 2e-7
    normal = expected > 1e-37
    assert (np.abs(values - expected)[normal] / expected[normal]).max() < 5e-7


@needs_library
def test_activations_of_extreme_values(instruction_set):
    extremes = np.array([np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0, 1e-45, -1e-45, np.nan], dtype=np.float32)
    sigmoid, tanh = apply_activation(0, extremes), apply_activation(1, extremes)
    np.testing.assert_allclose(sigmoid[:8], [1, 0, 1, 0, 0.5, 0.5, 0.5, 0.5], atol=1e-37)
    np.testing.assert_allclose(tanh[:8], [1, -1, 1, -1, 0, 0, 0, 0], atol=2e-45)
    assert np.signbit(tanh[:8]).tolist() == [False, True] * 4
    assert np.isnan([sigmoid[8], tanh[8]]).all()


@needs_library
@pytest.mark.parametrize("n", [1, 15, 16, 33, 130])
@pytest.mark.parametrize("k", [1, 7, 256, 600])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_packed_weights_are_exact_up_to_rounding(instruction_set, n, k, transposed):
    torch.manual_seed(0)
    weight = torch.randn(k, n).t() if transposed else torch.randn(n, k)
    packed = lstm.pack_weight(QuantisedMatrix(weight))
    for rows in (1, 2, 3, 4, 5, 6, 7, 13, 25, 200):
        a, start = torch.randn(rows, k), torch.randn(rows, n)
        out = lstm.multiply(a, packed, start.clone())
        expected = start.double() + a.double() @ weight.double().t()
        bound = 3e-7 * (start.abs() + a.abs() @ weight.abs().t())  # of the rounding errors
        assert ((out - expected).abs() <= bound).all()


@needs_library
def test_a_row_gets_the_same_bits_among_any_other_rows(instruction_set):
    a = torch.randn(50, 300)
    for precision in PRECISIONS:
        weight = lstm.pack_weight(quantise(torch.randn(70, 300), precision))
        everything = lstm.multiply(a, weight)
        for count in range(1, 14):
            assert torch.equal(lstm.multiply(a[:count], weight), everything[:count])


def run_python(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    ).stdout.strip()


def test_the_library_can_be_turned_off():
    code = (
        "from polyseme.model.fast.kernels import native; "
        "print(native.is_available(), native.unavailable_reason())"
    )
    assert run_python(code, POLYSEME_NATIVE="0") == "False POLYSEME_NATIVE=0 turns it off"


def test_a_missing_or_damaged_library_is_not_an_error(tmp_path, monkeypatch):
    path = tmp_path / "damaged.so"
    monkeypatch.delenv("POLYSEME_NATIVE", raising=False)
    for content, reason in ((None, "not built"), (b"not a library", "does not load")):
        if content:
            path.write_bytes(content)
        monkeypatch.setattr(native, "NAME", str(path))
        native._load.cache_clear()
        assert not native.is_available()
        assert reason in str(native.unavailable_reason())
        with pytest.raises(RuntimeError, match=reason):
            native.load_library()
    native._load.cache_clear()
