"""SIGTERM at any moment of a verb: it ends at once, nothing stays behind, and the verb can be repeated."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faults.verbs import VERBS, list_verbs, make_arguments, write_inputs

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


RESUMED = ("pretrain", "train", "train --curve", "index", "embed folder", "book")


def list_session(leader: int) -> list[int]:
    """The processes that a process started, and those that they started; zombies do not count."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(entry.name))
    return found


def run_and_stop(arguments: list[str], folder: Path, delay: float) -> tuple[int, str]:
    """Run a command, and send it SIGTERM so long after it began to write."""
    command = [sys.executable, "-m", "polyseme", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while process.poll() is None and not list(folder.iterdir()):
            time.sleep(0.01)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        errors = process.stderr.read()
        code = process.wait(120)
    end = time.monotonic() + 30
    while list_session(process.pid):
        assert time.monotonic() < end, "a process that the command started runs on"
        time.sleep(0.1)
    return code, errors


@pytest.mark.slow
@pytest.mark.parametrize("verb", list_verbs())
def test_a_verb_that_sigterm_ended_can_be_repeated(verb: str, inputs: dict[str, Path], tmp_path: Path):
    rng = random.Random(verb)
    folder = tmp_path / "outputs"
    folder.mkdir()
    out = folder / VERBS[verb].out
    for delay in (0.0, rng.random() * 0.2, rng.random()):
        if out.exists() and verb not in RESUMED:
            break
        resumed = ["--resume"] if (out / "run.json").exists() or (out / "plan.json").exists() else []
        code, errors = run_and_stop(make_arguments(VERBS[verb], inputs, out, *resumed), folder, delay)
        assert code in (0, 130, -signal.SIGTERM), errors[-2000:]  # 130: saved and stopped
        assert "Traceback" not in errors, errors[-2000:]
    command = [sys.executable, "-m", "polyseme", *make_arguments(VERBS[verb], inputs, out)]
    if (out / "run.json").exists() or (out / "plan.json").exists():
        command.append("--resume")
    elif out.exists() and verb not in ("index", "embed folder", "book"):
        command.append("--force")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert out.exists()
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]
