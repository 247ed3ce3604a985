"""The table of vector formats: name, file endings, writer and reader.

    formats.vectors.{hdf5, npz, parquet, flat}  ->  formats.vectors.file_formats
        ->  formats.vectors.writers, formats.vectors.readers, bulk_embedding

A new format is one module with a writer and a reader, a row here and its name in `polyseme.choices`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from polyseme.choices import VectorFormat
from polyseme.errors import UsageError, require
from polyseme.formats.vectors.flat import FlatReader, FlatWriter
from polyseme.formats.vectors.hdf5 import Hdf5Reader, Hdf5Writer
from polyseme.formats.vectors.npz import NpzReader, NpzWriter
from polyseme.formats.vectors.parquet import ParquetReader, ParquetWriter


class VectorWriter(Protocol):
    """Writes a file of vectors, sentence by sentence."""

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence: (tokens, H), (L, tokens, H), or (H,) and (L, H) when pooled."""

    def close(self) -> None:
        """Finish the file."""


class VectorReader(Protocol):
    """Reads a file of vectors, sentence by sentence."""

    def __len__(self) -> int: ...

    def vectors(self, number: int) -> NDArray[Any]:
        """The vectors of a sentence, in the shape in which they were added."""

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence."""

    def close(self) -> None:
        """Close the file."""


class VectorFileFormat(NamedTuple):
    """A format of vectors."""

    endings: tuple[str, ...]
    writer: Callable[[Path, NDArray[Any], bool], VectorWriter]  # path, vectors of an empty sentence, pooled
    reader: Callable[[Path], VectorReader]
    package: str | None = None  # of the extra that the format needs


VECTOR_FORMATS: dict[VectorFormat, VectorFileFormat] = {
    "safetensors": VectorFileFormat((".safetensors",), FlatWriter, FlatReader),
    "parquet": VectorFileFormat((".parquet",), ParquetWriter, ParquetReader, package="pyarrow"),
    "npz": VectorFileFormat((".npz",), NpzWriter, NpzReader),
    "hdf5": VectorFileFormat((".hdf5", ".h5"), Hdf5Writer, Hdf5Reader),
}


def has_vector_ending(path: Path) -> bool:
    """Whether the ending of a file name is one of a vector format."""
    return _find(path) is not None


def find_vector_format(path: Path) -> VectorFileFormat:
    """The format of a file, by its ending.

    Raises:
        UsageError: If no format has that ending.
        MissingExtraError: If the format needs a package that is not installed.

    """
    name = _find(path)
    if name is None:
        endings = [ending for entry in VECTOR_FORMATS.values() for ending in entry.endings]
        raise UsageError(f"{path}: not the ending of a vector format. Use one of {', '.join(endings)}.")
    vector_format = VECTOR_FORMATS[name]
    if vector_format.package is not None:
        require(vector_format.package, name, f"The format of {path.name}")
    return vector_format


def _find(path: Path) -> VectorFormat | None:
    ending = path.suffix.lower()
    return next((name for name, entry in VECTOR_FORMATS.items() if ending in entry.endings), None)
