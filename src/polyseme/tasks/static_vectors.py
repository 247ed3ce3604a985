"""Static vectors of a task: read for the words that occur, stored in the task's folder.

    text.static_vectors  ->  tasks.static_vectors  ->  tasks.nn.featurizer, tasks.task_model

A task folder needs the whole file of vectors, since new texts have new words: it holds a copy or the path,
and a fingerprint. S values of a vector, T tokens.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.errors import FormatError
from polyseme.text.fingerprint import checksum
from polyseme.text.static_vectors import read_vectors

COPY = "static.vectors"  # of any format: it is recognised by content


class StaticLookup:
    """Vectors from one file, of the words that have occurred so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: dict[str, np.ndarray] = {}
        self._requested: set[str] = set()
        self.dim = read_vectors(path, only=(), limit=1).dim

    def load(self, words: Iterable[str]) -> None:
        """Read the vectors of new words, or of their lower case."""
        new = {form for word in words for form in (word, word.lower())} - self._requested
        if not new:
            return
        vectors = read_vectors(self.path, only=new)
        self._known |= {word: vectors.matrix[row] for word, row in vectors.words.items()}
        self._requested |= new

    def rows(self, tokens: Sequence[str]) -> np.ndarray:
        """(T, S); zeros for words that are not in the file."""
        missing = np.zeros(self.dim, np.float32)
        return np.stack([self._known.get(t, self._known.get(t.lower(), missing)) for t in tokens])


def save_static(path: str | None, folder: Path, *, copy: bool) -> dict[str, str] | None:
    """Copy the file into a new task folder, or only its path; returns what task.json says about it."""
    if path is None:
        return None
    if not copy:
        return {"path": path, "fingerprint": checksum(Path(path))}
    copied = folder / COPY
    shutil.copyfile(path, copied)
    return {"file": COPY, "fingerprint": checksum(copied)}


def find_static(
    saved: dict[str, Any] | None, path: str | None, folder: Path, static: str | Path | None
) -> str | None:
    """The path of a task's static vectors, checked by their fingerprint.

    Args:
        saved: What task.json says about them; folders of earlier versions have only the path in the settings.
        path: As the settings have it; None if the task has no static vectors.
        folder: The task folder.
        static: A path to use instead.

    Raises:
        FormatError: If the file is missing, or holds different vectors.

    """
    if path is None:
        return None
    saved = saved or {}
    source = (
        Path(static).expanduser() if static else folder / COPY if "file" in saved else saved.get("path", path)
    )
    if not os.path.isfile(source):
        raise FormatError(
            f"{folder}: its static vectors are missing: there is no {source}. Put the file back, or pass its "
            "path as `static`."
        )
    if saved and checksum(Path(source)) != saved.get("fingerprint"):
        raise FormatError(
            f"{folder}: {source} holds other static vectors than those this task was trained with. "
            "Pass the right file as `static`, or train the task again."
        )
    return str(Path(source).absolute())
