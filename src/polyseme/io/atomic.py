"""Write files and folders completely or not at all.

    text.corpus.prepared, formats, training, search, api  ->  io.atomic  ->  disk

Paths are checked before the work begins. Files are written under a temporary name beside the output path and
renamed at the end, so that an error leaves what was there before.
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


def check_output_path(path: Path, *, force: bool = False) -> None:
    """Refuse an output path that exists (unless `force`) or whose folder cannot be written to.

    Raises:
        UsageError: The path exists, or nothing can be written there.

    """
    try:
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
            mask = _read_umask()
            for file in temporary.rglob("*"):
                if file.is_file():
                    file.chmod(0o666 & ~mask)  # safetensors makes files private to the user
                    _sync(file)
            temporary.chmod(0o777 & ~mask)
            _swap(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


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


def _swap(temporary: Path, path: Path) -> None:
    """Rename `temporary` to `path`; what was there is removed only after that."""
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
    """Fsync a file before it is renamed."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def _read_umask() -> int:
    """Read the umask of the process, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
