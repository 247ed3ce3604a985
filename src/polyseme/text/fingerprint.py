"""What a corpus was made from: the content of files, and whether they stay as they are.

    text.corpus.documents (files)  ->  text.fingerprint  ->  text.corpus.prepared

Comes in: files. Goes out: `Stamp`, with a hash of the content. A file whose name, size and time are those of
an earlier stamp is not read again.
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
    """A file as it was found."""

    path: str  # absolute
    size: int
    time: int  # nanoseconds
    content: str  # a hash


def stamp(files: Iterable[Path], known: Sequence[Stamp] = ()) -> list[Stamp]:
    """Look at the files; content is hashed unless an equal stamp is known."""
    hashes = {(old.path, old.size, old.time): old.content for old in known}
    found = []
    for file in files:
        path, size, time = _state(file)
        content = hashes.get((path, size, time)) or _hash(file)
        if _state(file) != (path, size, time):
            raise _changed(file)
        found.append(Stamp(path, size, time, content))
    return found


def check_unchanged(files: Sequence[Path], stamps: Sequence[Stamp]) -> None:
    """Refuse to go on if a file is not as it was stamped."""
    for file, old in zip(files, stamps, strict=True):
        if _state(file) != old[:3]:
            raise _changed(file)


def digest(value: Any) -> str:
    """A short hash of anything that JSON can hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def checksum(file: Path) -> str:
    """SHA-256 of the content of a file, as published and noted beside files."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _state(file: Path) -> tuple[str, int, int]:
    try:
        found = file.stat()
    except OSError as problem:
        raise DataError(f"{file}: cannot be read any more ({problem.strerror}).") from None
    return os.path.abspath(file), found.st_size, found.st_mtime_ns


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as problem:
        raise DataError(f"{file}: cannot be read ({problem.strerror}).") from None


def _changed(file: Path) -> DataError:
    return DataError(f"{file}: changed while it was read. Start again when nothing writes to it.")
