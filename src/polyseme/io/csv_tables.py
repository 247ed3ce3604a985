"""Write tables as CSV that Excel, pandas and R read alike.

rows  ->  io.csv_tables  ->  books.network, api.exporting

UTF-8 with a byte order mark, without which Excel garbles Chinese; other programs may not expect one. Text
that a spreadsheet would run as a formula (`=…`, `+…`, `-…`, `@…`, also full width) gets an apostrophe before
it, as OWASP recommends; numbers stay numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

_FORMULA_STARTS = (*"=+-@＝＋－＠", "\t", "\r", "\n")  # full width, too


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]], *, bom: bool = True) -> int:
    """Write a table, and return the number of its rows.

    Args:
        path: The file, which is replaced.
        head: The names of the columns.
        rows: The cells; numbers are written as they are.
        bom: Begin with a byte order mark, for Excel.

    Example:
        >>> write_csv(Path("usages.csv"), ["left", "word", "right"], [["the river ", "bank", " ."]])
        1

    """
    count = 0
    with path.open("w", encoding="utf-8-sig" if bom else "utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([_make_safe(name) for name in head])
        for count, row in enumerate(rows, start=1):  # noqa: B007  # the last number is the count
            writer.writerow([_make_safe(cell) for cell in row])
    return count


def _make_safe(cell: object) -> object:
    """A cell that no spreadsheet runs as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell
