"""Atomic output: a file or folder appears complete or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from polyseme.errors import UsageError
from polyseme.io.atomic import (
    check_output_file,
    check_output_path,
    check_replaceable_folder,
    new_file,
    new_folder,
)

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def fill(path: Path, text: str = "new", **options) -> None:
    with new_file(path, **options) as file:
        file.write_text(text)


def fill_folder(path: Path, **options) -> None:
    with new_folder(path, **options) as folder:
        (folder / "weights").write_text("new")


def fail(opened) -> None:
    """Write part of the output and fail."""
    with opened as path:
        (path / "weights" if path.is_dir() else path).write_text("half")
        raise RuntimeError("half way")


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# ---- complete or not at all ----


@pytest.mark.parametrize("name", ["x.txt", "a/b/x.txt", "新/文 件.txt", "x" * 251 + ".txt"])
def test_a_file_appears_only_when_it_is_complete(name, tmp_path):
    path = tmp_path / name
    with new_file(path) as temporary:
        assert temporary.parent == path.parent  # on the same disk, so that the rename is atomic
        assert temporary.suffix == path.suffix  # some writers choose their format by it
        assert temporary.name.startswith(".")
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


@pytest.mark.parametrize("name", ["m", "a/b/m"])
def test_a_folder_appears_only_when_it_is_complete(name, tmp_path):
    path = tmp_path / name
    with new_folder(path) as temporary:
        assert temporary.parent == path.parent
        (temporary / "weights").write_text("new")
        assert not path.exists()
    assert list_files(path) == ["weights"]
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize("name", ["x", "a/b/x"])
@pytest.mark.parametrize("new", [new_file, new_folder])
def test_an_error_leaves_nothing_behind(new, name, tmp_path):
    with pytest.raises(RuntimeError, match="half way"):
        fail(new(tmp_path / name))
    assert list_files(tmp_path) == []


def test_an_error_does_not_delete_new_folders_that_others_use(tmp_path):
    (tmp_path / "a").mkdir()
    opened = new_file(tmp_path / "a/b/c/x")
    opened.__enter__()
    (tmp_path / "a/b/theirs").write_text("another program")
    assert not opened.__exit__(RuntimeError, RuntimeError("half way"), None)
    assert list_files(tmp_path) == ["a", "a/b", "a/b/theirs"]


def test_an_error_leaves_existing_output_unchanged(tmp_path):
    file, folder = tmp_path / "x", tmp_path / "m"
    file.write_text("old")
    folder.mkdir()
    (folder / "weights").write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        fail(new_file(file, force=True))
    with pytest.raises(RuntimeError, match="half way"):
        fail(new_folder(folder, force=True, known_names=["weights"]))
    assert file.read_text() == (folder / "weights").read_text() == "old"
    assert list_files(tmp_path) == ["m", "m/weights", "x"]


def test_a_full_disk_is_a_usage_error(tmp_path):
    def fill_disk(path: Path) -> None:
        raise OSError(28, "No space left on device")

    for new in (new_file, new_folder):
        with (
            pytest.raises(UsageError, match=r"x: writing failed \(No space left on device\)"),
            new(tmp_path / "x") as path,
        ):
            fill_disk(path)
    assert list_files(tmp_path) == []


# ---- existing output ----


def test_existing_output_is_replaced_only_with_force(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    for call in (check_output_path, check_output_file, fill):
        with pytest.raises(UsageError, match=r"x: exists already\. Choose another name, or `force=True`"):
            call(path)
    assert path.read_text() == "old"
    check_output_file(path, force=True)
    fill(path, force=True)
    assert path.read_text() == "new"


@pytest.mark.parametrize("force", [False, True])
def test_a_file_never_replaces_a_folder(force, tmp_path):
    (tmp_path / "x").mkdir()
    for call in (check_output_file, fill):
        with pytest.raises(UsageError, match="x: is a folder, but a file will be written"):
            call(tmp_path / "x", force=force)


def test_a_folder_is_replaced_with_force_if_it_has_only_known_files(tmp_path):
    path = tmp_path / "m"
    fill_folder(path)
    (path / "old").write_text("ours too")
    with pytest.raises(UsageError, match="m: exists already"):
        fill_folder(path, known_names=["weights", "old"])
    fill_folder(path, force=True, known_names=["weights", "old"])
    assert list_files(tmp_path) == ["m", "m/weights"]


def test_a_folder_with_other_files_is_not_replaced_even_with_force(tmp_path):
    path = tmp_path / "m"
    path.mkdir()
    for name in "edcba":
        (path / name).write_text("theirs")
    for call in (check_replaceable_folder, fill_folder):
        with pytest.raises(UsageError, match="m: contains other files, a, b, c and 1 more, which would"):
            call(path, force=True, known_names=["e"])
    assert list_files(path) == ["a", "b", "c", "d", "e"]


def test_a_link_is_replaced_and_its_target_stays(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(UsageError, match="exists already"):
        fill(tmp_path / "link")
    fill(tmp_path / "link", force=True)
    assert (tmp_path / "real").read_text() == "old"
    assert (tmp_path / "link").read_text() == "new"


# ---- checks before the work ----


def test_a_check_writes_nothing(tmp_path):
    check_output_path(tmp_path / "a/b/x")
    check_output_file(tmp_path / "a/b/x")
    check_replaceable_folder(tmp_path / "a/b/x")
    assert list_files(tmp_path) == []


@pytest.mark.parametrize(
    "call", [check_output_path, check_output_file, check_replaceable_folder, fill, fill_folder]
)
def test_a_path_that_cannot_be_written_is_refused(call, tmp_path):
    (tmp_path / "file").write_text("a file, no folder")
    paths = ["/proc/nowhere/x", str(tmp_path / "file" / "x"), str(tmp_path / ("x" * 300))]
    if not ROOT:
        (tmp_path / "locked").mkdir(mode=0o500)
        paths += [str(tmp_path / "locked" / "x"), str(tmp_path / "locked" / "a" / "b")]
    for path in paths:
        with pytest.raises(UsageError, match=r"cannot be written \(.+\)\. Choose another path"):
            call(Path(path))


def test_relative_paths_and_the_root_are_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(Path("x"))
    fill(Path("a/x"))
    assert list_files(tmp_path) == ["a", "a/x", "x"]
    with pytest.raises(UsageError, match="is a folder"):
        check_output_file(Path("/"), force=True)


# ---- permissions ----


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_have_the_usual_permissions(mask, tmp_path):
    before = os.umask(mask)
    try:
        fill(tmp_path / "x")
        with new_folder(tmp_path / "m") as folder:
            (folder / "weights").touch(mode=0o600)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x", "m", "m/weights")]
    assert modes == [0o666 & ~mask, 0o777 & ~mask, 0o666 & ~mask]
