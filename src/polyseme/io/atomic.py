"""Output that is there whole or not at all.

    text.corpus.prepared, formats, training, api  ->  writing  ->  disk

A path is checked before the work begins; files are written under a temporary name beside the target
and renamed at the end, so that a fault leaves whatever was there before.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polyseme.errors import UsageError


def check_target(path: Path, *, force: bool = False) -> None:
    """Refuse a target that exists (unless `force`) or whose folder cannot be written to."""
    try:
        if path.exists() and not force:
            raise UsageError(f"{path}: exists already. Choose another name, or say --force to replace it.")
        folder = path.absolute().parent
        while not folder.exists():  # it will be made, in the nearest folder that is there
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise UsageError(f"{path}: cannot be written ({problem.strerror}). Choose another place.") from None


def check_file(path: Path, *, force: bool = False) -> None:
    """As check_target; and refuse to replace a folder by a file."""
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a folder, a file is to be written there. Choose another name.")
    check_target(path, force=force)


def check_place(path: Path, *, force: bool = False) -> None:
    """As check_target; and refuse to write a folder where a file is."""
    check_target(path, force=force)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is a file, a folder is to be written there. Choose another name.")


def check_folder(path: Path, *, force: bool = False, ours: Collection[str] = ()) -> None:
    """As check_target; and refuse to replace a folder that holds more than the files named in `ours`."""
    check_target(path, force=force)
    others = sorted(entry.name for entry in path.iterdir() if entry.name not in ours) if path.is_dir() else []
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise UsageError(
            f"{path}: holds other files, {', '.join(others[:3])}{more}, which would be lost. "
            "Choose another name."
        )


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it becomes `path` when the block ends well."""
    check_file(path, force=force)
    with _folder_of(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:40]}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _sync(temporary)
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path, *, force: bool = False, ours: Collection[str] = ()) -> Iterator[Path]:
    """A temporary folder beside `path` to fill; it becomes `path` when the block ends well.

    With `force` the whole folder at `path` is replaced, so it may hold no other names than `ours`.
    """
    check_folder(path, force=force, ours=ours)
    with _folder_of(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}-"))
        try:
            yield temporary
            mask = _umask()
            for file in temporary.rglob("*"):
                if file.is_file():
                    file.chmod(0o666 & ~mask)  # safetensors writes for the user alone
                    _sync(file)
            temporary.chmod(0o777 & ~mask)
            _swap(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(folder: Path, *names: str) -> None:
    """Remove what a killed process left in `folder` of the folders `names` (regular expressions).

    That is what `new_folder` and the like write under: `.name-` and eight random signs. A folder that was
    moved away, and whose successor did not come, goes back to its place.
    """
    pattern = re.compile(rf"\.({'|'.join(names)})-[a-z0-9_]{{8}}(-old)?")
    for entry in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():  # -old ones first
        found = pattern.fullmatch(entry.name)
        if found is None or entry.is_symlink() or not entry.is_dir():
            continue
        if found[2] and not (folder / found[1]).exists():
            entry.rename(folder / found[1])
        else:
            shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def _folder_of(path: Path) -> Iterator[None]:
    """Have the folder that `path` stands in; if the block fails, folders made for it go away again."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]  # the innermost first
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException as problem:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(problem, OSError):
            raise UsageError(f"{path}: writing failed ({problem.strerror or problem}).") from problem
        raise


def _swap(temporary: Path, path: Path) -> None:
    """Rename `temporary` to `path`; what stood there goes only after the new one is in place."""
    old = temporary.with_name(temporary.name + "-old")
    if path.exists():
        path.rename(old)
    try:
        temporary.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    """Have the file's bytes on the disk before its name says so."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def _umask() -> int:
    """The permissions that new files lack by the user's own setting."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
