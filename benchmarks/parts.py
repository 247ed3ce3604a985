"""Where the time of `embed` goes: the loops in C, the threads around them, the rest of Python.

    random weights of a published size  ->  embed some sentences, words known  ->  a table

Milliseconds a call, of the fastest pass. `C` is the time in the loops of one direction, both layers;
`products` what their products would take at the peak that limit.py measures. `threads` is the time of both
directions side by side beyond that of one, `rest` all else.

    python benchmarks/parts.py [--size small] [--precisions fp32 int8] [--batches 1 32]
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

from limit import lstm_operations, measured_limits

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from sentences import sentences

PASSES = 10
CALLS = 12


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="small")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    given = parser.parse_args()
    limits = measured_limits()
    print("| model | precision | batch | a call | C | products | threads | rest |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        maker = Path(__file__).parent / "peers" / "random_model.py"
        make = [sys.executable, str(maker), folder, "--size", given.size]
        subprocess.run(make, check=True, capture_output=True)
        for precision in given.precisions:
            for batch in given.batches:
                found, tokens = measure(Path(folder), precision, batch)
                products = lstm_operations(given.size) * tokens / (limits[precision] * 1e6)
                values = (found["call"], found["C"], products, found["threads"], found["rest"])
                figures = " | ".join(f"{value:.1f} ms" for value in values)
                print(f"| {given.size} | {precision} | {batch} | {figures} |", flush=True)


def measure(folder: Path, precision: str, batch: int) -> tuple[dict[str, float], float]:
    """Milliseconds of each part, and the tokens of a call, <S> and </S> among them."""
    import polyseme
    from polyseme.model import bilm
    from polyseme.model.fast.kernels import lstm

    model = polyseme.load(folder / "weights.hdf5", folder / "options.json", precision=precision)
    text = sentences(CALLS * batch)
    spent: dict[str, float] = defaultdict(float)
    clocks: list[tuple[Any, str]] = [(lstm.PreparedLstm, "run"), (bilm, "run_parallel")]
    before = [getattr(owner, name) for owner, name in clocks]
    best: dict[str, float] = {}
    try:
        for owner, name in clocks:
            setattr(owner, name, timed(getattr(owner, name), name, spent))
        for _ in range(PASSES):
            spent.clear()
            started = time.perf_counter()
            for at in range(0, len(text), batch):
                model.embed(text[at : at + batch], layer="all")
            spent["call"] = time.perf_counter() - started
            best = dict(spent) if not best or spent["call"] < best["call"] else best
    finally:
        for (owner, name), function in zip(clocks, before, strict=True):
            setattr(owner, name, function)
    call, loops, both = (best[name] * 1000 / CALLS for name in ("call", "run", "run_parallel"))
    tokens = sum(len(sentence) + 2 for sentence in text) / CALLS
    return {"call": call, "C": loops / 2, "threads": both - loops / 2, "rest": call - both}, tokens


def timed(function: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    """The function, with its time added up under `name`."""

    def clocked(*given: Any, **named: Any) -> Any:
        started = time.perf_counter()
        result = function(*given, **named)
        spent[name] += time.perf_counter() - started
        return result

    return clocked


if __name__ == "__main__":
    main()
