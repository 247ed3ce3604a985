"""How fast a preset trains: tokens a second, share of the machine's matrix product, memory, growth.

    a text, presets  ->  pretrain  ->  a table

Each preset runs some steps in a process of its own. The peak is that of a packed product in the precision of
the run, measured in the same process before and after the steps. `linear` is the time of two and four times
as many steps, over the time of the first.

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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.training.loop import Loop

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from measure import peak_memory

WARM_UP = 5  # steps
GROWTH = (1, 2, 4)


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
    print("| preset | tokens/s | GFLOP a 1,000 tokens | GFLOP/s | of the peak | peak memory | linear |")
    print("|---|---|---|---|---|---|---|")
    for preset in given.presets:
        print(row(" ".join([preset, *given.settings]), in_a_process(given, preset)), flush=True)


def in_a_process(given: argparse.Namespace, preset: str) -> dict[str, float]:
    """What `measure` finds in a fresh process."""
    words = [__file__, str(given.text), "--presets", preset, "--steps", str(given.steps), "--here"]
    words += [part for line in given.settings for part in ("--set", line)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(name: str, found: dict[str, float]) -> str:
    """A line of the table."""
    rate, operations, peak = found["tokens_per_second"], found["operations"], found["peak"]
    reached = rate * operations / 1e9
    share = f"{reached / peak:.0%} of {peak:.0f}"
    return (
        f"| {name} | {rate:,.0f} | {operations / 1e6:.1f} | {reached:.1f} | {share} "
        f"| {found['memory']:,.0f} MiB | 1 : {found['twice']:.2f} : {found['four_times']:.2f} |"
    )


def measure(text: Path, preset: str, settings: list[str], steps: int) -> dict[str, float]:
    """Some steps of one preset: tokens a second, useful operations a token, the peak, memory, growth."""
    import numpy as np

    from hardware_limits import packed_peak
    from polyseme.text.corpus.prepared import prepare_corpus
    from polyseme.training.bilm_trainable import BilmTrainable, count_samples, make_train_batches
    from polyseme.training.distributed import Ranks
    from polyseme.training.loop import Loop
    from polyseme.training.pretrain import make_corpus_spec, make_fresh_modules
    from polyseme.training.settings import read_pretrain_settings
    from training_flops import step_flops

    config = read_pretrain_settings(preset, settings)
    low = config.train.precision == "bf16"
    before = packed_peak(bf16=low)
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare_corpus([text], Path(folder) / "corpus", make_corpus_spec(config), workers=1)
        network, softmax = make_fresh_modules(config, corpus)
        work = BilmTrainable(network, softmax, corpus, config, Ranks())
        loop = Loop(work, config.train, Path(folder), work.count_total_tokens())
        network.train()
        batches, scored = make_train_batches(corpus, config, Ranks()), count_samples(config, softmax)
        batch = batches.make_batch(0, WARM_UP)
        operations = step_flops(config.model, corpus, batch, scored or softmax.n_words) / batch.tokens
        time_of(loop, WARM_UP)
        seconds = [time_of(loop, steps * times) for times in GROWTH]
    rates = [tokens / spent for tokens, spent in seconds]
    return {
        "tokens_per_second": float(np.median(rates)),
        "operations": operations,
        "peak": max(before, packed_peak(bf16=low)),
        "memory": peak_memory(),
        "twice": rates[0] * 2 / rates[1],
        "four_times": rates[0] * 4 / rates[2],
    }


def time_of(loop: Loop, steps: int) -> tuple[int, float]:
    """Return tokens and seconds of `steps` steps; with one thread, seconds of CPU time."""
    import torch

    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    before, started = loop.position.tokens, clock()
    for _ in range(steps):
        loop.step()
    return loop.position.tokens - before, clock() - started


if __name__ == "__main__":
    main()
