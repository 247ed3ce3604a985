"""Several processes train the same model as one process, and handle kills, signals and long waits."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import training_story as story
from polyseme.training.bilm_trainable import _interleave

PLAIN = ("train.dropout=0", "train.optimizer=sgd", "train.rate=0.5", "train.epochs=2", "softmax.kind=sampled")
SETTINGS = [part for line in (*story.SETTINGS, *PLAIN, "softmax.samples=9") for part in ("--set", line)]


def command(text: Path, out: Path, *more: str) -> list[str]:
    return ["-m", "polyseme", "pretrain", str(text), "--out", str(out), "--config", "tiny", *SETTINGS, *more]


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [*launcher, "--max-restarts", str(restarts), *arguments]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def start(arguments: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("order", ["rows", "sentences"])
def test_two_processes_train_the_same_model_as_one(order: str, tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    more = ("--set", f"train.order={order}")
    finish([sys.executable, *command(text, tmp_path / "one", *more)])
    finish(torchrun(*command(text, tmp_path / "two", *more)))
    assert_close(weights(tmp_path / "one"), weights(tmp_path / "two"))


@pytest.mark.parametrize("kill_signal", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_is_restarted_and_the_run_continues(kill_signal: signal.Signals, tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    more = ("--set", "train.epochs=40", "--set", "train.save_seconds=0.3")
    run = start(torchrun(*command(text, tmp_path / "run", *more), restarts=2))
    wait_for_checkpoint(tmp_path / "run")
    os.kill(workers_of(run.pid)[-1], kill_signal)
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 0, output[-3000:]
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_sigterm_to_the_launcher_saves_and_stops_all_processes(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    more = ("--set", "train.epochs=4000", "--set", "train.save_seconds=0.3")
    run = start(torchrun(*command(text, tmp_path / "run", *more), restarts=3))
    wait_for_checkpoint(tmp_path / "run")
    workers = workers_of(run.pid)
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    stops = set(re.findall(r"Stopped at step (\d+); the run is saved", output))
    assert len(stops) == 1, output[-3000:]  # both processes stopped at the same step
    assert output.count("Stopped at step") == len(workers) == 2
    last = max((tmp_path / "run" / "checkpoints").glob("step-*")).name
    assert last == f"step-{int(stops.pop()):09d}"
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_run_of_two_processes_is_resumed_in_one(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    half, whole = (
        ("--set", f"train.epochs={epochs}", "--set", "train.save_seconds=0.001") for epochs in (0.5, 1)
    )
    finish(torchrun(*command(text, tmp_path / "run", *half)))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["processes"] == 2
    finish([sys.executable, *command(text, tmp_path / "run", *whole, "--resume", "--force")])
    finish([sys.executable, *command(text, tmp_path / "alone", *whole)])
    ends = [max((tmp_path / name / "checkpoints").glob("step-*")) for name in ("run", "alone")]
    assert ends[0].name == ends[1].name
    assert_close(weights(ends[1]), weights(ends[0]))
    states = [load_file(end / "carried-0.safetensors") for end in ends]
    assert states[0]["0.memory"].abs().sum() > 0
    assert_close(states[1], states[0])


def test_rows_are_redistributed_to_another_number_of_processes():
    rows = torch.arange(14.0).reshape(2, 7, 1)
    for world in (1, 2, 3, 7):
        assert torch.equal(_interleave([rows[:, rank::world] for rank in range(world)]), rows)


PROGRAM = """
import sys, time
from datetime import timedelta
from torch.nn.parallel import DistributedDataParallel as Shared
from polyseme import cli
from polyseme.training import distributed, pretrain

timeout, preparation = (float(sys.argv.pop(1)) for _ in range(2))
no_sync, prepare_corpus, calls = Shared.no_sync, pretrain.prepare_corpus, []
def count_and_call(shared):
    calls.append(shared)
    return no_sync(shared)
def wait_and_prepare(*arguments, **options):
    time.sleep(preparation)
    return prepare_corpus(*arguments, **options)
Shared.no_sync, pretrain.prepare_corpus = count_and_call, wait_and_prepare
distributed.TIMEOUT = timedelta(seconds=timeout)
try:
    cli.main()
finally:
    print("unsynchronised batches:", len(calls), flush=True)
"""


def program(folder: Path, timeout: float, preparation: float, *arguments: str) -> list[str]:
    """The command line with another timeout, a slower preparation, and a count of unsynchronised batches."""
    (folder / "program.py").write_text(PROGRAM)
    return [str(folder / "program.py"), str(timeout), str(preparation), *arguments]


def test_accumulated_gradients_are_averaged_once_per_step(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    more = ("--set", "train.accumulate=3")
    finish([sys.executable, *command(text, tmp_path / "one", *more)])
    words = command(text, tmp_path / "two", *more)[2:]
    output = finish(torchrun(*program(tmp_path, 60, 0, *words)))
    assert_close(weights(tmp_path / "one"), weights(tmp_path / "two"))
    end = json.loads((tmp_path / "two" / "metrics.jsonl").read_text().splitlines()[-1])
    assert output.count(f"unsynchronised batches: {2 * end['step']}\n") == 2, output[-3000:]


def test_processes_wait_for_the_corpus_longer_than_the_timeout(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    words = command(text, tmp_path / "run", "--set", "train.epochs=1")[2:]
    finish(torchrun(*program(tmp_path, 5, 12, *words)))


def test_a_refused_run_stops_all_processes_and_overwrites_nothing_on_restart(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("mine")
    run = start(torchrun(*command(text, tmp_path / "run"), restarts=1))
    output, _ = run.communicate(timeout=120)
    assert run.returncode != 0
    assert output.count("exists already") == 2  # at the start and at the restart
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["letter.txt"]
    assert "polyseme/training" not in output  # no traceback


def finish(arguments: list[str]) -> str:
    """Run a command that succeeds, and return its output."""
    run = start(arguments)
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 0, output[-3000:]
    return output


def assert_close(expected: dict[str, torch.Tensor], actual: dict[str, torch.Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        torch.testing.assert_close(values, actual[name], atol=2e-5, rtol=1e-4, msg=name)


def wait_for_checkpoint(out: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not list((out / "checkpoints").glob("step-*")):
        time.sleep(0.1)


def workers_of(launcher: int) -> list[int]:
    """The training processes that torchrun started."""
    workers = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parent = next(line for line in status.read_text().splitlines() if line.startswith("PPid:"))
            words = (status.parent / "cmdline").read_bytes()
        except OSError:  # the process ended meanwhile
            continue
        if int(parent.split()[1]) == launcher and b"polyseme" in words:
            workers.append(int(status.parent.name))
    return sorted(workers)
