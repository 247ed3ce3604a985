"""A run that is killed and resumed gives exactly the model of an uninterrupted run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import training_story as story

PROGRAM = """
import sys, torch
from pathlib import Path
from polyseme.training.loop import StoppedError
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings

torch.set_num_threads(1)
text, out, resume, *settings = sys.argv[1:]
config = read_pretrain_settings("tiny", settings)
def print_step(position, metrics):
    print(position.step, flush=True)
try:
    pretrain([text], Path(out), config, resume=resume == "yes", on_metrics=print_step, workers=1)
except StoppedError as stopped:
    print(stopped)
    sys.exit(75)
"""


def start(text: Path, out: Path, settings: list[str], *, resume: bool) -> subprocess.Popen:
    command = [sys.executable, "-c", PROGRAM, str(text), str(out), "yes" if resume else "no", *settings]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_step(process: subprocess.Popen, step: int) -> bool:
    """Wait until the process reaches `step`; return False if it ends before."""
    return any(line.strip().isdigit() and int(line) >= step for line in process.stdout)


@pytest.mark.parametrize("order", ["rows", "sentences"])
def test_a_run_killed_at_random_steps_and_resumed_gives_the_same_weights(order: str, tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 300)
    settings = [*story.SETTINGS, f"train.order={order}", "train.epochs=3", "train.save_seconds=0.05"]
    whole = start(text, tmp_path / "whole", settings, resume=False)
    _, errors = whole.communicate(timeout=120)
    assert whole.returncode == 0, errors
    rng = random.Random(5)
    kills = 0
    for attempt in range(12):
        resume = (tmp_path / "resumed" / "checkpoints").exists()
        process = start(text, tmp_path / "resumed", settings, resume=resume)
        kill_signal = signal.SIGKILL if attempt % 2 == 0 else signal.SIGTERM
        if attempt < 4 and wait_for_step(process, rng.randint(1, 25) + 20 * attempt):
            time.sleep(rng.random() * 0.05)
            process.send_signal(kill_signal)
            kills += 1
        process.communicate(timeout=120)
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert kills >= 2
    expected, actual = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "resumed"))
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert torch.equal(actual[name], values), name
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("whole", "resumed")]
    assert [without_time(line) for line in lines[0]] == [without_time(line) for line in lines[1]]


def without_time(line: str) -> tuple[object, ...]:
    values = json.loads(line)
    return tuple(value for name, value in values.items() if name != "seconds")


def test_sigterm_finishes_the_step_and_saves_a_checkpoint(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 300)
    process = start(text, tmp_path / "run", [*story.SETTINGS, "train.epochs=50"], resume=False)
    assert wait_for_step(process, 3)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "Continue with `resume=True`" in output
    assert len(os.listdir(tmp_path / "run" / "checkpoints")) == 1


def test_resuming_a_run_that_ended_repeats_no_step(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    settings = [*story.SETTINGS, "train.epochs=1", "train.save_seconds=1000"]
    outputs = []
    for resume in (False, True):
        process = start(text, tmp_path / "run", settings, resume=resume)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        outputs.append((output, load_file(tmp_path / "run" / "model.safetensors")))
    (first, weights), (second, again) = outputs
    assert first
    assert not second
    assert all(torch.equal(again[name], values) for name, values in weights.items())
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert sum('"event": "end"' in line for line in lines) == 1
