"""Rows of labelled examples: CSV, TSV, JSON lines, lines that begin with a label, folders of texts, records.

    text.reading, tasks.data.sources  ->  tasks.data.tables  ->  classification, pairs, relations

A row is its location (`file:line`) and its fields by name. Errors begin with the location.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.sources import Records, Source
from polyseme.text.corpus.documents import read_record
from polyseme.text.reading import Line, expand_path, list_files, read_file_lines, read_lines, resolve_encoding

ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}
MAX_FIELD = 10_000_000  # characters of a field of a CSV file
FASTTEXT = "__label__"


class TableRow(NamedTuple):
    """Fields by name, and their location."""

    location: str
    fields: Mapping[str, Any]
    has_header: bool = False  # whether the first line of the file named the fields

    def text(self, name: str) -> str:
        """A field as text; empty if its value is missing."""
        value = self.fields[name]
        if value is None:
            return ""
        if isinstance(value, dict | list):
            raise DataError(f"{self.location}: {name} is {value!r:.40}, expected text.")
        if isinstance(value, str):
            return value
        return json.dumps(value)

    def require(self, names: Sequence[str], settings: str) -> None:
        """Raise `DataError` if fields are missing; `settings` are those that name fields, for the message."""
        missing = [name for name in names if name not in self.fields]
        if not missing:
            return
        known = ", ".join(f"{field!s:.30}" for field in self.fields) or "none"
        wanted = ", ".join(map(repr, missing))
        missing_header = "Is the first line, which must name the columns, missing? Add it, or name"
        raise DataError(
            f"{self.location}: no field {wanted}; there are {known}. "
            f"{missing_header if self.has_header else 'Name'} the columns in the settings ({settings})."
        )


def find_table_format(source: Source, chosen: str) -> str:
    """The format of a source: `chosen`, unless that is "auto"; then by the name of the file."""
    if isinstance(source, Records):
        return "records"
    if chosen != "auto":
        return chosen
    path = Path(expand_path(source))
    if path.is_dir():
        return "folder"
    return guess_format(str(path), ENDINGS, "lines")


def guess_format(path: str, endings: Mapping[str, str], default: str) -> str:
    """The format of a file by the ending of its name, without that of its compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in (".gz", ".zst")]
    return endings.get(suffixes[-1], default) if suffixes else default


def read_json_records(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield the records in memory, or those of a file of JSON lines, with their locations."""
    if isinstance(source, Records):
        yield from ((f"{source.name}:{n}", row) for n, row in enumerate(source.rows, start=1))
        return
    for row in _read_json_lines(source):
        yield row.location, row.fields


def read_rows(
    source: Source, file_format: str, columns: Mapping[str, str], *, labelled: bool = True
) -> Iterator[TableRow]:
    """Yield the rows of a table.

    Args:
        source: A path, or records.
        file_format: As `find_table_format` found it.
        columns: The columns that are read, by the settings that name them (`data.text`), the label last.
            Tuples have their values in this order.
        labelled: Whether the label must be there.

    Raises:
        DataError: If the source cannot be read as such a table, or columns are missing.
        UsageError: If the format is unknown.

    """
    names = list(columns.values())
    *_, text, label = names
    readers: dict[str, Callable[[str], Iterator[TableRow]]] = {
        "csv": lambda path: _read_delimited(path, ","),
        "tsv": lambda path: _read_delimited(path, "\t"),
        "jsonl": _read_json_lines,
        "lines": lambda path: _read_labelled_lines(path, text, label),
        "folder": lambda path: _read_folder(path, text, label, labelled=labelled),
    }
    if isinstance(source, Records):
        rows = _read_records(source, names, labelled=labelled)
    elif file_format in readers:
        rows = readers[file_format](source)
    else:
        raise UsageError(
            f"{source}: not a format of tables: {file_format}. Set data.format to {', '.join(readers)}."
        )
    for row in rows:
        row.require(names if labelled else names[:-1], ", ".join(columns))
        yield row


def _read_records(source: Records, columns: Sequence[str], *, labelled: bool) -> Iterator[TableRow]:
    """Dicts by column, or tuples in the order of `columns`; a text alone if no label is needed."""
    for number, record in enumerate(source.rows, start=1):
        location = f"{source.name}:{number}"
        if isinstance(record, Mapping):
            yield TableRow(location, record)
            continue
        values = (record,) if isinstance(record, str) else record
        counts = {len(columns)} if labelled else {len(columns), len(columns) - 1}
        if not isinstance(values, tuple | list) or len(values) not in counts:
            shown = " ".join(f"{record!r:.60}".split())  # one line, even of a DataFrame
            raise DataError(
                f"{location}: {shown}, expected a tuple ({', '.join(columns)}) or a dict of these."
            )
        yield TableRow(location, dict(zip(columns, values, strict=False)))


def _read_delimited(path: str | Path, delimiter: str) -> Iterator[TableRow]:
    """A header, then rows with as many fields; in CSV, quoted fields may hold commas and newlines."""
    csv.field_size_limit(MAX_FIELD)
    quoting: Any = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    lines = (f"{part}\n" for line in read_file_lines(path) for part in line.text.split("\r"))
    rows = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        if not any(names):
            raise DataError(f"{path}:1: no header: the first line must name the columns.")
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise DataError(f"{path}:1: two columns are named {duplicate!r}. Rename one.")
        yield from _read_fields(rows, names, str(path))
    except csv.Error as problem:
        raise DataError(f"{path}:{rows.line_num}: {problem}. Is a quotation mark not closed?") from None


def _read_fields(rows: Any, header: list[str], path: str) -> Iterator[TableRow]:
    start = rows.line_num + 1
    for values in rows:
        location, start = f"{path}:{start}", rows.line_num + 1
        if not values:
            continue
        if len(values) != len(header):
            raise DataError(
                f"{location}: {len(values)} columns, expected {len(header)} ({', '.join(header)}). "
                "Does a text hold the separator without quotation marks?"
            )
        yield TableRow(location, dict(zip(header, values, strict=True)), has_header=True)


def _read_json_lines(path: str | Path) -> Iterator[TableRow]:
    for line in read_lines(path):
        if line.text.strip():
            yield TableRow(line.location, read_record(line))


def _read_labelled_lines(path: str | Path, text: str, label: str) -> Iterator[TableRow]:
    """A label, white space and a text; or fastText's `__label__a __label__b text`."""
    for line in read_lines(path):
        words = line.text.split()
        if not words:
            continue
        labels = []
        while words and words[0].startswith(FASTTEXT):
            labels.append(words.pop(0).removeprefix(FASTTEXT))
        if labels:
            value = labels if len(labels) > 1 else labels[0]
            yield TableRow(line.location, {label: value, text: " ".join(words)})
            continue
        first, rest = _split_label(line)
        if not rest:
            raise DataError(f"{line.location}: {line.text!r:.40}, expected a label, a space and a text.")
        yield TableRow(line.location, {label: first, text: rest})


def _split_label(line: Line) -> tuple[str, str]:
    """The first word of a line, and the text after it."""
    first, *rest = line.text.split(maxsplit=1) or [""]
    return first, rest[0].strip() if rest else ""


def remove_labels(lines: Sequence[Line], known: Collection[str]) -> list[Line]:
    """Lines to classify as texts: labels in front of them are removed if all lines have one.

    fastText's labels begin with `__label__`. Other words are labels if every line, of two or more, begins
    with a known one.

    Raises:
        DataError: If most lines, but not all, begin with a known label.

    """
    if any(line.text.startswith(FASTTEXT) for line in lines):
        return [line._replace(text=_remove_fasttext(line.text)) for line in lines]
    texts = [line for line in lines if line.text.strip()]
    plain = [line for line in texts if not _has_label(line, known)]
    if 2 * len(plain) >= len(texts):
        return list(lines)
    if plain or len(texts) == 1:
        line = plain[0] if plain else texts[0]
        raise DataError(
            f"{line.location}: "
            + ("begins with no label of the task, but most lines do. " if plain else "begins with a label. ")
            + "Pass `plain_text=True` if all lines are texts without labels, or use .csv or .jsonl."
        )
    return [line._replace(text=_split_label(line)[1]) for line in lines]


def _has_label(line: Line, known: Collection[str]) -> bool:
    """Whether a line is a known label, a space and a text."""
    first, rest = _split_label(line)
    return first in known and bool(rest)


def _remove_fasttext(text: str) -> str:
    words = text.split()
    while words and words[0].startswith(FASTTEXT):
        words.pop(0)
    return " ".join(words)


def _read_folder(path: str, text: str, label: str, *, labelled: bool) -> Iterator[TableRow]:
    """A folder for each label, with a text in each file; without labels, files are enough."""
    folder = Path(expand_path(path))
    for file in list_files(folder):
        parts = file.relative_to(folder).parts
        if len(parts) < 2 and labelled:
            raise DataError(f"{file}: not in the folder of a label. Expected {folder}/LABEL/{file.name}.")
        lines = [line.text for line in read_lines(file, resolve_encoding(path))]
        yield TableRow(f"{file}:1", {label: parts[0], text: " ".join(lines)})
