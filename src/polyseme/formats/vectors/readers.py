"""Vectors from disk, a sentence at a time: any file or folder that `embed` wrote, opened without loading all.

    formats.vectors.writers, formats.vectors.flat, formats.vectors.manifest
        ->  formats.vectors.readers  ->  scripts, search

A file is read through one of four readers, by its ending. A folder is a list of such files in the order of
the text; few of them are open at a time.

What must not change: memory does not grow with the number of vectors (.npz: with the number of sentences of a
file), and a shard that is damaged hinders no other.
"""

from __future__ import annotations

import os
import zipfile
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

import h5py
import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError, UsageError, require
from polyseme.formats.safe_hdf5 import SafeFile
from polyseme.formats.vectors.flat import FlatReader
from polyseme.formats.vectors.manifest import Shard, read_folder
from polyseme.text.fingerprint import checksum

Result = TypeVar("Result")
OPEN_SHARDS = 16


class VectorReader(Protocol):
    """A file of vectors that is being read."""

    def __len__(self) -> int: ...

    def vectors(self, number: int) -> NDArray[Any]:
        """The vectors of a sentence, in the shape in which they were added."""

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence."""

    def close(self) -> None:
        """Let go of the file."""


class Hdf5Reader:
    """A dataset a sentence, as bilm-tf writes it."""

    def __init__(self, path: Path) -> None:
        self._file: Any = h5py.File(path, "r")
        self._safe = SafeFile(self._file, path)
        self._path = path
        self._count: int = sum(name.isdecimal() for name in self._file)  # bilm-tf adds sentence_to_index

    def __len__(self) -> int:
        return self._count

    def vectors(self, number: int) -> NDArray[Any]:
        """The dataset of a sentence."""
        values: NDArray[Any] = self._dataset(number)[()]
        return values

    def tokens(self, number: int) -> list[str]:
        """The tokens from the attribute, which a very long sentence has not."""
        sentence = self._dataset(number).attrs.get("sentence")
        if sentence is None:
            raise UsageError(f"{self._path}: the tokens of sentence {number} are not stored.")
        return str(sentence).split()

    def _dataset(self, number: int) -> Any:
        self._safe.shape(str(number))  # goes through no link
        dataset = self._file[str(number)]
        if dataset.is_virtual or dataset.external:
            raise FormatError(f"{self._path}: sentence {number} lies in another file: refused.")
        return dataset

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class NpzReader:
    """An array a sentence in numpy's archive; it has no tokens."""

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path)  # numpy's own reader leaves a damaged file open
        self._path = path

    def __len__(self) -> int:
        return len(self._file.namelist())

    def vectors(self, number: int) -> NDArray[Any]:
        """The array of a sentence."""
        with self._file.open(f"{number}.npy") as member:
            values: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return values

    def tokens(self, number: int) -> list[str]:
        """Not stored in this format."""
        raise UsageError(f"{self._path}: .npz stores no tokens. Other formats do.")

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class ParquetReader:
    """Rows of tokens or of pooled sentences, read a group of rows at a time; the last group is kept."""

    def __init__(self, path: Path) -> None:
        parquet = require("pyarrow.parquet", "parquet", f"Reading {path.name}")
        self._file = parquet.ParquetFile(path, memory_map=True)
        schema, metadata = self._file.schema_arrow, self._file.metadata
        if "vector" not in schema.names or b"sentences" not in (metadata.metadata or {}):
            self._file.close()
            raise FormatError(f"{path}: a Parquet file, but not one of vectors that `embed` wrote.")
        self._count = int(metadata.metadata[b"sentences"])
        self._shape = tuple(map(int, schema.metadata[b"shape"].split(b",")))
        self._pooled = "text" in schema.names
        self._dtype = schema.field("vector").type.value_type.to_pandas_dtype()
        column = schema.names.index("sentence")
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        self._firsts = [int(group.column(column).statistics.min) for group in groups]
        self._group = -1
        self._table: Any = None

    def __len__(self) -> int:
        return self._count

    def vectors(self, number: int) -> NDArray[Any]:
        """The rows of a sentence as an array."""
        rows = self._rows(number)
        if rows is None:
            return np.moveaxis(np.empty((0, *self._shape), self._dtype), 0, -2)
        values = np.concatenate([chunk.flatten().to_numpy() for chunk in rows["vector"].chunks])
        by_row = values.reshape(-1, *self._shape)
        return by_row[0] if self._pooled else np.moveaxis(by_row, 0, -2)

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence."""
        rows = self._rows(number)
        if rows is None:
            return []
        return str(rows["text"][0]).split() if self._pooled else list(rows["token"].to_pylist())

    def _rows(self, number: int) -> Any:
        """The part of the table that belongs to a sentence; None if it has no tokens."""
        group = bisect_right(self._firsts, number) - 1
        if group < 0:
            return None
        if group != self._group:
            self._table = self._file.read_row_group(group)
            self._numbers = self._table["sentence"].to_numpy()
            self._group = group
        start, stop = np.searchsorted(self._numbers, [number, number + 1])
        return self._table.slice(int(start), int(stop - start)) if stop > start else None

    def close(self) -> None:
        """Let go of the file."""
        self._table = None
        self._file.close()


READERS: dict[str, Callable[[Path], VectorReader]] = {
    ".hdf5": Hdf5Reader,
    ".h5": Hdf5Reader,
    ".npz": NpzReader,
    ".parquet": ParquetReader,
    ".safetensors": FlatReader,
}


class Vectors:
    """The vectors of a text, sentence by sentence: `len(vectors)`, `vectors[i]`, `for array in vectors`.

    An array is (tokens, H), (L, tokens, H) for all layers, or (H,) and (L, H) for pooled sentences. Some are
    read-only views of the file: copy what you want to change.
    """

    def __init__(self, path: Path, shards: list[Shard] | None, *, check: bool) -> None:
        self._path = path
        self._shards = shards
        self._check = check
        self._checked: set[int] = set()
        self._open: OrderedDict[int, VectorReader] = OrderedDict()  # least recently used first
        if shards is None:
            self._ends = [len(self._file(0))]
        else:
            self._ends = [int(end) for end in np.cumsum([shard.sentences for shard in shards])]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, key: int) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, key: slice) -> list[NDArray[Any]]: ...

    def __getitem__(self, key: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(key, slice):
            return [self[number] for number in range(*key.indices(len(self)))]
        return self._read(key, lambda file, place: file.vectors(place))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[number] for number in range(len(self)))

    def sentence(self, number: int) -> list[str]:
        """The tokens of a sentence, where they are stored."""
        return self._read(number, lambda file, place: file.tokens(place))

    def verify(self) -> None:
        """Check size and SHA-256 of all shards, and name those that are damaged; a file is read through."""
        if self._shards is None:
            for _ in self:
                pass
            return
        problems = []
        for number in range(len(self._shards)):
            try:
                self._verify(number)
            except FormatError as problem:
                problems.append(str(problem))
        if problems:
            more = f" {len(problems) - 3} more shards are damaged, too." if len(problems) > 3 else ""
            raise FormatError(" ".join(problems[:3]) + more)

    def close(self) -> None:
        """Let go of all files."""
        while self._open:
            self._open.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Vectors({str(self._path)!r}, {len(self):,} sentences)"

    def _read(self, number: int, what: Callable[[VectorReader, int], Result]) -> Result:
        """Ask the shard that holds a sentence."""
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(f"sentence {number}: {self._path} has {len(self):,}.")
        shard = bisect_right(self._ends, place)
        file = self._file(shard)
        try:
            return what(file, place - (self._ends[shard - 1] if shard else 0))
        except (OSError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile) as problem:
            if isinstance(problem, UsageError):
                raise
            raise FormatError(
                f"{self._file_path(shard)}: sentence {number} cannot be read ({problem})."
            ) from None

    def _file_path(self, number: int) -> Path:
        return self._path if self._shards is None else self._path / self._shards[number].file

    def _file(self, number: int) -> VectorReader:
        """An open shard; the one that was not used for longest is closed for it."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        if self._shards is not None and self._check and number not in self._checked:
            self._verify(number)
            self._checked.add(number)
        file = _open_file(self._file_path(number))
        if self._shards is not None and len(file) != self._shards[number].sentences:
            file.close()
            raise FormatError(
                f"{self._file_path(number)}: {len(file)} sentences, the manifest says otherwise."
            )
        self._open[number] = file
        while len(self._open) > OPEN_SHARDS:
            self._open.popitem(last=False)[1].close()
        return file

    def _verify(self, number: int) -> None:
        """Compare a shard with what the manifest says of it."""
        path, shard = self._file_path(number), (self._shards or [])[number]
        wanted = f"the manifest says {shard.bytes:,} bytes with SHA-256 {shard.sha256}"
        remedy = "Run the same `embed` again to have it made anew."
        try:
            size = path.stat().st_size
            found = checksum(path) if size == shard.bytes else ""
        except OSError as problem:
            raise FormatError(f"{path}: cannot be read ({problem.strerror}); {wanted}. {remedy}") from None
        if size != shard.bytes:
            raise FormatError(f"{path}: has {size:,} bytes; {wanted}. {remedy}")
        if found != shard.sha256:
            raise FormatError(f"{path}: has the SHA-256 {found}; {wanted}. Delete the file. {remedy}")


def open_vectors(path: str | Path, *, check: bool = True) -> Vectors:
    """Open what `embed` wrote, a file or a folder, without loading it.

    check: compare the SHA-256 of a shard of a folder when it is opened first, which reads it once.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise UsageError(f"{place}: no such file or folder. Check the path; it is read from {os.getcwd()}.")
    if not place.is_dir():
        return Vectors(place, None, check=False)
    shards = [shard for share in read_folder(place) for shard in share.shards]
    return Vectors(place, sorted(shards, key=lambda shard: (shard.block, shard.first)), check=check)


def _open_file(path: Path) -> VectorReader:
    ending = path.suffix.lower()
    if ending not in READERS:
        raise UsageError(f"{path}: the ending says no format of vectors. Known are {', '.join(READERS)}.")
    try:
        return READERS[ending](path)
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as problem:
        if isinstance(problem, UsageError | FormatError):
            raise
        raise FormatError(f"{path}: not a whole {ending} file ({problem}). Copy it again.") from None
