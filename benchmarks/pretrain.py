"""How fast a preset trains: tokens a second, share of the machine's matrix product, memory.

    a text, presets  ->  pretrain  ->  a table

Each preset runs some steps in a process of its own; torch counts the floating-point operations of its
products. The peak is that of a packed product measured in the same process, before the steps.

    python benchmarks/pretrain.py TEXT [--presets novel notebook small] [--steps 30] [--set train.batch=128]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from measure import peak_memory


def main() -> None:
    """Parse the command line; measure here, or start a process for each preset."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--presets", nargs="+", default=["novel", "notebook", "small"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measure(given.text, given.presets[0], given.settings, given.steps)))
        return
    print("| preset | tokens/s | GFLOP/s | of the peak | peak memory |")
    print("|---|---|---|---|---|")
    for preset in given.presets:
        settings = [part for line in given.settings for part in ("--set", line)]
        words = [
            __file__,
            str(given.text),
            "--presets",
            preset,
            "--steps",
            str(given.steps),
            "--here",
            *settings,
        ]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        found = json.loads(done.stdout.strip().splitlines()[-1])
        print(
            f"| {preset} | {found['tokens_per_second']:,.0f} | {found['gflops']:.1f} "
            f"| {found['gflops'] / found['peak']:.0%} of {found['peak']:.0f} | {found['memory']:,.0f} MiB |",
            flush=True,
        )


def measure(text: Path, preset: str, settings: list[str], steps: int) -> dict[str, float]:
    """Some steps of one preset."""
    from torch.utils.flop_counter import FlopCounterMode

    from polyseme.text.corpus import prepare_corpus
    from polyseme.training.bilm_work import BilmWork
    from polyseme.training.distributed import Ranks
    from polyseme.training.loop import Loop
    from polyseme.training.pretrain import corpus_settings, fresh_modules
    from polyseme.training.settings import read_pretrain_config

    peak = packed_peak()
    config = read_pretrain_config(preset, settings)
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare_corpus([text], Path(folder) / "corpus", corpus_settings(config), workers=1)
        network, softmax = fresh_modules(config, corpus)
        work = BilmWork(network, softmax, corpus, config, Ranks())
        loop = Loop(work, config.train, Path(folder), work.total_tokens())
        network.train()
        for _ in range(3):
            loop.step()
        with FlopCounterMode(display=False) as counter:
            before = loop.position.tokens
            loop.step()
        operations = counter.get_total_flops() / (loop.position.tokens - before)  # a token
        before, started = loop.position.tokens, time.perf_counter()
        for _ in range(steps):
            loop.step()
        rate = (loop.position.tokens - before) / (time.perf_counter() - started)
    return {
        "tokens_per_second": rate,
        "gflops": rate * operations / 1e9,
        "peak": peak,
        "memory": peak_memory(),
    }


def packed_peak() -> float:
    """The machine's matrix product in GFLOP/s: 512 rows by weights that oneDNN has packed."""
    import torch

    rows, size = 512, 1024
    with torch.inference_mode():
        x, weight = torch.randn(rows, size), torch.randn(4 * size, size)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        best = 0.0
        for _ in range(30):
            started = time.perf_counter()
            torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
            best = max(best, 2 * rows * size * 4 * size / (time.perf_counter() - started) / 1e9)
    return best


if __name__ == "__main__":
    main()
