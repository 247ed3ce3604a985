"""Read sources with their targets: parallel files, lines with tabs, CSV, TSV, JSON lines, records.

    text.reading, tasks.data.tables  ->  tasks.data.parallel  ->  tasks.translate, tasks.summarise

Parallel files are named alike but for their ending: `train.en` and `train.de`, line by line. Errors begin
with `file:line`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.data.tables import ENDINGS, guess_format, read_rows
from polyseme.text.reading import read_lines

TABLES = ("csv", "tsv", "jsonl")
COMPRESSIONS = (".gz", ".zst")


class PairColumns(NamedTuple):
    """What names the source and the target: columns by name, or by number from 0 in lines with tabs."""

    settings: tuple[str, str]  # that name them
    source: str | int
    target: str | int


class TextRow(NamedTuple):
    """A source and its target, which is None if the file has none."""

    location: str
    source: str
    target: str | None


def read_text_pairs(
    source: Source, file_format: str, columns: PairColumns, ending: str | None = None, *, labelled: bool
) -> Iterator[TextRow]:
    """Read sources with their targets.

    Args:
        source: A path, or records.
        file_format: "parallel", "tabs", "csv", "tsv" or "jsonl"; "auto": by the name of the file.
        columns: What names the source and the target.
        ending: Of the files of targets, for parallel files.
        labelled: Whether targets must be there; if not, they are not read.

    Raises:
        DataError: If a target is missing or empty, or two parallel files differ in length.

    """
    if file_format == "auto" and not isinstance(source, Records):
        default = "tabs" if ending is None else "parallel"
        file_format = guess_format(source, ENDINGS, default)
    if isinstance(source, Records) or file_format in TABLES:
        rows = _read_table(source, file_format, columns, labelled=labelled)
    elif file_format == "tabs":
        rows = _read_tabs(source, columns, labelled=labelled)
    else:
        rows = _read_parallel(source, ending, labelled=labelled)
    for row in rows:
        if labelled and not (row.target or "").strip() and row.source.strip():
            raise DataError(
                f"{row.location}: the target is empty. Delete the {'pair' if row.source else 'row'}, or give "
                "it a target."
            )
        yield row


def _read_table(
    source: Source, file_format: str, columns: PairColumns, *, labelled: bool
) -> Iterator[TextRow]:
    names = (str(columns.source), str(columns.target))
    settings = dict(zip(columns.settings, names, strict=True))
    for row in read_rows(source, file_format, settings, labelled=labelled):
        yield TextRow(row.location, row.text(names[0]), row.text(names[1]) if labelled else None)


def _read_tabs(path: str, columns: PairColumns, *, labelled: bool) -> Iterator[TextRow]:
    """Lines with tabs and without a header; a line without a tab is a source, if no target is needed."""
    first, second = (
        column if isinstance(column, int) else default
        for column, default in ((columns.source, 0), (columns.target, 1))
    )
    for line in read_lines(path):
        if not line.text.strip() and labelled:
            continue
        fields = line.text.split("\t")
        if labelled and len(fields) <= max(first, second):
            raise DataError(
                f"{line.location}: {len(fields)} column{'s' if len(fields) > 1 else ''}, expected a source, "
                "a tab and a target. For two files of parallel lines set data.target_ending."
            )
        text = fields[first] if len(fields) > first else fields[0]
        yield TextRow(line.location, text, fields[second] if labelled else None)


def _read_parallel(path: str, ending: str | None, *, labelled: bool) -> Iterator[TextRow]:
    if not labelled:
        yield from (TextRow(line.location, line.text, None) for line in read_lines(path))
        return
    target_path = find_target_file(path, ending)
    counts = [0, 0]
    for left, right in zip_longest(read_lines(path), read_lines(target_path)):
        counts[0] += left is not None
        counts[1] += right is not None
        if left is not None and right is not None:
            yield TextRow(right.location if not right.text.strip() else left.location, left.text, right.text)
    if counts[0] != counts[1]:
        raise DataError(
            f"{path}: {counts[0]:,} lines, but {target_path} has {counts[1]:,}. Line n of one file must be "
            "the translation of line n of the other."
        )


def find_target_file(path: str, ending: str | None) -> str:
    """The file of targets beside a file of sources: `train.de` for `train.en` and the ending `de`.

    Raises:
        UsageError: If no ending is set, or there is no such file.

    """
    if not ending:
        raise UsageError(
            'Parallel files need data.target_ending, the ending of the files of targets: "de" for train.de '
            "beside train.en."
        )
    file = Path(path)
    compression = file.suffix if file.suffix in COMPRESSIONS else ""
    stem = file.with_suffix("") if compression else file
    target_path = stem.with_suffix(f".{ending.lstrip('.')}")
    target_path = target_path.with_name(target_path.name + compression)
    if target_path == file:
        raise UsageError(
            f"{path}: data.target_ending is the ending of this very file. Pass the file of sources."
        )
    if not target_path.expanduser().is_file():
        raise UsageError(f"{path}: there is no {target_path} with its targets. Check data.target_ending.")
    return str(target_path)
