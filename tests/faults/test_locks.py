"""Two processes do not write the same output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faults.verbs import VERBS, list_verbs, make_arguments, run_command, write_inputs
from polyseme.errors import UsageError
from polyseme.io.output_lock import lock_output

pytest.importorskip("fcntl")
HOLDER = """
import sys
from pathlib import Path
from polyseme.io.output_lock import lock_output
with lock_output(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    return holder


def test_the_second_process_is_refused_and_told_which_one_writes(tmp_path: Path):
    with hold(tmp_path / "out") as holder:
        refused = pytest.raises(UsageError, match=rf"out: process {holder.pid} is writing it\. Wait")
        with refused, lock_output(tmp_path / "out"):
            pass
        with lock_output(tmp_path / "other"):
            pass
        holder.communicate()
    with lock_output(tmp_path / "out"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_killed_process_stops_nobody(tmp_path: Path):
    with hold(tmp_path / "out") as holder:
        holder.kill()
        holder.wait()
    assert (tmp_path / ".out.lock").exists()
    with lock_output(tmp_path / "out"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize("verb", list_verbs())
def test_every_verb_that_writes_is_refused_while_another_process_writes_the_same(
    verb: str, inputs: dict[str, Path], tmp_path: Path
):
    folder = tmp_path / "outputs"
    folder.mkdir()
    out = folder / VERBS[verb].out
    arguments = make_arguments(VERBS[verb], inputs, out)
    with hold(out) as holder:
        assert run_command(arguments, tmp_path / "stderr") == 2
        last = (tmp_path / "stderr").read_text(encoding="utf-8").splitlines()[-1]
        assert f"{out}: process {holder.pid} is writing it. Wait" in last
        holder.communicate()
    assert not out.exists()
    assert not list(folder.iterdir())


def test_of_two_processes_that_convert_to_one_path_one_writes_it(inputs: dict[str, Path], tmp_path: Path):
    out = tmp_path / "model"
    command = [sys.executable, "-m", "polyseme", *make_arguments(VERBS["convert"], inputs, out, "--force")]
    runs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ends = [(run.communicate()[1], run.returncode) for run in runs]
    for errors, code in ends:
        assert code == 0 or (code == 2 and "is writing it" in errors), errors
    assert any(code == 0 for _, code in ends)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert run_command(["info", str(out)], tmp_path / "stderr") == 0
