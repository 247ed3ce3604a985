"""Vectors to disk, a sentence at a time: .hdf5, .npz, .parquet or .safetensors, by the name's ending.

    embedder, bulk  ->  formats.vectors.writers  ->  one file  ->  formats.vectors.readers

.hdf5     a dataset a sentence, its number as the key, as bilm-tf dumps them; the tokens stand in the
          attribute `sentence` (left out where it would not fit)
.npz      an array a sentence, its number as the key
.parquet  a row a token (sentence, place, token, vector), or a row a pooled sentence (sentence, text, vector);
          the number of sentences stands in the metadata, because an empty one has no row
.safetensors  flat and to be memory-mapped: see formats.vectors.flat

Nothing is kept in memory but the sentence at hand (.parquet: a group of rows; .npz: the table of contents,
some 350 bytes a sentence).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError, require
from polyseme.formats.vectors.flat import FlatWriter, move_rows_first
from polyseme.io.atomic import new_file

MAX_ATTRIBUTE_BYTES = 60_000  # bytes; hdf5 keeps at most 64 kB of attributes in a header
ROW_GROUP_BYTES = 32 << 20


class VectorWriter(Protocol):
    """A file of vectors that is being written."""

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence: (tokens, H), (L, tokens, H), or (H,) and (L, H) when pooled."""

    def close(self) -> None:
        """Write what is left."""


class Hdf5Writer:
    """bilm-tf's layout."""

    def __init__(self, path: Path, empty: NDArray[Any], pooled: bool) -> None:
        self._file = h5py.File(path, "w")
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


class NpzWriter:
    """numpy's archive, written member by member."""

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


class ParquetWriter:
    """Arrow's columns; the vector is a list of fixed size, all layers of a token behind each other."""

    def __init__(self, path: Path, empty: NDArray[Any], pooled: bool) -> None:
        self._arrow = arrow = require("pyarrow", "parquet", f"Writing {path.name}")
        parquet = require("pyarrow.parquet", "parquet", f"Writing {path.name}")
        self._pooled = pooled
        shape = move_rows_first(empty, pooled).shape[1:]
        vector = arrow.list_(arrow.from_numpy_dtype(empty.dtype), int(np.prod(shape)))
        words = {"text": arrow.string()} if pooled else {"place": arrow.int32(), "token": arrow.string()}
        self._schema = arrow.schema(
            {"sentence": arrow.int64(), **words, "vector": vector},
            metadata={"shape": ",".join(map(str, shape))},
        )
        self._writer = parquet.ParquetWriter(path, self._schema)
        self._columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        self._bytes = self._count = 0

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence."""
        by_token = move_rows_first(vectors, self._pooled)
        rows = len(by_token)
        words = [token.encode("utf-8", "replace").decode("utf-8") for token in tokens]
        self._columns["sentence"] += [self._count] * rows
        if self._pooled:
            self._columns["text"].append(" ".join(words))
        else:
            self._columns["place"] += range(rows)
            self._columns["token"] += words
        if rows:
            self._columns["vector"].append(by_token.ravel())
        self._count += 1
        self._bytes += vectors.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        schema = self._schema
        values = np.concatenate(self._columns["vector"])
        kind = schema.field("vector").type
        flat = self._arrow.array(values, type=kind.value_type)
        arrays = [
            self._arrow.FixedSizeListArray.from_arrays(flat, kind.list_size)
            if name == "vector"
            else self._arrow.array(self._columns[name], type=schema.field(name).type)
            for name in schema.names
        ]
        table = self._arrow.Table.from_arrays(arrays, schema=schema)
        self._writer.write_table(table, row_group_size=len(table))  # a sentence stays in one group
        self._columns = {name: [] for name in schema.names}
        self._bytes = 0

    def close(self) -> None:
        """Write the last rows and finish the file."""
        if self._columns["vector"]:
            self._flush()
        self._writer.add_key_value_metadata({"sentences": str(self._count)})
        self._writer.close()


WRITERS: dict[str, Callable[[Path, NDArray[Any], bool], VectorWriter]] = {
    ".hdf5": Hdf5Writer,
    ".h5": Hdf5Writer,
    ".npz": NpzWriter,
    ".parquet": ParquetWriter,
    ".safetensors": FlatWriter,
}


def cast_vectors(vectors: NDArray[Any], dtype: str) -> NDArray[Any]:
    """`vectors` as float32 or float16; values that float16 cannot hold are refused, not made infinite."""
    try:
        with np.errstate(over="raise"):
            return vectors.astype(np.dtype(dtype), copy=False)
    except FloatingPointError:
        most = float(np.abs(vectors).max())
        raise UsageError(f"{most:,.0f} does not fit into float16. Use `dtype='float32'`.") from None


def check_vector_format(path: Path) -> None:
    """Refuse a name whose ending says no format, or one that needs a missing package."""
    ending = path.suffix.lower()
    if ending not in WRITERS:
        raise UsageError(f"{path}: the ending says no format. Use one of {', '.join(WRITERS)}.")
    if ending == ".parquet":
        require("pyarrow", "parquet", f"Writing {path.name}")


@contextmanager
def open_writer(
    path: Path, empty: NDArray[Any], *, pooled: bool, force: bool = False
) -> Iterator[VectorWriter]:
    """A dump to add sentences to; it becomes `path` when the block ends well.

    empty: what a sentence without tokens gives, for the shape and the type of all others.
    """
    check_vector_format(path)
    with new_file(path, force=force) as temporary:
        dump = WRITERS[path.suffix.lower()](temporary, empty, pooled)
        try:
            yield dump
        except BaseException:
            with suppress(Exception):  # what went wrong before is what matters
                dump.close()
            raise
        dump.close()
