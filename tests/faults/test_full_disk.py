"""A full disk is one line, and the old result stays: on a real file system that is too small."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import builders
import task_files as toys
from polyseme.cli import main
from polyseme.formats.models.save import save_pretrained

FULL = "No space left on device"


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


def run(*arguments: str | Path, stderr: Path) -> int:
    """Run a command in a child process, since it may crash; returns its exit code."""
    child = os.fork()
    if child == 0:
        code: object = 1
        try:
            os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT), 2)
            sys.argv = ["polyseme", *map(str, arguments)]
            sys.stderr = os.fdopen(2, "w", closefd=False)
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("leave", [4096, 8192])
@pytest.mark.parametrize(
    ("out", "verb"),
    [
        ("tokens.hdf5", ["cache", "MODEL", "VOCAB"]),
        ("vectors.hdf5", ["embed", "MODEL", "TEXT"]),
        ("model", ["convert", "MODEL", "OUT", "--to", "hdf5"]),
        ("native", ["convert", "MODEL", "OUT", "--to", "native"]),
        ("task", ["train", "classification", "MODEL", "--train", "TABLE", "--set", "train.epochs=1"]),
        ("index", ["index", "MODEL", "TEXT", "--min-count", "1"]),
    ],
)
def test_a_full_disk_is_one_line_and_nothing_is_left(
    out: str, verb: list[str], leave: int, small_disk: Path, tmp_path: Path
):
    files = toys.write(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text("the bank failed !\nthe river bank\n" * 200, encoding="utf-8")
    words = tmp_path / "vocab.txt"
    words.write_text("<S>\n</S>\n<UNK>\n" + "".join(f"word{n}\n" for n in range(900)), encoding="utf-8")
    save_pretrained(builders.random_model(builders.small_config()), tmp_path / "m")
    fill(small_disk, leave)
    replaced = {"MODEL": tmp_path / "m", "TEXT": text, "VOCAB": words, "TABLE": files / "train.csv"}
    replaced["OUT"] = small_disk / out
    arguments = [replaced.get(part, part) for part in verb]
    if verb[0] != "convert":
        arguments += ["--out", small_disk / out]
    code = run(*arguments, stderr=tmp_path / "stderr")
    errors = (tmp_path / "stderr").read_text(encoding="utf-8")
    assert code == 2, errors[-2000:]
    assert FULL in errors.splitlines()[-1]
    assert "Traceback" not in errors
