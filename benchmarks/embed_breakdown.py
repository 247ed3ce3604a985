"""Where the time of `Elmo.embed` goes: the C kernels, the threads around them, the rest of Python.

Embeds made-up sentences with random weights of a published size and a warm token cache, and prints
milliseconds per call of the fastest pass. `C` is the time in the kernels of one direction, all layers, on one
core; `products` is what the matrix products of both would take at the peak speed of hardware_limits.py;
`threads` is the time of both directions in parallel beyond that of one; `rest` is everything else. `new
words` is what a call takes beyond that with an empty token cache, and `their products` those of the highways
at the peak speed.

    python benchmarks/embed_breakdown.py [--size small] [--precisions fp32 int8] [--batches 1 32]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hardware_limits import highway_operations, lstm_operations, measure_limits

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
    print(
        "| model | precision | batch | a call | C | products | threads | rest | new words | their products |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(__file__).parent / "peers" / "random_model.py"
        command = [sys.executable, str(script), folder, "--size", arguments.size]
        subprocess.run(command, check=True, capture_output=True)
        for precision in arguments.precisions:
            for batch in arguments.batches:
                times, tokens = measure(Path(folder), precision, batch)
                products = lstm_operations(arguments.size) * tokens / (limits[precision] * 1e6)
                encoded = highway_operations(arguments.size) * times["words"] / (limits[precision] * 1e6)
                parts = [times[name] for name in ("call", "C", "threads", "rest", "new")]
                values = (*parts[:2], products, *parts[2:], encoded)
                shown = " | ".join(f"{value:.2f} ms" for value in values)
                print(f"| {arguments.size} | {precision} | {batch} | {shown} |", flush=True)


def measure(folder: Path, precision: str, batch: int) -> tuple[dict[str, float], float]:
    """Milliseconds of each part and new words per call, and the tokens per call including <S> and </S>."""
    import polyseme
    from polyseme.model.fast.kernels import lstm

    model = polyseme.load(folder / "weights.hdf5", folder / "options.json", precision=precision)
    text = sentences(CALLS * batch)
    batches = [text[start : start + batch] for start in range(0, len(text), batch)]
    original = lstm.run_together
    spent: dict[str, float] = defaultdict(float)

    def run_together(stacks: Sequence[Any]) -> None:
        spent["both"] += seconds(original, stacks)

    def run_one_by_one(stacks: Sequence[Any]) -> None:
        spent["C"] += sum(seconds(original, [stack]) for stack in stacks) / len(stacks)

    def fastest(
        run: Callable[[Sequence[Any]], None], part: str, *, cold: bool = False
    ) -> tuple[float, float]:
        """Milliseconds of a call, and of `part` of it, in the pass in which the latter was fastest."""
        passes = []
        lstm.run_together = run
        for _ in range(PASSES):
            spent.clear()
            if cold:
                model.cache.clear()
            call = sum(seconds(model.embed, sentences, layer="all") for sentences in batches)
            passes.append((call * 1000 / CALLS, spent[part] * 1000 / CALLS))
        return min(passes)

    try:
        cold, _ = fastest(run_together, "both", cold=True)
        words = len(model.cache) / CALLS
        call, both = fastest(run_together, "both")
        _, loops = fastest(run_one_by_one, "C")
    finally:
        lstm.run_together = original
    times = {"call": call, "C": loops, "threads": both - loops, "rest": call - both}
    times |= {"new": cold - call, "words": words}
    return times, sum(len(sentence) + 2 for sentence in text) / CALLS


def seconds(function: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """Time one call."""
    started = time.perf_counter()
    function(*args, **kwargs)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
