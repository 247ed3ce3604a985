"""Attack the readers with damaged inputs, and list what should not have happened.

    readers.READERS, mutations.mutate  ->  attack.run_cases  ->  Failure

A damaged input may give one error of one line that names it, or a valid result of finite numbers. Anything
else is a failure: another exception, a warning, NaN, a crash, more than a gigabyte, more than ten seconds.

    python -m faults.attack --cases 500 --seed 1 native index     (with tests/ on PYTHONPATH)
"""

from __future__ import annotations

import argparse
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from faults.mutations import mutate
from faults.readers import READERS, Reader, has_only_finite_numbers
from polyseme.errors import PolysemeError

CPU_SECONDS = 10.0  # that a case may take
WALL_SECONDS = 120.0  # the same by the clock, for what waits without computing
MEMORY = 1 << 30  # that a case may take in addition


@dataclass(frozen=True)
class Failure:
    """A case that went wrong.

    Attributes:
        reader: Its reader.
        seed: Its seed: `run_case` with both repeats it.
        damage: What was done to which files.
        what: What happened.
        trace: The stack, if there was an exception.

    """

    reader: str
    seed: int
    damage: str
    what: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.reader} {self.seed}: {self.damage}: {self.what}"


def make_inputs(names: Sequence[str], folder: Path) -> dict[str, Path]:
    """Write the intact inputs of readers."""
    inputs = {}
    for name in names:
        inputs[name] = folder / name.replace(".", "-")
        inputs[name].mkdir()
        READERS[name].make(inputs[name])
    return inputs


def damage_input(reader: Reader, intact: Path, folder: Path, seed: int) -> str:
    """Copy an input to `folder` and damage one or two of its files; returns what was done."""
    rng = Random(f"{intact.name} {seed}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact, folder)
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name not in reader.fixed]
    chosen = rng.choice(files)
    other = rng.random()
    if other < 0.02:
        chosen.unlink()
        return f"{chosen.name}: removed"
    if other < 0.03:
        chosen.unlink()
        chosen.mkdir()
        return f"{chosen.name}: a folder"
    if other < 0.04:
        chosen.write_bytes(rng.choice(files).read_bytes())
        return f"{chosen.name}: another file"
    done = [mutate(chosen, rng)]
    if rng.random() < 0.2:
        second = rng.choice(files)
        done.append(mutate(second, rng, structured=second != chosen))
    return ", ".join(done)


def run_case(name: str, intact: Path, folder: Path, seed: int) -> tuple[str, Failure | None]:
    """Run one case in this process; returns how it ended, `refused` or `read`, and the failure, if any."""
    reader = READERS[name]
    damage = damage_input(reader, intact, folder, seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = reader.read(folder)
        if not has_only_finite_numbers(result):
            return "failed", Failure(name, seed, damage, "not finite")
    except PolysemeError as problem:
        return "refused", _check_message(problem, folder, Failure(name, seed, damage, ""))
    except BaseException as problem:
        if isinstance(problem, KeyboardInterrupt):
            raise
        what = f"{type(problem).__name__}: {str(problem)[:200]}"
        frames = traceback.extract_tb(problem.__traceback__)
        ours = [frame for frame in frames if "/polyseme/" in frame.filename]
        last = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
        return "failed", Failure(name, seed, damage, what + last, traceback.format_exc())
    return "read", None


def _check_message(problem: PolysemeError, folder: Path, failure: Failure) -> Failure | None:
    """An error must be one line that names the folder or a file in it."""
    message = str(problem)
    names = [str(folder), *(file.name for file in folder.rglob("*"))]
    what = ""
    if "\n" in message or "\r" in message:
        what = "more than one line"
    elif len(message) > 2100:
        what = f"{len(message)} characters"
    elif not any(name in message for name in names):
        what = "no file named"
    if not what:
        return None
    return Failure(
        failure.reader,
        failure.seed,
        failure.damage,
        f"{what}: {type(problem).__name__}: {message[:300]!r}",
        "".join(traceback.format_exception(problem)),
    )


def run_cases(
    name: str, intact: Path, folder: Path, seeds: Sequence[int], *, limited: bool
) -> Iterator[tuple[int, str, Failure | None]]:
    """Run cases in this process, or `limited`: in child processes with limits of memory and time."""
    if not limited:
        for seed in seeds:
            yield seed, *run_case(name, intact, folder, seed)
        return
    waiting = list(seeds)
    while waiting:
        waiting = yield from _run_in_child(name, intact, folder, waiting)


def _run_in_child(
    name: str, intact: Path, folder: Path, seeds: list[int]
) -> Generator[tuple[int, str, Failure | None], None, list[int]]:
    """Run cases in a child until one kills it; returns the seeds that are left."""
    import pickle

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _limit_memory()
            signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, wherever it is
            with os.fdopen(writing, "wb") as results:
                for seed in seeds:
                    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
                    pickle.dump((seed, *run_case(name, intact, folder, seed)), results)
                    results.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    finished, hung = 0, False
    with os.fdopen(reading, "rb") as results:
        while True:
            if not select.select([results], [], [], WALL_SECONDS)[0]:
                hung = True
                os.kill(child, signal.SIGKILL)
                break
            try:
                result = pickle.load(results)  # from our own child
            except EOFError:
                break
            finished += 1
            yield result
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if finished == len(seeds):
        return []
    seed = seeds[finished]
    ended = (
        "waits for ever"
        if hung
        else f"signal {signal.Signals(-code).name}"
        if code < 0
        else f"exit code {code}"
    )
    damage = damage_input(READERS[name], intact, folder, seed)
    yield seed, "failed", Failure(name, seed, damage, ended)
    return seeds[finished + 1 :]


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


def attack(
    names: Sequence[str], folder: Path, cases: int, seed: int = 0, *, limited: bool, seconds: float = 1e9
) -> tuple[Counter[str], list[Failure]]:
    """Run `cases` cases of each reader; returns how they ended and the failures."""
    inputs = make_inputs(names, folder)
    ends: Counter[str] = Counter()
    failures: list[Failure] = []
    begin = time.monotonic()
    for name in names:
        for _, end, failure in run_cases(
            name, inputs[name], folder / "case", range(seed, seed + cases), limited=limited
        ):
            ends[end] += 1
            if failure is not None:
                failures.append(failure)
            if time.monotonic() - begin > seconds:
                return ends, failures
    return ends, failures


def main() -> None:
    """Attack readers by name, or all of them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--cases", type=int, default=100, help="of each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="in this process, without limits")
    parser.add_argument("--traces", action="store_true", help="print the stacks of failures")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    names = arguments.readers or list(READERS)
    total: Counter[str] = Counter()
    bad = 0
    for name in names:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            ends, failures = attack(
                [name], Path(folder), arguments.cases, arguments.seed, limited=not arguments.here
            )
        took = time.monotonic() - begin
        print(f"{name:22} {dict(ends)} {len(failures)} failures, {took:.1f} s", flush=True)
        seen: Counter[str] = Counter()
        for failure in failures:
            key = failure.what[:90]
            seen[key] += 1
            if seen[key] <= 2:
                print(f"    {failure}"[:600], flush=True)
                if arguments.traces and seen[key] == 1:
                    print(failure.trace[-3000:], flush=True)
        total += ends
        bad += len(failures)
    print(f"{sum(total.values()):,} cases: {dict(total)}; {bad} failures")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
