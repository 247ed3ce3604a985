"""Which precision is the fastest, with each instruction set that this CPU supports: what "auto" relies on.

    random weights of a published size  ->  embed with cached words on one core  ->  a table

Tokens per second of CPU time, the median of rounds in which the precisions take turns.

    python benchmarks/precision_speed.py [--size small] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from random_model import options, write_model
from sentences import sentences

PRECISIONS = ("fp32", "bf16", "int8")


def main() -> None:
    """Parse the command line, measure, print the table."""
    import torch

    from polyseme.model.fast.kernels import native

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="small", choices=["small", "original"])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| instruction set | sentences | fp32 | bf16 | int8 | bf16 : fp32 | int8 : fp32 |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), options(arguments.size))
        for instructions in native.INSTRUCTION_SETS:
            if native.select_instruction_set(instructions):
                for line in measure(Path(folder), instructions, arguments.rounds):
                    print(line, flush=True)


def measure(folder: Path, instructions: str, rounds: int) -> list[str]:
    """The rows of one instruction set: a batch of 32, and single sentences."""
    import polyseme

    text = sentences(32)
    models = {
        name: polyseme.load(folder / "weights.hdf5", folder / "options.json", precision=name)
        for name in PRECISIONS
    }
    lines = []
    for label, batches in (("batch of 32", [text]), ("one", [[sentence] for sentence in text[:8]])):
        tokens = sum(len(sentence) for batch in batches for sentence in batch)
        rates: dict[str, list[float]] = {name: [] for name in models}
        for number in range(rounds + 1):
            for name, model in models.items():
                started = time.process_time()
                for batch in batches:
                    model.embed(batch)
                if number:  # the first round packs the weights and fills the token cache
                    rates[name].append(tokens / (time.process_time() - started))
        fp32, bf16, int8 = (statistics.median(rates[name]) for name in PRECISIONS)
        speeds = " | ".join(f"{rate:,.0f}" for rate in (fp32, bf16, int8))
        lines.append(f"| {instructions} | {label} | {speeds} | {bf16 / fp32:.2f}x | {int8 / fp32:.2f}x |")
    return lines


if __name__ == "__main__":
    main()
