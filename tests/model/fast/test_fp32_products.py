"""fp32 products by oneDNN: only if they are exact, and only inside the `with` block."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.fast import fp32_products
from polyseme.model.fast.fp32_products import is_onednn_better, use_quickest_fp32_products

MATMUL = getattr(torch.backends.mkldnn, "matmul")  # noqa: B009  # unknown to type checkers


def test_products_stay_exact_and_the_setting_is_restored():
    a, b = torch.randn(300, 700), torch.randn(700, 130)
    before = MATMUL.fp32_precision
    with use_quickest_fp32_products():
        product = a @ b
        assert MATMUL.fp32_precision == ("bf16" if is_onednn_better() else before)
    assert MATMUL.fp32_precision == before
    torch.testing.assert_close(product.double(), a.double() @ b.double(), rtol=0, atol=1e-3)


def test_the_setting_is_restored_after_an_error():
    before = MATMUL.fp32_precision
    with pytest.raises(ZeroDivisionError), use_quickest_fp32_products():
        1 / 0  # noqa: B018
    assert MATMUL.fp32_precision == before


def test_rounded_products_are_not_used():
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    exact = a.double() @ b.double()
    rounded = (a.bfloat16() @ b.bfloat16()).float()
    assert fp32_products._measure_error(rounded, exact) > 100 * fp32_products.MAX_ERROR
    assert fp32_products._measure_error(a @ b, exact) < fp32_products.MAX_ERROR
