"""Let torch multiply fp32 matrices with oneDNN where that is as exact as MKL, and faster.

    training.loop  ->  model.fast.fp32_products  ->  torch

torch hands fp32 products to MKL, whose AVX2 kernels use half of an AMD core with AVX-512. The switch to
oneDNN is the precision a product may be rounded to: "bf16". Processors without bf16 tiles (AMX) still compute
in fp32 then. This is measured once: the switch is used only if products stay exact and get faster.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor

MAX_ERROR = 1e-5  # of a sum of 512 products, relative to its largest terms; bf16 would be off by 1e-2
MIN_SPEEDUP = 1.2  # below that MKL stays: a choice that flips would change the last bits of a resumed run
ROUNDS = 5


def use_quickest_fp32_products() -> AbstractContextManager[None]:
    """Multiply fp32 matrices with oneDNN inside the block, if `is_onednn_better` is true."""
    return _allow_rounding_to("bf16") if is_onednn_better() else nullcontext()


@cache
def is_onednn_better() -> bool:
    """Whether oneDNN multiplies fp32 matrices exactly, and faster than torch's default. Measured once."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not torch.backends.mkldnn.is_available():
        return False
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randn(512, 512, generator=random, dtype=torch.float32, device="cpu") for _ in range(2))
    exact = a.double() @ b.double()
    seconds = {"none": float("inf"), "bf16": float("inf")}
    for _ in range(ROUNDS):
        for precision in seconds:
            with _allow_rounding_to(precision):
                seconds[precision] = min(seconds[precision], _time_products(a, b))
                if (
                    _measure_error(a @ b, exact) > MAX_ERROR
                    or _measure_error((b.T @ a.T).T, exact) > MAX_ERROR
                ):
                    return False
    return seconds["none"] > MIN_SPEEDUP * seconds["bf16"]


@contextmanager
def _allow_rounding_to(precision: str) -> Iterator[None]:
    """Set what torch may round the factors of an fp32 product to: "none", or "bf16", which means oneDNN."""
    settings: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # an attribute of its class
    before = settings.fp32_precision
    settings.fp32_precision = precision
    try:
        yield
    finally:
        settings.fp32_precision = before


def _measure_error(product: Tensor, exact: Tensor) -> float:
    return float((product - exact).abs().max() / exact.abs().max())


def _time_products(a: Tensor, b: Tensor) -> float:
    """Processor seconds of a product: other programs on the machine change them little."""
    started = time.process_time()
    for _ in range(4):
        torch.mm(a, b)
    return time.process_time() - started
