"""Vectors in hdf5 as bilm-tf writes them: one dataset per sentence, its number as the key.

    formats.vectors.file_formats  ->  formats.vectors.hdf5  ->  x.hdf5

The tokens are in the attribute `sentence`, which is left out if it would not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.formats.hdf5_writing import Hdf5File
from polyseme.formats.safe_hdf5 import SafeFile

MAX_ATTRIBUTE_BYTES = 60_000  # hdf5 holds at most 64 kB of attributes in a header


class Hdf5Writer:
    """Writes one dataset per sentence."""

    def __init__(self, path: Path, empty: NDArray[Any], pooled: bool) -> None:
        self._file = Hdf5File(path)
        self._count = 0

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence."""
        dataset = self._file.create_dataset(str(self._count), data=vectors)
        sentence = " ".join(tokens).encode("utf-8", "replace").replace(b"\0", b" ")
        if len(sentence) <= MAX_ATTRIBUTE_BYTES:
            dataset.attrs["sentence"] = sentence.decode("utf-8")
        self._count += 1

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class Hdf5Reader:
    """Reads one dataset per sentence."""

    def __init__(self, path: Path) -> None:
        self._file, self._path = SafeFile(path), path
        self._count = sum(name.isdecimal() for name in self._file.names())  # bilm-tf adds sentence_to_index

    def __len__(self) -> int:
        return self._count

    def vectors(self, number: int) -> NDArray[Any]:
        """The vectors of a sentence."""
        return self._file.read_stored(str(number))

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence; an error for a very long one, whose tokens are not stored."""
        sentence = self._file.text(str(number), "sentence")
        if sentence is None:
            raise UsageError(
                f"{self._path}: the tokens of sentence {number} are not stored. Use another format."
            )
        return sentence.split()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
