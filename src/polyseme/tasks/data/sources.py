"""Where examples come from: a path, or rows in memory (a DataFrame, an iterable of tuples or dicts).

    train=, dev=, test=  ->  tasks.data.sources  ->  tasks.data.tables, tasks.data.columns

Rows in memory have locations, too: `train:17` is row 17 (from 1) of what was passed as `train`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.errors import UsageError
from polyseme.text.encodings import AUTO
from polyseme.text.reading import EncodedPath
from polyseme.text.validate import check_path, has_no_order, is_missing


@dataclass(frozen=True)
class Records:
    """Rows that a program passed: tuples in the order of a task, or dicts by column."""

    name: str  # of the argument
    rows: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


EXPECTED = "a path, a DataFrame or an iterable of rows"
Source = str | Records  # a path, or rows
Data = str | Path | Iterable[Any]  # what a user passes; DataFrames and Arrow tables are iterable, too


def name_encoding(data: Data, encoding: str) -> Data:
    """What a user passed, with the encoding of its files.

    Raises:
        UsageError: If there is no such encoding, or rows in memory, which have none.

    """
    if encoding == AUTO:
        return data
    if not isinstance(data, str | Path):
        raise UsageError(f"`encoding` is for files, not for a {type(data).__name__}. Leave it out.")
    return EncodedPath(data, encoding)


def open_source(data: Data, name: str) -> Source:
    """The source of what a user passed as the argument `name`.

    Args:
        data: A path; a DataFrame of pandas or polars or an Arrow table; or any iterable of tuples or dicts.
        name: Of the argument, for locations.

    Raises:
        UsageError: If it is none of these.

    """
    if isinstance(data, str | Path):
        check_path(data, name, EXPECTED)
        return data if isinstance(data, EncodedPath) else str(data)
    return Records(name, tuple(map(_simplify_row, _open_rows(data, name))))


def _open_rows(data: Any, name: str) -> Iterable[Any]:
    """The rows of a table or an iterable."""
    kind = type(data).__name__
    if kind == "LazyFrame":  # of polars
        raise UsageError(f"{name} is a {kind}: pass `{name}.collect()`.")
    for method in ("to_dicts", "to_pylist"):  # polars, Arrow
        if hasattr(data, method):
            rows: Iterable[Any] = getattr(data, method)()
            return rows
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        names = list(map(str, data.columns))
        duplicate = next((column for column in names if names.count(column) > 1), None)
        if duplicate is not None:
            raise UsageError(f"{name} has two columns named {duplicate!r}. Rename one.")
        return data.to_dict("records")  # type: ignore[no-any-return]
    if has_no_order(data):
        raise UsageError(f"{name} is a {kind}, which has no order: pass a list, such as `sorted({name})`.")
    if isinstance(data, Mapping) and any(hasattr(part, "column_names") for part in data.values()):
        raise UsageError(
            f"{name} is a {kind} of several sets: pass one, such as `{name}[{next(iter(data))!r}]`."
        )
    if isinstance(data, bytes | Mapping) or not isinstance(data, Iterable):
        raise UsageError(f"{name} is of type {kind}, expected {EXPECTED}.")
    return data


def _simplify_row(row: Any) -> Any:
    """A row with Python's values: lists for arrays, and None for the NaN and NA of pandas."""
    if isinstance(row, Mapping):
        return {str(name): _simplify_value(value) for name, value in row.items()}
    row = _simplify_value(row)
    return tuple(map(_simplify_value, row)) if isinstance(row, tuple | list) else row


def _simplify_value(value: Any) -> Any:
    if is_missing(value):
        return None
    return value.tolist() if hasattr(value, "tolist") else value  # of numpy
