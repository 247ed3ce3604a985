"""Vectors in Parquet: one row per token, or per pooled sentence.

    formats.vectors.file_formats  ->  formats.vectors.parquet  ->  x.parquet

Columns are (sentence, place, token, vector), where place is the position of the token, or (sentence, text,
vector) for pooled sentences. The number of sentences is in the metadata, because an empty one has no row.
Memory holds one group of rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError, require
from polyseme.formats.vectors.flat import move_rows_first

ROW_GROUP_BYTES = 32 << 20


class ParquetWriter:
    """Writes Arrow columns; a vector is a list of fixed size, with all layers of a token in a row."""

    def __init__(
        self, path: Path, empty: NDArray[Any], pooled: bool, *, group_bytes: int = ROW_GROUP_BYTES
    ) -> None:
        self._arrow = arrow = require("pyarrow", "parquet", f"Writing {path.name}")
        parquet = require("pyarrow.parquet", "parquet", f"Writing {path.name}")
        self._pooled, self._group_bytes = pooled, group_bytes
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
        if self._bytes >= self._group_bytes:
            self._write_group()

    def _write_group(self) -> None:
        schema = self._schema
        values = np.concatenate(self._columns["vector"])
        vector_type = schema.field("vector").type
        flat = self._arrow.array(values, type=vector_type.value_type)
        arrays = [
            self._arrow.FixedSizeListArray.from_arrays(flat, vector_type.list_size)
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
            self._write_group()
        self._writer.add_key_value_metadata({"sentences": str(self._count)})
        self._writer.close()


class ParquetReader:
    """Reads one group of rows at a time; the last group stays in memory."""

    def __init__(self, path: Path) -> None:
        parquet = require("pyarrow.parquet", "parquet", f"Reading {path.name}")
        self._file = parquet.ParquetFile(path, memory_map=True)
        schema, metadata = self._file.schema_arrow, self._file.metadata
        if "vector" not in schema.names or b"sentences" not in (metadata.metadata or {}):
            self._file.close()
            raise FormatError(f"{path}: a Parquet file, but not one that `polyseme.embed` wrote.")
        self._count = int(metadata.metadata[b"sentences"])
        self._shape = tuple(map(int, schema.metadata[b"shape"].split(b",")))
        self._pooled = "text" in schema.names
        self._dtype = schema.field("vector").type.value_type.to_pandas_dtype()
        column = schema.names.index("sentence")
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        self._first_sentences = [int(group.column(column).statistics.min) for group in groups]
        self._group = -1
        self._table: Any = None

    def __len__(self) -> int:
        return self._count

    def vectors(self, number: int) -> NDArray[Any]:
        """The vectors of a sentence."""
        rows = self._read_rows(number)
        if rows is None:
            return np.moveaxis(np.empty((0, *self._shape), self._dtype), 0, -2)
        values = np.concatenate([chunk.flatten().to_numpy() for chunk in rows["vector"].chunks])
        by_row = values.reshape(-1, *self._shape)
        return by_row[0] if self._pooled else np.moveaxis(by_row, 0, -2)

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence."""
        rows = self._read_rows(number)
        if rows is None:
            return []
        return str(rows["text"][0]).split() if self._pooled else list(rows["token"].to_pylist())

    def _read_rows(self, number: int) -> Any:
        """The rows of a sentence; None if it has no tokens."""
        group = bisect_right(self._first_sentences, number) - 1
        if group < 0:
            return None
        if group != self._group:
            self._table = self._file.read_row_group(group)
            self._numbers = self._table["sentence"].to_numpy()
            self._group = group
        start, stop = np.searchsorted(self._numbers, [number, number + 1])
        return self._table.slice(int(start), int(stop - start)) if stop > start else None

    def close(self) -> None:
        """Close the file."""
        self._table = None
        self._file.close()
