"""What the machine can do at most: matrix products, memory, and what that means for the published sizes.

    nothing  ->  limit  ->  two tables

A product is 512 rows by weights that oneDNN has packed (not packed where it refuses: bf16 on machines without
such units), best of many; for int8 the better of oneDNN's and our own. Bandwidth is that of reading a large
array, and one that fits the last cache. The roof of a size is what its LSTMs alone would reach: in a batch
they are bound by products, one sentence by reading the recurrent weights once a word.

    python benchmarks/limit.py [--threads N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SIZES = {"small": (1024, 128), "original": (4096, 512)}  # memory cells and outputs, two layers
LAYERS = 2
WIDTHS = {"fp32": 4, "bf16": 2, "int8": 1}  # bytes of a weight
PASSES = 30
CACHE = 1 << 25  # bytes of the last cache, about


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        import torch

        torch.set_num_threads(given.threads)
    limits = measured_limits()
    print("| fp32 | bf16 | int8 | memory | cache |")
    print("|---|---|---|---|---|")
    products = " | ".join(f"{limits[kind]:.0f} GFLOP/s" for kind in WIDTHS)
    print(f"| {products} | {limits['memory']:.1f} GB/s | {limits['cache']:.1f} GB/s |\n")
    print("| size | precision | roof in a batch | roof of one sentence |")
    print("|---|---|---|---|")
    for size in SIZES:
        for kind in WIDTHS:
            roofs = " | ".join(f"{roof_of(size, batch, limits, kind):,.0f} tokens/s" for batch in (32, 1))
            print(f"| {size} | {kind} | {roofs} |")


def measured_limits() -> dict[str, float]:
    """GFLOP/s of products, GB/s of reading."""
    return {
        "fp32": packed_peak(low=False),
        "bf16": packed_peak(low=True),
        "int8": int8_peak(),
        "memory": read_speed(1 << 29),
        "cache": read_speed(1 << 24),
    }


def roof_of(size: str, batch: int, limits: dict[str, float], kind: str = "fp32") -> float:
    """Tokens a second that the stacks alone would reach; narrow numbers are never slower than fp32."""
    products = max(limits[kind], limits["fp32"]) * 1e9 / lstm_operations(size)
    if batch > 1:
        return products
    read = WIDTHS[kind] * recurrent_weights(size)
    return min(products, limits["cache" if read <= CACHE else "memory"] * 1e9 / read)


def lstm_operations(size: str) -> float:
    """Operations of a word in the stacks of both directions."""
    cells, outputs = SIZES[size]
    return 2.0 * 2 * LAYERS * (4 * cells * 2 * outputs + cells * outputs)


def recurrent_weights(size: str) -> float:
    """How many weights each word of one sentence has to read: all but the hoisted ones."""
    cells, outputs = SIZES[size]
    return 2.0 * LAYERS * (4 * cells * outputs + cells * outputs)


def int8_peak() -> float:
    """The matrix product of 8-bit whole numbers in GFLOP/s: oneDNN's or ours, whichever is quicker."""
    import torch

    from polyseme.model.fast.kernels import lstm, native
    from polyseme.model.fast.parallel import run_parallel
    from polyseme.model.fast.quantisation import quantise

    rows, size = 512, 1024
    x, weight = torch.randn(rows, size), torch.randn(4 * size, size)
    ways = [_onednn_int8(x, weight)]
    if native.is_available():
        halves = [lstm.pack_weight(quantise(half, "int8")) for half in weight.chunk(2)]
        ways.append(lambda: run_parallel([lambda half=half: lstm.multiply(x, half) for half in halves]))
    best = 0.0
    with torch.inference_mode():
        for way in ways * PASSES:
            started = time.perf_counter()
            way()
            best = max(best, 2 * rows * size * 4 * size / (time.perf_counter() - started) / 1e9)
    return best


def _onednn_int8(x: torch.Tensor, weight: torch.Tensor) -> Callable[[], object]:
    """The product of whole numbers by oneDNN, weights packed; without VNNI its sums may be cut at 16 bits."""
    import torch

    from polyseme.model.fast.quantisation import quantise

    values = quantise(weight, "int8").values
    packed = torch.ops.onednn.qlinear_prepack(values, None)
    scales, zeros = torch.ones(len(values)), torch.zeros(len(values), dtype=torch.int32)
    whole = (quantise(x, "int8").values.int() + 128).to(torch.uint8)
    rest = (packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
    return lambda: torch.ops.onednn.qlinear_pointwise(whole, 1.0, 128, *rest)


def packed_peak(*, low: bool) -> float:
    """The matrix product in GFLOP/s: 512 rows by weights that oneDNN has packed; `low`: bf16."""
    import torch

    rows, size = 512, 1024
    with torch.inference_mode():
        x, weight = torch.randn(rows, size), torch.randn(4 * size, size)
        if low:
            x, weight = x.bfloat16(), weight.bfloat16()
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        except RuntimeError:  # oneDNN wants other units for this
            packed = None
        best = 0.0
        for _ in range(PASSES):
            started = time.perf_counter()
            if packed is None:
                torch.nn.functional.linear(x, weight)
            else:
                torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
            best = max(best, 2 * rows * size * 4 * size / (time.perf_counter() - started) / 1e9)
    return best


def read_speed(size: int) -> float:
    """GB/s of reading `size` bytes, all threads together."""
    import torch

    values = torch.ones(size // 4)
    best = 0.0
    for _ in range(PASSES):
        started = time.perf_counter()
        values.sum()
        best = max(best, size / (time.perf_counter() - started) / 1e9)
    return best


if __name__ == "__main__":
    main()
