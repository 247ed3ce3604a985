"""Several processes train the model that one would, and survive a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import story
import torch
from safetensors.torch import load_file

PLAIN = ("train.dropout=0", "train.optimizer=sgd", "train.rate=0.5", "train.epochs=2", "softmax.kind=sampled")
SETTINGS = [part for line in (*story.SETTINGS, *PLAIN, "softmax.samples=9") for part in ("--set", line)]


def command(text: Path, out: Path, *more: str) -> list[str]:
    return ["-m", "polyseme", "pretrain", str(text), "--out", str(out), "--config", "tiny", *SETTINGS, *more]


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [*launcher, "--max-restarts", str(restarts), *arguments]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def start(words: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("order", ["rows", "sentences"])
def test_two_processes_give_the_model_that_one_gives(order: str, tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    more = ("--set", f"train.order={order}")
    alone = start([sys.executable, *command(text, tmp_path / "one", *more)])
    output, _ = alone.communicate(timeout=120)
    assert alone.returncode == 0, output
    pair = start(torchrun(*command(text, tmp_path / "two", *more)))
    output, _ = pair.communicate(timeout=180)
    assert pair.returncode == 0, output[-3000:]
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, values in one.items():
        torch.testing.assert_close(values, two[name], atol=2e-5, rtol=1e-4, msg=name)


def test_a_killed_worker_is_restarted_and_the_run_goes_on(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    more = ("--set", "train.epochs=40", "--set", "train.save_seconds=0.3")
    run = start(torchrun(*command(text, tmp_path / "run", *more), restarts=2))
    checkpoints = tmp_path / "run" / "checkpoints"
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not list(checkpoints.glob("step-*")):
        time.sleep(0.1)
    os.kill(workers_of(run.pid)[-1], signal.SIGKILL)
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 0, output[-3000:]
    assert (tmp_path / "run" / "model.safetensors").exists()


def workers_of(launcher: int) -> list[int]:
    """The training processes that torchrun started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parent = next(line for line in status.read_text().splitlines() if line.startswith("PPid:"))
            words = (status.parent / "cmdline").read_bytes()
        except OSError:  # gone meanwhile
            continue
        if int(parent.split()[1]) == launcher and b"polyseme" in words:
            found.append(int(status.parent.name))
    return sorted(found)
