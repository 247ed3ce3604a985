"""The models that come with Polyseme, cold: from starting Python to the first vectors, and its memory.

a new process each time: import polyseme, load(NAME), embed(a sentence)  ->  the best of several, in a table

python benchmarks/box.py [--times 5]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

SENTENCES = {
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
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    print("| | best | median | memory |")
    print("|---|---|---|---|")
    measure("`import torch` alone", [TORCH], given.times)
    for name, sentence in SENTENCES.items():
        measure(f"first vectors of {name}", [PROGRAM, name, sentence], given.times)


def measure(name: str, program: list[str], times: int) -> None:
    """Print a row: seconds from starting Python to the end, and the peak of its memory."""
    seconds, megabytes = [], 0.0
    for _ in range(times):
        started = time.perf_counter()
        command = [sys.executable, "-c", *program]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds.append(time.perf_counter() - started)
        megabytes = max(megabytes, float(said))
    middle = sorted(seconds)[len(seconds) // 2]
    print(f"| {name} | {min(seconds):.2f} s | {middle:.2f} s | {megabytes:,.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
