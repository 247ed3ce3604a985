"""Hash files and values, and notice files that change while they are read.

    files, settings  ->  text.fingerprint  ->  text.corpus.prepared, training.run_record, tasks

A `Stamp` has a hash of the content of a file. A file with the name, size and time of an earlier stamp is not
read again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import DataError


class Stamp(NamedTuple):
    """A file as it was when it was hashed."""

    path: str  # absolute
    size: int
    time: int  # nanoseconds
    content: str  # hash of the content


def stamp(files: Iterable[Path], known: Sequence[Stamp] = ()) -> list[Stamp]:
    """Hash files, unless an equal stamp is known.

    Args:
        files: The files.
        known: Stamps of an earlier run.

    Raises:
        DataError: A file cannot be read, or changes meanwhile.

    """
    hashes = {(old.path, old.size, old.time): old.content for old in known}
    stamps = []
    for file in files:
        path, size, time = _read_state(file)
        content = hashes.get((path, size, time)) or _hash(file)
        if _read_state(file) != (path, size, time):
            raise _make_change_error(file)
        stamps.append(Stamp(path, size, time, content))
    return stamps


def check_unchanged(files: Sequence[Path], stamps: Sequence[Stamp]) -> None:
    """Refuse to continue if a file changed since it was stamped."""
    for file, old in zip(files, stamps, strict=True):
        if _read_state(file) != old[:3]:
            raise _make_change_error(file)


def digest(value: Any) -> str:
    """A short hash of values that can be written as JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def checksum(file: Path) -> str:
    """SHA-256 of the content of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_state(file: Path) -> tuple[str, int, int]:
    """Path, size and time of a file."""
    try:
        status = file.stat()
    except OSError as problem:
        raise DataError(
            f"{file}: can no longer be read ({problem.strerror}). Put it back, and start again."
        ) from None
    return os.path.abspath(file), status.st_size, status.st_mtime_ns


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as problem:
        raise DataError(f"{file}: cannot be read ({problem.strerror}). Check its permissions.") from None


def _make_change_error(file: Path) -> DataError:
    return DataError(f"{file}: changed while it was read. Start again when no program writes to it.")
