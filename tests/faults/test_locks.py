"""Two processes do not write the same output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
