"""How fast presets train: tokens a second in fp32 and bf16, share of the machine's peak, cores, memory.

    a text, presets  ->  pretrain  ->  a table

Every cell is measured in a process of its own: fp32, bf16, and fp32 on one core. The peak is that of a packed
product in the precision of the run, measured in the same process before and after the steps. On a GPU the
table has no column for cores, and memory is the GPU's. `--results` writes the table between the marks
`<!-- pretrain -->` and `<!-- end -->` of that file.

    python benchmarks/pretrain.py TEXT [--presets novel small notebook notebook:train.batch=128] [--steps 30]
        [--device cuda] [--results RESULTS.md]
    python benchmarks/pretrain.py TEXT --profile [--presets novel]    # phases of a step, one core against all
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from polyseme.training.loop import Loop
    from polyseme.training.settings import PretrainSettings

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from measure import peak_memory

from hardware_limits import REPEATS, packed_peak
from results_page import write_results
from training_phases import format_phases, measure_phases

PRESETS = ["novel", "small", "notebook", "notebook:train.batch=128"]
WARM_UP = 5  # steps
ROUND_SECONDS = 3.0
PROFILED = 30  # steps of a profile
HEAD = (
    "| preset | fp32 tokens/s | of the peak | bf16 tokens/s | of the peak | bf16 : fp32 "
    "| two cores : one | memory fp32, bf16 |"
)
ROUNDS = 3  # the median counts
GPU_SIZE = 4096  # rows and columns of the product that is the peak of a GPU
Numbers = dict[str, float]


def main() -> None:
    """Parse the command line; measure here, or start a process for each cell of the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument(
        "--presets", nargs="+", default=PRESETS, metavar="NAME[:SETTING=VALUE…]", help="what to train"
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=0,
        help=f"steps of a round (default: as many as take {ROUND_SECONDS:g} s)",
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    parser.add_argument(
        "--profile", action="store_true", help="print the phases of a step on one core and on all instead"
    )
    parser.add_argument("--results", type=Path, help="write the table into this Markdown file")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        preset, *settings = arguments.presets
        run = profile if arguments.profile else measure
        print(json.dumps(run(arguments.text, preset, settings, arguments.steps)))
        return
    if arguments.profile:
        for name in arguments.presets:
            one, every = (measure_apart(arguments, name, cores=cores) for cores in (1, 0))
            print(f"{name.replace(':', ' ')}:\n", *format_phases(one, every), sep="\n", flush=True)
        return
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
    print(*lines, sep="\n", flush=True)
    for name in arguments.presets:
        lines.append(format_row(name, *measure_cells(arguments, name)))
        print(lines[-1], flush=True)
    if arguments.results:
        write_results(arguments.results, "pretrain", lines)


def measure_cells(arguments: argparse.Namespace, name: str) -> tuple[Numbers, Numbers, Numbers | None]:
    """Measure a preset in fp32, in bf16 and, on a CPU with several cores, in fp32 on one core."""
    fp32, bf16 = (measure_apart(arguments, name, f"train.precision={kind}") for kind in ("fp32", "bf16"))
    several = arguments.device == "cpu" and len(os.sched_getaffinity(0)) > 1
    return fp32, bf16, measure_apart(arguments, name, "train.precision=fp32", cores=1) if several else None


def measure_apart(arguments: argparse.Namespace, name: str, *settings: str, cores: int = 0) -> Numbers:
    """Run `measure` in a fresh process, on the first `cores` cores if that is not 0."""
    preset, *changes = name.split(":")
    words = [__file__, str(arguments.text), "--steps", str(arguments.steps), "--here"]
    words += ["--profile"] if arguments.profile else []
    words += ["--presets", preset, *changes, *settings, f"train.device={arguments.device}"]
    allowed = sorted(os.sched_getaffinity(0))[: cores or None]
    done = subprocess.run(
        ["taskset", "-c", ",".join(map(str, allowed)), sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ({"OMP_NUM_THREADS": str(cores)} if cores else {}),
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    numbers: Numbers = json.loads(done.stdout.strip().splitlines()[-1])
    return numbers


def format_row(name: str, fp32: Numbers, bf16: Numbers, one: Numbers | None) -> str:
    """A line of the table."""
    cells = [name.replace(":", " ")]
    for numbers in (fp32, bf16):
        reached = numbers["tokens_per_second"] * numbers["operations"] / 1e9
        cells += [
            f"{numbers['tokens_per_second']:,.0f}",
            f"{reached / numbers['peak']:.0%} of {numbers['peak']:.0f}",
        ]
    cells.append(f"{bf16['tokens_per_second'] / fp32['tokens_per_second']:.2f}")
    cells.append(f"{fp32['tokens_per_second'] / one['tokens_per_second']:.2f}" if one else "-")
    cells.append(f"{fp32['memory']:,.0f}, {bf16['memory']:,.0f} MiB")
    return f"| {' | '.join(cells)} |"


def measure(text: Path, preset: str, settings: list[str], steps: int, *, repeats: int = REPEATS) -> Numbers:
    """Some steps of one preset: tokens a second, useful operations a token, the peak, memory.

    With 0 `steps`, a round has as many as take some seconds.
    """
    import numpy as np

    from polyseme.training.devices import choose_device
    from polyseme.training.settings import read_pretrain_settings

    config = read_pretrain_settings(preset, settings)
    device, low = choose_device(config.train.device), config.train.precision == "bf16"
    before = device_peak(device, bf16=low, repeats=repeats)
    with start_run(text, config) as (loop, operations):
        started = time.perf_counter()
        time_steps(loop, WARM_UP, device)
        steps = steps or max(WARM_UP, round(ROUND_SECONDS * WARM_UP / (time.perf_counter() - started)))
        rates = [time_steps(loop, steps, device) for _ in range(ROUNDS)]
    return {
        "tokens_per_second": float(np.median(rates)),
        "operations": operations,
        "peak": max(before, device_peak(device, bf16=low, repeats=repeats)),
        "memory": device_memory(device),
    }


def profile(text: Path, preset: str, settings: list[str], steps: int) -> Numbers:
    """Milliseconds of each phase of a step of one preset."""
    from polyseme.training.settings import read_pretrain_settings

    config = read_pretrain_settings(preset, settings)
    with start_run(text, config) as (loop, _):
        for _ in range(WARM_UP):
            loop.step()
        return measure_phases(loop, steps or PROFILED)


@contextmanager
def start_run(text: Path, config: PretrainSettings) -> Iterator[tuple[Loop, float]]:
    """The loop of a fresh run, in a folder for the time of the block, and its useful operations a token."""
    from polyseme.text.corpus.prepared import prepare_corpus
    from polyseme.training.bilm_trainable import BilmTrainable, count_samples, make_train_batches
    from polyseme.training.distributed import Ranks, join_ranks
    from polyseme.training.loop import Loop
    from polyseme.training.pretrain import make_corpus_spec, make_fresh_modules
    from polyseme.training.steady_process import steady_process
    from training_flops import step_flops

    with tempfile.TemporaryDirectory() as folder, steady_process():
        corpus = prepare_corpus([text], Path(folder) / "corpus", make_corpus_spec(config), workers=1)
        network, softmax = make_fresh_modules(config, corpus)
        work = BilmTrainable(network, softmax, corpus, config, join_ranks(config.train.device))
        loop = Loop(work, config.train, Path(folder), work.count_total_tokens())
        network.train()
        batches, scored = make_train_batches(corpus, config, Ranks()), count_samples(config, softmax)
        batch = batches.make_batch(0, WARM_UP)
        with loop.keep_on_its_cores():  # as `Loop.run` does
            yield loop, step_flops(config.model, corpus, batch, scored or softmax.n_words) / batch.tokens


def time_steps(loop: Loop, steps: int, device: torch.device) -> float:
    """Tokens a second of `steps` steps; with one thread on a CPU, by its processor time."""
    from polyseme.model.fast.parallel import count_cores

    alone = device.type == "cpu" and count_cores() == 1
    clock = time.process_time if alone else time.perf_counter
    _synchronise(device)
    before, started = loop.position.tokens, clock()
    for _ in range(steps):
        loop.step()
    _synchronise(device)
    return (loop.position.tokens - before) / (clock() - started)


def device_peak(device: torch.device, *, bf16: bool, repeats: int = REPEATS) -> float:
    """GFLOP/s of the matrix product: packed on a CPU, a large one on a GPU."""
    if device.type == "cpu":
        return packed_peak(bf16=bf16, repeats=repeats)
    return product_peak(device, GPU_SIZE, bf16=bf16)


def product_peak(device: torch.device, size: int, *, bf16: bool) -> float:
    """GFLOP/s of the product of two square matrices on any device, the best of many."""
    import torch

    a, b = (
        torch.randn(size, size, device=device).to(torch.bfloat16 if bf16 else torch.float32) for _ in "ab"
    )
    best = 0.0
    for _ in range(10):
        _synchronise(device)
        started = time.perf_counter()
        torch.mm(a, b)
        _synchronise(device)
        best = max(best, 2 * size**3 / (time.perf_counter() - started) / 1e9)
    return best


def device_memory(device: torch.device) -> float:
    """Peak memory in MiB: of this process, or on a GPU of its tensors."""
    import torch

    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else peak_memory()


def _synchronise(device: torch.device) -> None:
    """Wait until the device has finished."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
