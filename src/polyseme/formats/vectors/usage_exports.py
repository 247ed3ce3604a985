"""Usages as a table for other programs, and that table as a Parquet file.

    search.usage_table  ->  formats.vectors.usage_exports (UsageTable)  ->  x.parquet
        ->  integrations.lancedb, integrations.postgres

A row is a usage: its number, the columns of `COLUMNS`, the metadata of its document, and its vector. Rows
come in batches, so that memory holds one of them. N rows of a batch, H values of a vector.
What must not change: names, types and order of the columns, which programs of users read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import require
from polyseme.io.atomic import new_file
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter

VECTOR = "vector"
COLUMNS = {  # and their types; columns of metadata are strings, and the vector is the last column
    "id": "int64",
    "word": "string",
    "sentence": "string",
    "document": "string",
    "title": "string",
    "line": "int32",
    "start": "int32",
    "stop": "int32",
}
Values = Sequence[int | str | None]


class UsageBatch(NamedTuple):
    """N rows: the values of every column in the order of the table, and the vectors (N, H)."""

    columns: tuple[Values, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class UsageTable:
    """Usages that are about to be written.

    Attributes:
        types: The columns without the vector, and their types: int64, int32 or string.
        size: H
        count: How many rows there are.
        words: How many words they are usages of.
        batches: The rows, which can be read once.

    """

    types: dict[str, str]
    size: int
    count: int
    words: int
    batches: Iterator[UsageBatch]

    def read(self, on_progress: OnProgress) -> Iterator[UsageBatch]:
        """Read the batches, and report progress after each was written."""
        done, meter = 0, RateMeter("usages")
        for batch in self.batches:
            yield batch
            done += len(batch.vectors)
            on_progress(ProgressEvent("exporting", done, self.count, meter.add(len(batch.vectors))))


def name_columns(fields: Sequence[str]) -> dict[str, str]:
    """The columns of a table and their types, with those of the metadata.

    A field that has the name of another column is called meta_NAME.
    """
    types = dict(COLUMNS)
    for field in fields:
        name = field
        while name in types or name == VECTOR:
            name = f"meta_{name}"
        types[name] = "string"
    return types


def make_schema(arrow: ModuleType, table: UsageTable) -> Any:
    """The Arrow schema of a table: vectors are lists of fixed size."""
    columns = [(name, getattr(arrow, kind)()) for name, kind in table.types.items()]
    return arrow.schema([*columns, (VECTOR, arrow.list_(arrow.float32(), table.size))])


def make_record_batch(arrow: ModuleType, schema: Any, batch: UsageBatch) -> Any:
    """The rows of a batch as Arrow columns, which share the memory of the vectors."""
    *fields, vector = schema
    columns = [arrow.array(values, type=f.type) for f, values in zip(fields, batch.columns, strict=True)]
    flat = arrow.array(batch.vectors.ravel())
    columns.append(arrow.FixedSizeListArray.from_arrays(flat, type=vector.type))
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def write_parquet(path: Path, table: UsageTable, *, force: bool, on_progress: OnProgress) -> None:
    """Write a table as a Parquet file; a batch is a group of rows.

    Args:
        path: The file.
        table: The usages.
        force: Replace a file that exists.
        on_progress: Receives the progress.

    Raises:
        MissingExtraError: pyarrow is not installed.
        UsageError: The file exists, or cannot be written.

    """
    arrow = require("pyarrow", "parquet", f"Writing {path.name}")
    parquet = require("pyarrow.parquet", "parquet", f"Writing {path.name}")
    schema = make_schema(arrow, table)
    repeated = [name for name, kind in table.types.items() if kind == "string"]
    with (
        new_file(path, force=force) as temporary,
        parquet.ParquetWriter(temporary, schema, compression="zstd", use_dictionary=repeated) as writer,
    ):
        for batch in table.read(on_progress):
            writer.write_batch(make_record_batch(arrow, schema, batch), row_group_size=len(batch.vectors))
