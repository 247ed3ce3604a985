"""A column of texts to a column of vectors, in the tables of Arrow, pandas, polars and Hugging Face datasets.

    elmo  ->  integrations.frames  ->  pyarrow, pandas, polars, datasets; Parquet

A column of vectors is a fixed-size list of float32 in all of them: `pyarrow.list_(float32, H)`, pandas'
`ArrowDtype` of it, polars' `Array(Float32, H)`, datasets' `List(Value("float32"), H)`. Rows keep their order.
A text without tokens gets zeros, a missing text a missing vector. A column that does not exist raises the
table's own error. N rows, H values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from polyseme.choices import Direction, Pool
from polyseme.elmo import Elmo, check_loaded
from polyseme.errors import UsageError, require
from polyseme.model.output import Layer
from polyseme.text.validate import is_missing, list_sentences, list_values

Table = TypeVar("Table")
METADATA = "polyseme"  # key of the field's metadata
MAP_ROWS = 1000  # rows of a batch of `datasets.map`, as its default


def embed_column(
    model: Elmo,
    column: Iterable[Any],
    *,
    layer: Layer = "mean",
    pool: Pool = "mean",
    direction: Direction = "both",
    segment: str | None = None,
    progress: bool | None = None,
) -> Any:
    """Embed a column of texts as an Arrow array.

    Args:
        model: The model.
        column: N texts: a column of Arrow, pandas, polars or datasets, or a list. Missing ones stay missing.
        layer: As in `Elmo.embed`.
        pool: As in `Elmo.embed`, but not None.
        direction: As in `Elmo.embed`.
        segment: As in `Elmo.embed`.
        progress: As in `Elmo.embed`.

    Returns:
        A `pyarrow.FixedSizeListArray` of float32 (N rows of H values).

    Raises:
        UsageError: If an argument is invalid or a value is no text; the message has its row.

    Example:
        >>> table = table.append_column("vector", embed_column(elmo, table["text"], pool="sentence"))

    """
    arrow = require("pyarrow", "parquet", "A column of vectors")
    options: dict[str, Any] = {
        "layer": layer,
        "pool": pool,
        "direction": direction,
        "segment": segment,
    }
    size = count_values(model, options)
    values = list_values(column, "column")
    present = np.array([not is_missing(value) for value in values], bool)
    texts = [value if kept else "" for value, kept in zip(values, present, strict=True)]
    vectors = model.embed(list_sentences(texts, "column"), progress=progress, **options)
    mask = None if present.all() else arrow.array(~present)
    return arrow.FixedSizeListArray.from_arrays(vectors.reshape(-1), size, mask=mask)


def count_values(model: Elmo, options: Mapping[str, Any]) -> int:
    """Values of a vector with these options of `Elmo.embed`; refuses those that give several per text."""
    check_loaded(model, "model")
    spec = model.plan_embedding([], **options).spec
    shape = spec.empty(model.config.layers, model.config.size).shape
    if len(shape) != 1:
        raise UsageError(
            f"layer is {options['layer']!r} and pool is {options['pool']!r}, which give several vectors per "
            'text; a column holds one. Set pool="mean", and layer="concat" for all layers.'
        )
    return int(shape[0])


def add_vectors(
    table: Table,
    column: str,
    model: Elmo,
    *,
    to: str = "vector",
    layer: Layer = "mean",
    pool: Pool = "mean",
    direction: Direction = "both",
    segment: str | None = None,
    num_proc: int | None = None,
    progress: bool | None = None,
) -> Table:
    """Add a column of vectors to a table.

    Args:
        table: A `pyarrow.Table` or `RecordBatch`, a DataFrame of pandas or polars, or a `Dataset`,
            `DatasetDict` or `IterableDataset` of Hugging Face. It stays as it is.
        column: The name of the column of texts.
        model: The model.
        to: The name of the new column, which replaces one of that name.
        layer: As in `Elmo.embed`.
        pool: As in `Elmo.embed`, but not None.
        direction: As in `Elmo.embed`.
        segment: As in `Elmo.embed`.
        num_proc: Processes, only for a `Dataset` or `DatasetDict`.
        progress: As in `Elmo.embed`; a `Dataset` has a bar of its own.

    Returns:
        A table of the same kind. That of Arrow says in the metadata of the field what the vectors are.

    Raises:
        UsageError: If `table` is of another kind, an argument is invalid, or a value is no text.

    Example:
        >>> frame = add_vectors(pandas.read_csv("reviews.csv"), "text", elmo, pool="sentence")
        >>> frame.to_parquet("reviews.parquet")

    """
    options: dict[str, Any] = {"layer": layer, "pool": pool, "direction": direction, "segment": segment}
    kind = _find_kind(table)
    if kind == "datasets":
        return _map_dataset(table, VectorMap(model, column, to, options), num_proc)  # type: ignore[no-any-return]
    if num_proc is not None:
        raise UsageError("num_proc is for Hugging Face datasets; leave it out.")
    frame: Any = table
    vectors = embed_column(model, frame[column], progress=progress, **options)
    if kind == "pandas":
        pandas = require("pandas", "parquet", "A DataFrame")
        typed = pandas.arrays.ArrowExtensionArray(
            require("pyarrow", "parquet", "A DataFrame").chunked_array([vectors])
        )
        return frame.assign(**{to: pandas.Series(typed, index=frame.index)})  # type: ignore[no-any-return]
    if kind == "polars":
        polars = require("polars", "parquet", "A DataFrame")
        return frame.with_columns(polars.from_arrow(vectors).alias(to))  # type: ignore[no-any-return]
    field = make_field(to, vectors.type, model, options)
    if to in frame.schema.names:
        return frame.set_column(frame.schema.get_field_index(to), field, vectors)  # type: ignore[no-any-return]
    return frame.append_column(field, vectors)  # type: ignore[no-any-return]


def make_field(name: str, vector_type: Any, model: Elmo, options: Mapping[str, Any]) -> Any:
    """The field of a column of vectors; its metadata says how they were made, and Parquet keeps it."""
    arrow = require("pyarrow", "parquet", "A column of vectors")
    values = {"version": _read_version(), "model": model.path, **options}
    return arrow.field(name, vector_type, metadata={METADATA: json.dumps(values, default=list)})


@cache
def _read_version() -> str:
    """The version of Polyseme; read from disk once, because that takes as long as a hundred sentences."""
    return version("polyseme")


class VectorMap:
    """A function for `datasets.map(batched=True)`: the texts of a batch to their vectors.

    It pickles with the path of its model, so that datasets' cache knows the same work again and every process
    loads the model itself.
    """

    def __init__(self, model: Elmo, column: str, to: str, options: dict[str, Any]) -> None:
        self.model, self.column, self.to, self.options = model, column, to, options
        self.size = count_values(model, options)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """A batch of N rows by column, as the new column: an array or a list, as `map` takes them."""
        vectors = embed_column(self.model, batch[self.column], progress=False, **self.options)
        if vectors.null_count:
            return {self.to: vectors.to_pylist()}
        return {self.to: vectors.flatten().to_numpy().reshape(-1, self.size)}


def _map_dataset(table: Any, work: VectorMap, num_proc: int | None) -> Any:
    """Map a Dataset, each set of a DatasetDict, or a stream."""
    datasets = require("datasets", "datasets", "A Dataset")
    if isinstance(table, dict):  # DatasetDict and IterableDatasetDict
        return type(table)({name: _map_dataset(part, work, num_proc) for name, part in table.items()})
    names = table.column_names
    if names is not None and work.column not in names:
        raise KeyError(f"Column {work.column!r} not in the dataset. Current columns: {names}")
    vector = datasets.List(datasets.Value("float32"), length=work.size)
    features = None if table.features is None else datasets.Features({**table.features, work.to: vector})
    options: dict[str, Any] = {"batched": True, "batch_size": MAP_ROWS, "features": features}
    if isinstance(table, datasets.IterableDataset):
        if num_proc is not None:
            raise UsageError("num_proc is for a Dataset; a stream is read by one process. Leave it out.")
        return table.map(work, **options)
    return table.map(work, **options, num_proc=num_proc)


def _find_kind(table: object) -> str:
    """The library of a table, by its class and those it extends; none of them is imported."""
    for kind in type(table).__mro__:
        library, name = kind.__module__.partition(".")[0], kind.__name__
        if library in ("pandas", "polars") and name == "DataFrame":
            return library
        if library == "pyarrow" and name in ("Table", "RecordBatch"):
            return library
        if library == "datasets" and name in (
            "Dataset",
            "DatasetDict",
            "IterableDataset",
            "IterableDatasetDict",
        ):
            return library
    if type(table).__name__ == "LazyFrame":
        raise UsageError("table is a LazyFrame: pass `table.collect()`.")
    raise UsageError(
        f"table is of type {type(table).__name__}, expected a table of pyarrow, a DataFrame of pandas or "
        "polars, or a Dataset of Hugging Face."
    )
