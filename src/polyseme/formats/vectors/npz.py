"""Vectors in numpy's archive: one array per sentence, its number as the key; no tokens.

    formats.vectors.file_formats  ->  formats.vectors.npz  ->  x.npz

Memory holds one sentence and the archive's directory, about 350 bytes per sentence.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError


class NpzWriter:
    """Writes one member per sentence."""

    def __init__(self, path: Path, empty: NDArray[Any], pooled: bool) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)
        self._count = 0

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence."""
        name = zipfile.ZipInfo(f"{self._count}.npy")  # dated 1980: the same vectors give the same bytes
        with self._file.open(name, "w", force_zip64=True) as member:
            np.lib.format.write_array(member, np.ascontiguousarray(vectors), allow_pickle=False)
        self._count += 1

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class NpzReader:
    """Reads one member per sentence."""

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path)  # numpy's own reader leaves a damaged file open
        self._path = path

    def __len__(self) -> int:
        return len(self._file.namelist())

    def vectors(self, number: int) -> NDArray[Any]:
        """The vectors of a sentence."""
        with self._file.open(f"{number}.npy") as member:
            values: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return values

    def tokens(self, number: int) -> list[str]:
        """An error: this format stores no tokens."""
        raise UsageError(f"{self._path}: .npz stores no tokens; other formats do.")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
