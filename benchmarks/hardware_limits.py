"""Peak speed of this machine (matrix products, memory bandwidth) and the resulting limits for ELMo's LSTMs.

Products are 512 rows by weights packed by oneDNN (unpacked if it refuses, e.g. bf16 without hardware
support), the best of many runs; for int8 the faster of oneDNN's and our kernel. Bandwidth is measured by
reading an array larger than the caches, and one that fits the last-level cache.

The limit of a model size is the speed of its LSTMs alone (a roofline): a batch is bound by products, a single
sentence by reading the recurrent weights once per token. The layers run one after the other, each over the
whole sentence, so that the weights of one layer, in both directions, are read again and again: if they fit
the last-level cache, its speed is the limit, although the weights of all layers may not fit.

    python benchmarks/hardware_limits.py [--threads N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SIZES = {"small": (1024, 128), "original": (4096, 512)}  # memory cells and outputs
LAYERS = 2
HIGHWAYS = {"small": 1, "original": 2}
FILTERS = 2048  # width of the highways
WEIGHT_BYTES = {"fp32": 4, "bf16": 2, "int8": 1}
REPEATS = 30
CACHE_BYTES = 1 << 25  # of the last-level cache where the system does not tell
CACHE_SIZE_FILE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")  # Linux: "32768K"


def main() -> None:
    """Parse the command line, measure, print two tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=0, help="threads of torch (default: all cores)")
    arguments = parser.parse_args()
    if arguments.threads:
        import torch

        torch.set_num_threads(arguments.threads)
    limits = measure_limits()
    print("| fp32 | bf16 | int8 | memory | cache |")
    print("|---|---|---|---|---|")
    products = " | ".join(f"{limits[kind]:.0f} GFLOP/s" for kind in WEIGHT_BYTES)
    print(f"| {products} | {limits['memory']:.1f} GB/s | {limits['cache']:.1f} GB/s |\n")
    print("| size | precision | limit in a batch | limit for one sentence |")
    print("|---|---|---|---|")
    for size in SIZES:
        for kind in WEIGHT_BYTES:
            speeds = " | ".join(
                f"{speed_limit(size, batch, limits, kind):,.0f} tokens/s" for batch in (32, 1)
            )
            print(f"| {size} | {kind} | {speeds} |")


def measure_limits() -> dict[str, float]:
    """GFLOP/s of products, GB/s of reading."""
    return {
        "fp32": packed_peak(bf16=False),
        "bf16": packed_peak(bf16=True),
        "int8": int8_peak(),
        "memory": read_speed(1 << 29),
        "cache": read_speed(1 << 24),
    }


def speed_limit(size: str, batch: int, limits: dict[str, float], kind: str = "fp32") -> float:
    """Tokens per second that the LSTMs alone could reach; low precision is never slower than fp32."""
    products = max(limits[kind], limits["fp32"]) * 1e9 / lstm_operations(size)
    if batch > 1:
        return products
    read = WEIGHT_BYTES[kind] * recurrent_weights(size)
    fits = read / LAYERS <= last_cache_bytes()
    return min(products, limits["cache" if fits else "memory"] * 1e9 / read)


def last_cache_bytes() -> int:
    """Size of the last-level cache."""
    if not CACHE_SIZE_FILE.exists():
        return CACHE_BYTES
    return int(CACHE_SIZE_FILE.read_text(encoding="utf-8").strip().removesuffix("K")) << 10


def lstm_operations(size: str) -> float:
    """Floating-point operations per token in both directions."""
    cells, outputs = SIZES[size]
    return 2.0 * 2 * LAYERS * (4 * cells * 2 * outputs + cells * outputs)


def highway_operations(size: str) -> float:
    """Floating-point operations of the highways for a new word."""
    return 2.0 * 2 * HIGHWAYS[size] * FILTERS**2


def recurrent_weights(size: str) -> float:
    """Weights read per token of a single sentence: all but the input weights, which are read once."""
    cells, outputs = SIZES[size]
    return 2.0 * LAYERS * (4 * cells * outputs + cells * outputs)


def int8_peak() -> float:
    """GFLOP/s of the int8 matrix product: oneDNN's or ours, whichever is faster."""
    import torch

    from polyseme.model.fast.kernels import lstm, native
    from polyseme.model.fast.parallel import run_parallel
    from polyseme.model.fast.quantisation import quantise

    rows, size = 512, 1024
    x, weight = torch.randn(rows, size), torch.randn(4 * size, size)
    products = [_onednn_int8(x, weight)]
    if native.is_available():
        halves = [lstm.pack_weight(quantise(half, "int8")) for half in weight.chunk(2)]
        products.append(lambda: run_parallel([partial(lstm.multiply, x, half) for half in halves]))
    best = 0.0
    with torch.inference_mode():
        for product in products * REPEATS:
            started = time.perf_counter()
            product()
            best = max(best, 2 * rows * size * 4 * size / (time.perf_counter() - started) / 1e9)
    return best


def _onednn_int8(x: torch.Tensor, weight: torch.Tensor) -> Callable[[], object]:
    """The int8 product of oneDNN with packed weights; without VNNI its sums may saturate at 16 bits."""
    import torch

    from polyseme.model.fast.quantisation import quantise

    values = quantise(weight, "int8").values
    packed = torch.ops.onednn.qlinear_prepack(values, None)
    scales, zeros = torch.ones(len(values)), torch.zeros(len(values), dtype=torch.int32)
    inputs = (quantise(x, "int8").values.int() + 128).to(torch.uint8)
    options = (packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
    return lambda: torch.ops.onednn.qlinear_pointwise(inputs, 1.0, 128, *options)


def packed_peak(*, bf16: bool, repeats: int = REPEATS) -> float:
    """GFLOP/s of the matrix product of 512 rows by weights packed by oneDNN."""
    import torch

    rows, size = 512, 1024
    with torch.inference_mode():
        x, weight = torch.randn(rows, size), torch.randn(4 * size, size)
        if bf16:
            x, weight = x.bfloat16(), weight.bfloat16()
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        except RuntimeError:  # the hardware does not support this precision
            packed = None
        best = 0.0
        for _ in range(repeats):
            started = time.perf_counter()
            if packed is None:
                torch.nn.functional.linear(x, weight)
            else:
                torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
            best = max(best, 2 * rows * size * 4 * size / (time.perf_counter() - started) / 1e9)
    return best


def read_speed(size: int) -> float:
    """GB/s of reading `size` bytes with all threads."""
    import torch

    values = torch.ones(size // 4)
    best = 0.0
    for _ in range(REPEATS):
        started = time.perf_counter()
        values.sum()
        best = max(best, size / (time.perf_counter() - started) / 1e9)
    return best


if __name__ == "__main__":
    main()
