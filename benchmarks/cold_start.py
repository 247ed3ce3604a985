"""Cold start of the bundled models: seconds from starting Python to the first vectors, and peak memory.

Each run is a new process: import polyseme, load a model, embed one sentence. Prints the best and the median.
A first run, which does not count, compiles the modules, as installing a wheel does.

    python benchmarks/cold_start.py [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

SENTENCES = {
    "en": "The bank lent her ten thousand dollars.",
    "zh": "她吃了一个苹果。",
    "en-classic": "She walked along the bank of the river.",
    "zh-classic": "却说曹操引兵来攻荆州。",
}
PEAK = """
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
TORCH = "import torch" + PEAK
PROGRAM = "import sys, polyseme; polyseme.load(sys.argv[1]).embed(sys.argv[2])" + PEAK


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="processes per row (default: 5)")
    arguments = parser.parse_args()
    print("| | best | median | peak memory |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as compiled:
        measure("`import torch` alone", [TORCH], arguments.repeats, compiled)
        for name, sentence in SENTENCES.items():
            measure(f"first vectors of {name}", [PROGRAM, name, sentence], arguments.repeats, compiled)


def measure(name: str, program: list[str], repeats: int, compiled: str) -> None:
    """Print a row: seconds from starting Python to its end, and peak memory."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", *program]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    seconds, megabytes = [], 0.0
    for _ in range(repeats):
        started = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        seconds.append(time.perf_counter() - started)
        megabytes = max(megabytes, float(done.stdout))
    median = statistics.median(seconds)
    print(f"| {name} | {min(seconds):.2f} s | {median:.2f} s | {megabytes:,.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
