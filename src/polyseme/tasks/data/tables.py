"""Files of examples to rows: CSV, TSV, JSON lines, lines that begin with a label, folders of texts.

    text.reading  ->  tasks.data.tables  ->  tasks.examples

A row is its place (file:line) and its fields by name. What is wrong is refused with its place.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import DataError, UsageError
from polyseme.text.corpus.documents import read_record
from polyseme.text.reading import Line, expand_path, list_files, read_file_lines, read_lines

ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}
LONGEST_FIELD = 10_000_000  # characters of a field of a CSV file
FASTTEXT = "__label__"


class TableRow(NamedTuple):
    """Fields by name, and where they stand."""

    place: str
    fields: dict[str, Any]
    header: bool = False  # whether the first line of the file named the fields

    def text(self, name: str) -> str:
        """A field that must be there, as text."""
        if name not in self.fields:
            shown = ", ".join(f"{field!s:.30}" for field in self.fields) or "none"
            raise DataError(
                f"{self.place}: no field {name!r}; there are {shown}. "
                + (
                    "Is the first line, which must name the columns, missing? Add it, or name"
                    if self.header
                    else "Name"
                )
                + " the right one with --set data.text, data.first, data.second or data.label."
            )
        value = self.fields[name]
        if value is None or isinstance(value, dict | list):
            raise DataError(f"{self.place}: {name} is {value!r:.40}, expected text.")
        return value if isinstance(value, str) else json.dumps(value)


def kind_of(path: str | Path, asked: str) -> str:
    """The format of a file: as asked for, or by its name; a folder is one of texts."""
    if asked != "auto":
        return asked
    place = Path(expand_path(path))
    if place.is_dir():
        return "folder"
    suffixes = [suffix.lower() for suffix in place.suffixes if suffix.lower() not in (".gz", ".zst")]
    return ENDINGS.get(suffixes[-1], "lines") if suffixes else "lines"


def read_rows(
    path: str | Path, kind: str, text: str, label: str, *, labelled: bool = True
) -> Iterator[TableRow]:
    """The rows of a file; `text` and `label` are the names of what lines and folders hold.

    labelled: texts of a folder must lie in those of their labels.
    """
    readers: dict[str, Callable[[], Iterator[TableRow]]] = {
        "csv": lambda: _delimited(path, ","),
        "tsv": lambda: _delimited(path, "\t"),
        "jsonl": lambda: _json_lines(path),
        "lines": lambda: _labelled_lines(path, text, label),
        "folder": lambda: _folder(Path(expand_path(path)), text, label, labelled=labelled),
    }
    if kind not in readers:
        raise UsageError(f"{path}: this task does not read {kind}. Set data.format to {', '.join(readers)}.")
    return readers[kind]()


def _delimited(path: str | Path, delimiter: str) -> Iterator[TableRow]:
    """A header, then rows of as many fields; in CSV, quoted fields may hold commas and newlines."""
    csv.field_size_limit(LONGEST_FIELD)
    quoting: Any = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    lines = (f"{part}\n" for line in read_file_lines(path) for part in line.text.split("\r"))
    rows = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        if not any(names):
            raise DataError(f"{path}:1: no header: the first line must name the columns.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{path}:1: two columns are named {twice!r}. Give each a name of its own.")
        yield from _fields(rows, names, str(path))
    except csv.Error as problem:
        raise DataError(
            f"{path}:{rows.line_num}: {problem}. Is a quotation mark without its partner?"
        ) from None


def _fields(rows: Any, header: list[str], path: str) -> Iterator[TableRow]:
    start = rows.line_num + 1
    for values in rows:
        place, start = f"{path}:{start}", rows.line_num + 1
        if not values:
            continue
        if len(values) != len(header):
            raise DataError(
                f"{place}: {len(values)} columns, expected {len(header)} ({', '.join(header)}). "
                "Does a text hold the separator without quotation marks?"
            )
        yield TableRow(place, dict(zip(header, values, strict=True)), header=True)


def _json_lines(path: str | Path) -> Iterator[TableRow]:
    for line in read_lines(path):
        if not line.text.strip():
            continue
        yield TableRow(f"{line.source}:{line.number}", read_record(line))


def _labelled_lines(path: str | Path, text: str, label: str) -> Iterator[TableRow]:
    """A label, white space and a text; or fastText's `__label__a __label__b text`."""
    for line in read_lines(path):
        words = line.text.split()
        if not words:
            continue
        place = f"{line.source}:{line.number}"
        labels = []
        while words and words[0].startswith(FASTTEXT):
            labels.append(words.pop(0).removeprefix(FASTTEXT))
        if labels:
            yield TableRow(place, {label: labels if len(labels) > 1 else labels[0], text: " ".join(words)})
            continue
        first, rest = _label_and_text(line)
        if not rest:
            raise DataError(f"{place}: {line.text!r:.40}, expected a label, a space and a text.")
        yield TableRow(place, {label: first, text: rest})


def _label_and_text(line: Line) -> tuple[str, str]:
    """The first word of a line, and what stands behind it."""
    first, *rest = line.text.split(maxsplit=1) or [""]
    return first, rest[0].strip() if rest else ""


def without_labels(lines: Sequence[Line], known: Collection[str]) -> list[Line]:
    """Lines to be classified, as texts: labels before them are taken off, if all lines have one.

    fastText's labels are seen by their `__label__`. Other words are labels where every line, of two or more,
    begins with one that is `known`; if most lines but not all do, the file is refused.
    """
    fast = [line for line in lines if line.text.startswith(FASTTEXT)]
    if fast:
        return [line._replace(text=_behind_fasttext(line.text)) for line in lines]
    texts = [line for line in lines if line.text.strip()]
    plain = [line for line in texts if not _begins_with(line, known)]
    if 2 * len(plain) >= len(texts):
        return list(lines)
    if plain or len(texts) == 1:
        place = plain[0] if plain else texts[0]
        raise DataError(
            f"{place.source}:{place.number}: "
            + ("begins with no label of the task, but most lines do. " if plain else "begins with a label. ")
            + "Say --raw if all lines are texts without labels, or give them as .csv or .jsonl."
        )
    return [line._replace(text=_label_and_text(line)[1]) for line in lines]


def _begins_with(line: Line, known: Collection[str]) -> bool:
    """Whether a line is a label, a space and a text."""
    first, rest = _label_and_text(line)
    return first in known and bool(rest)


def _behind_fasttext(text: str) -> str:
    words = text.split()
    while words and words[0].startswith(FASTTEXT):
        words.pop(0)
    return " ".join(words)


def _folder(folder: Path, text: str, label: str, *, labelled: bool) -> Iterator[TableRow]:
    """A folder for each label, with a text in each file; where no labels are needed, files alone will do."""
    for file in list_files(folder):
        parts = file.relative_to(folder).parts
        if len(parts) < 2 and labelled:
            raise DataError(f"{file}: lies in no folder of its own. Expected {folder}/LABEL/{file.name}.")
        lines = [line.text for line in read_lines(file)]
        yield TableRow(f"{file}:1", {label: parts[0], text: " ".join(lines)})
