"""A full disk is one line, and the old result stays: on a real file system that is too small."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme
import task_files as toys
from faults.verbs import VERBS, list_verbs, make_arguments, run_command, write_inputs
from polyseme.errors import UsageError

FULL = "No space left on device"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of 96 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a small file system here (needs root on Linux)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, leave: int) -> None:
    """Leave only `leave` bytes free."""
    free = os.statvfs(disk)
    size = free.f_bavail * free.f_frsize - leave
    (disk / "ballast").write_bytes(b"\1" * size)


def check_full(verb: str, inputs: dict[str, Path], out: Path, stderr: Path, *more: str) -> None:
    code = run_command(make_arguments(VERBS[verb], inputs, out, *more), stderr)
    errors = stderr.read_text(encoding="utf-8")
    assert code == 2, errors[-2000:]
    assert FULL in errors.splitlines()[-1]
    assert "Traceback" not in errors


@pytest.mark.parametrize("leave", [0, 4096])
@pytest.mark.parametrize("verb", list_verbs())
def test_a_full_disk_is_one_line_and_with_space_the_verb_can_be_repeated(
    verb: str, leave: int, inputs: dict[str, Path], small_disk: Path, tmp_path: Path
):
    fill(small_disk, leave)
    out = small_disk / VERBS[verb].out
    check_full(verb, inputs, out, tmp_path / "stderr")
    if not leave:
        return
    (small_disk / "ballast").unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    resumed = ["--resume"] if (out / "run.json").exists() or (out / "plan.json").exists() else []
    code = run_command(make_arguments(VERBS[verb], inputs, out, *resumed), tmp_path / "stderr")
    assert code == 0, (tmp_path / "stderr").read_text(encoding="utf-8")[
        -2000:
    ]  # with space it can be repeated
    leftovers = [entry.name for entry in small_disk.iterdir() if entry.name.startswith(".")]
    assert not leftovers


def test_a_disk_that_is_full_at_any_file_of_a_task_is_one_line(small_disk: Path, tmp_path: Path):
    """The weights are written by safetensors, which has errors of its own: see formats.tensors."""
    table = toys.write(tmp_path) / "train.csv"
    task = polyseme.train("classification", toys.elmo(), train=table, settings=toys.EPOCH)
    refused = 0
    for leave in range(0, 96 << 10, 4096):
        fill(small_disk, leave)
        try:
            task.save(small_disk / "task")
        except UsageError as problem:
            assert FULL in str(problem)  # noqa: PT017
            refused += 1
            assert [entry.name for entry in small_disk.iterdir()] == ["ballast"]
        else:
            assert refused > 1
            return
        (small_disk / "ballast").unlink()
    raise AssertionError("the task was never saved")


REPLACED = ("convert", "cache", "embed", "export", "export usages", "map", "change")


@pytest.mark.parametrize("verb", REPLACED)
def test_what_should_be_replaced_stays_on_a_full_disk(
    verb: str, inputs: dict[str, Path], small_disk: Path, tmp_path: Path
):
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    out = small_disk / VERBS[verb].out
    assert run_command(make_arguments(VERBS[verb], inputs, out), tmp_path / "stderr") == 0
    before = read_files(out)
    fill(small_disk, 4096)
    check_full(verb, inputs, out, tmp_path / "stderr", "--force")
    assert read_files(out) == before


def read_files(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {str(file): file.read_bytes() for file in files}
