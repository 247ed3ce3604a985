"""Static vectors of a task: read for the words that are asked for, kept in the task's folder, found again.

    text.static_vectors  ->  tasks.static_vectors  ->  tasks.nn.featurizer, tasks.task_model

A folder keeps the file of vectors, since new texts have new words: a copy, or where it lies; and its
fingerprint. S values of a vector, T tokens.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.errors import FormatError
from polyseme.text.fingerprint import checksum
from polyseme.text.static_vectors import read_vectors

COPY = "static.vectors"  # its content, not its name, says which format it has


class Static:
    """Static vectors of the words that were needed so far, from one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: dict[str, np.ndarray] = {}
        self._asked: set[str] = set()
        self.dim = read_vectors(path, only=(), limit=1).dim

    def need(self, words: Iterable[str]) -> None:
        """Read the vectors of words that were not asked for before, or of their lower case."""
        new = {form for word in words for form in (word, word.lower())} - self._asked
        if not new:
            return
        found = read_vectors(self.path, only=new)
        self._known |= {word: found.matrix[row] for word, row in found.words.items()}
        self._asked |= new

    def rows(self, tokens: Sequence[str]) -> np.ndarray:
        """(T, S); zeros for words that the file does not have."""
        missing = np.zeros(self.dim, np.float32)
        return np.stack([self._known.get(t, self._known.get(t.lower(), missing)) for t in tokens])


def keep(path: str | None, folder: Path, *, copy: bool) -> dict[str, str] | None:
    """Copy the file into a task's folder, or note its path; give what task.json says of it."""
    target = folder / COPY
    if path is None or not copy:
        if path is None or not target.exists() or not target.samefile(path):
            target.unlink(missing_ok=True)  # of an earlier model in this folder
        return None if path is None else {"path": path, "fingerprint": checksum(Path(path))}
    if not (target.exists() and target.samefile(path)):
        shutil.copyfile(path, target)
    return {"file": COPY, "fingerprint": checksum(target)}


def find(
    known: dict[str, Any] | None, path: str | None, folder: Path, given: str | Path | None
) -> str | None:
    """The file of a task's static vectors, checked by its fingerprint; `path`: as the settings have it.

    Folders that earlier versions wrote have the path alone.
    """
    if path is None:
        return None
    noted = known or {}
    place = (
        Path(given).expanduser() if given else folder / COPY if "file" in noted else noted.get("path", path)
    )
    if not Path(place).is_file():
        raise FormatError(
            f"{folder}: its static vectors are gone: {place} is not there. Put the file back, or say which "
            "one: load_task(folder, static=…), --static."
        )
    if noted and checksum(Path(place)) != noted.get("fingerprint"):
        raise FormatError(
            f"{folder}: {place} holds other static vectors than those this task was trained with. "
            "Give it the right file, or train the task again."
        )
    return str(Path(place).absolute())
