"""Where the time of `Elmo.embed` goes: the C kernels, the threads around them, the rest of Python.

Embeds made-up sentences with random weights of a published size and a warm token cache, and prints
milliseconds per call of the fastest pass. `C` is the time in the kernels of one direction, both layers;
`products` is what their matrix products would take at the peak speed of hardware_limits.py; `threads` is
the time of both directions in parallel beyond that of one; `rest` is everything else.

    python benchmarks/embed_breakdown.py [--size small] [--precisions fp32 int8] [--batches 1 32]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hardware_limits import lstm_operations, measure_limits

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from sentences import sentences

PASSES = 10
CALLS = 12


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="small", choices=["small", "original"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    arguments = parser.parse_args()
    limits = measure_limits()
    print("| model | precision | batch | a call | C | products | threads | rest |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(__file__).parent / "peers" / "random_model.py"
        command = [sys.executable, str(script), folder, "--size", arguments.size]
        subprocess.run(command, check=True, capture_output=True)
        for precision in arguments.precisions:
            for batch in arguments.batches:
                times, tokens = measure(Path(folder), precision, batch)
                products = lstm_operations(arguments.size) * tokens / (limits[precision] * 1e6)
                values = (times["call"], times["C"], products, times["threads"], times["rest"])
                figures = " | ".join(f"{value:.1f} ms" for value in values)
                print(f"| {arguments.size} | {precision} | {batch} | {figures} |", flush=True)


def measure(folder: Path, precision: str, batch: int) -> tuple[dict[str, float], float]:
    """Milliseconds of each part, and the tokens per call including <S> and </S>."""
    import polyseme
    from polyseme.model import bilm
    from polyseme.model.fast.kernels import lstm

    model = polyseme.load(folder / "weights.hdf5", folder / "options.json", precision=precision)
    text = sentences(CALLS * batch)
    spent: dict[str, float] = defaultdict(float)
    patched: list[tuple[Any, str]] = [(lstm.PreparedLstm, "run"), (bilm, "run_parallel")]
    originals = [getattr(owner, name) for owner, name in patched]
    best: dict[str, float] = {}
    try:
        for owner, name in patched:
            setattr(owner, name, timed(getattr(owner, name), name, spent))
        for _ in range(PASSES):
            spent.clear()
            started = time.perf_counter()
            for start in range(0, len(text), batch):
                model.embed(text[start : start + batch], layer="all")
            spent["call"] = time.perf_counter() - started
            best = dict(spent) if not best or spent["call"] < best["call"] else best
    finally:
        for (owner, name), function in zip(patched, originals, strict=True):
            setattr(owner, name, function)
    call, loops, both = (best[name] * 1000 / CALLS for name in ("call", "run", "run_parallel"))
    tokens = sum(len(sentence) + 2 for sentence in text) / CALLS
    return {"call": call, "C": loops / 2, "threads": both - loops / 2, "rest": call - both}, tokens


def timed(function: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    """Wrap a function to add up its time under `name`."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        result = function(*args, **kwargs)
        spent[name] += time.perf_counter() - started
        return result

    return wrapper


if __name__ == "__main__":
    main()
