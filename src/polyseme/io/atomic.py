"""Write files, folders and groups of files completely or not at all.

    text.corpus.prepared, formats, training, tasks, search, api  ->  io.atomic  ->  disk

Paths are checked before the work begins. Everything is written under a temporary name next to the output path
and renamed at the end, so that an error leaves what was there before. A process may be killed at any moment:
a folder is exchanged in one step where the system can do that, and `complete_write`, which readers and
writers call first, finishes what a killed process had begun to move.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polyseme.errors import FormatError, UsageError

COMMITTED = ".committed"  # ends the name of a group of files that is complete, but not yet moved
REMOVED = ".removed"  # in such a folder: names of files to remove, one per line
REPLACED = ".replaced-"  # begins the names of folders in it that were replaced
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
RENAME_SWAP = 2  # of macOS


def check_output_path(path: Path, *, force: bool = False) -> None:
    """Refuse an output path that exists (unless `force`) or whose folder cannot be written to.

    Raises:
        UsageError: The path exists, or nothing can be written there.

    """
    try:
        complete_write(path)
        if path.exists() and not force:
            raise UsageError(f"{path}: exists already. Choose another name, or `force=True` to replace it.")
        folder = path.absolute().parent
        while not folder.exists():  # it will be created, in the nearest folder that exists
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise UsageError(f"{path}: cannot be written ({problem.strerror}). Choose another path.") from None


def check_output_file(path: Path, *, force: bool = False) -> None:
    """Check an output path for a file: as `check_output_path`, and refuse to replace a folder by a file."""
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a folder, but a file will be written. Choose another name.")
    check_output_path(path, force=force)


def check_output_folder(path: Path, *, force: bool = False) -> None:
    """Check an output path for a folder: as `check_output_path`, and refuse to replace a file by a folder."""
    check_output_path(path, force=force)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is a file, but a folder will be written. Choose another name.")


def check_replaceable_folder(path: Path, *, force: bool = False, known_names: Collection[str] = ()) -> None:
    """As `check_output_path`, and refuse to replace a folder with files other than `known_names`."""
    check_output_path(path, force=force)
    foreign = (
        sorted(entry.name for entry in path.iterdir() if entry.name not in known_names)
        if path.is_dir()
        else []
    )
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise UsageError(
            f"{path}: contains other files, {', '.join(foreign[:3])}{more}, which would be lost. "
            "Choose another name."
        )


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Write a file atomically.

    Args:
        path: The output path.
        force: Replace a file that exists.

    Yields:
        A temporary file beside `path`, which is renamed to `path` if the block ends without an error.

    Raises:
        UsageError: The path exists, is a folder, or cannot be written.

    """
    check_output_file(path, force=force)
    with _parent_of(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:40]}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _sync(temporary)
            temporary.chmod(0o666 & ~_read_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path, *, force: bool = False, known_names: Collection[str] = ()) -> Iterator[Path]:
    """Write a folder atomically.

    Args:
        path: The output path.
        force: Replace a folder that exists.
        known_names: With `force`, names that the folder at `path` may contain; others are not overwritten.

    Yields:
        A temporary folder beside `path`, which is renamed to `path` if the block ends without an error.

    Raises:
        UsageError: The path exists, contains other files, or cannot be written.

    """
    check_replaceable_folder(path, force=force, known_names=known_names)
    with _parent_of(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}-"))
        try:
            yield temporary
            _finish_files(temporary)
            _replace(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def new_group(folder: Path, name: str, *, known_names: Collection[str] = ()) -> Iterator[Path]:
    """Replace several files of a folder as one: after a kill all of them are the old or all the new ones.

    The files are complete when their temporary folder is renamed to `.NAME.committed`. They move to their
    names after that; if the process is killed meanwhile, `complete_write` moves the rest.

    Args:
        folder: The folder, which may contain other files.
        name: Names the group: only one process at a time may write it.
        known_names: Names that such a group may have; those that the block does not write are removed.

    Yields:
        A temporary folder, whose files and folders replace those of the same names in `folder`.

    Raises:
        UsageError: Writing failed.

    """
    committed = _name_committed(folder, name)
    with _parent_of(committed):
        complete_write(folder)
        remove_leftovers(folder, re.escape(name[:40]))
        temporary = Path(tempfile.mkdtemp(dir=folder, prefix=f".{name[:40]}-"))
        try:
            yield temporary
            removed = set(known_names) - {entry.name for entry in temporary.iterdir()}
            lines = "".join(f"{entry}\n" for entry in sorted(removed))
            (temporary / REMOVED).write_text(lines, encoding="utf-8")
            _finish_files(temporary)
            temporary.rename(committed)
            _move_group(committed)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def complete_write(path: Path) -> None:
    """Finish a write that a killed process had begun to move: afterwards everything is old or new.

    Args:
        path: A file or folder that is about to be read or written.

    Raises:
        FormatError: It cannot be finished, since nothing can be written there.

    """
    groups = [_name_committed(path.parent, path.name)]
    if os.path.isdir(path):  # False for a name that is too long, too
        groups += sorted(path.glob(f".*{COMMITTED}"))
    try:
        for group in groups:
            if os.path.isdir(group) and not group.is_symlink():
                _move_group(group)
        if path.name and not os.path.exists(path) and os.path.isdir(path.parent):
            _restore_replaced(path)
    except OSError as problem:
        raise FormatError(
            f"{path}: a killed process left it half replaced, and it cannot be completed "
            f"({problem.strerror or problem}). Open it once with permission to write."
        ) from None


def remove_leftovers(folder: Path, *names: str) -> None:
    """Remove temporary folders of `new_folder` that a killed process left in `folder`.

    A folder that was moved away, and whose replacement is missing, is moved back.

    Args:
        folder: Where to look.
        names: Regular expressions for the names of the output folders.

    """
    pattern = re.compile(rf"\.({'|'.join(names)})-[a-z0-9_]{{8}}(-old)?")
    for entry in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():  # -old ones first
        match = pattern.fullmatch(entry.name)
        if match is None or entry.is_symlink() or not entry.is_dir():
            continue
        if match[2] and not (folder / match[1]).exists():
            entry.rename(folder / match[1])
        else:
            shutil.rmtree(entry, ignore_errors=True)


def remove_killed_writes(path: Path) -> None:
    """Remove what killed processes had begun to write for an output; only its one writer may call this."""
    names = rf"\.{re.escape(path.stem[:40])}-[a-z0-9_]{{8}}{re.escape(path.suffix)}"
    folders = rf"\.{re.escape(path.name[:40])}-[a-z0-9_]{{8}}"
    with suppress(OSError):  # they are in nobody's way
        for entry in sorted(path.absolute().parent.iterdir()):
            if entry.is_symlink():
                continue
            if re.fullmatch(folders if entry.is_dir() else names, entry.name):
                _remove(entry)


@contextmanager
def _parent_of(path: Path) -> Iterator[None]:
    """Create the parent folder of `path`; if the block fails, remove the folders that were created."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]  # innermost first
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException as problem:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(problem, OSError):
            raise UsageError(
                f"{path}: writing failed ({problem.strerror or problem}). Free space, or choose another path."
            ) from problem
        raise


def _name_committed(folder: Path, name: str) -> Path:
    """Where the files of a group are when they are complete and not yet moved."""
    return folder / f".{name[:40]}{COMMITTED}"


def _finish_files(folder: Path) -> None:
    """Give new files the permissions of the umask, and fsync them."""
    mask = _read_umask()
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(0o666 & ~mask)  # safetensors makes files private to the user
            _sync(file)
    folder.chmod(0o777 & ~mask)


def _move_group(committed: Path) -> None:
    """Move the files of a complete group to their names, and remove those that are not part of it.

    Every step can be repeated: what was moved is no longer in `committed`, where folders that were replaced
    are kept until the end.
    """
    folder, removed = committed.parent, committed / REMOVED
    for entry in sorted(committed.iterdir()):
        path = folder / entry.name
        if entry.name == REMOVED or entry.name.startswith(REPLACED):
            continue
        if path.is_dir() and not path.is_symlink():
            path.rename(committed / f"{REPLACED}{entry.name}")
        entry.replace(path)
    names = removed.read_text(encoding="utf-8").splitlines() if removed.is_file() else []
    for name in names:
        if Path(name).name == name:  # nothing outside of the folder
            _remove(folder / name)
    shutil.rmtree(committed)


def _replace(temporary: Path, path: Path) -> None:
    """Rename `temporary` to `path`; what was there is removed only after that."""
    if not path.exists() and not path.is_symlink():
        temporary.rename(path)
        return
    if _exchange(temporary, path):
        _remove(temporary)
        return
    old = temporary.with_name(temporary.name + "-old")  # see _restore_replaced
    path.rename(old)
    try:
        temporary.rename(path)
    except OSError:
        old.rename(path)
        raise
    _remove(old)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two paths in one step; False if the system or the file system cannot do that."""
    names = (os.fsencode(first), os.fsencode(second))
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return bool(libc.renamex_np(*names, RENAME_SWAP) == 0)
        return bool(libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0)
    except (OSError, AttributeError, TypeError):  # a C library without these calls; Windows
        return False


def _restore_replaced(path: Path) -> None:
    """Move a folder back that was moved away, if its replacement is missing."""
    pattern = re.compile(rf"\.{re.escape(path.name[:40])}-[a-z0-9_]{{8}}-old")
    for entry in sorted(path.parent.iterdir()):
        if pattern.fullmatch(entry.name) and not entry.is_symlink():
            entry.rename(path)
            return


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    """Fsync a file before it is renamed."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def _read_umask() -> int:
    """Read the umask of the process, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
