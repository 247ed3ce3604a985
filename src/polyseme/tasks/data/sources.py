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
from polyseme.text.validate import is_missing


@dataclass(frozen=True)
class Records:
    """Rows that a program passed: tuples in the order of a task, or dicts by column."""

    name: str  # of the argument
    rows: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


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
        if "\n" in str(data):
            raise UsageError(
                f"{name} is a text of several lines, expected a path, a DataFrame or a list of rows."
            )
        return data if isinstance(data, EncodedPath) else str(data)
    for method in ("to_dicts", "to_pylist"):  # polars, Arrow
        if hasattr(data, method):
            return Records(name, tuple(getattr(data, method)()))
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        return Records(name, tuple(_drop_missing(row) for row in data.to_dict("records")))
    if isinstance(data, bytes | Mapping) or not isinstance(data, Iterable):
        raise UsageError(
            f"{name} is of type {type(data).__name__}, expected a path, a DataFrame or an iterable of rows."
        )
    return Records(name, tuple(data))


def _drop_missing(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of pandas with None for NaN and NA, which stand for missing values there."""
    return {str(name): None if is_missing(value) else value for name, value in row.items()}
