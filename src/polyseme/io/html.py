"""Tables of results as HTML for notebooks, and as aligned text for the terminal.

    results (nearest words, usages, predictions, scores)  ->  io.html  ->  `_repr_html_`, `__repr__`

Every cell and caption is escaped: words and sentences come from other people's text. The HTML carries its few
styles inline and sets no colours, so that it suits light and dark notebooks. Imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

MAX_ROWS = 50  # shown of a table; a last line says how many are left out

_CELL = "padding:.15em .7em;vertical-align:top;"


class Highlight(NamedTuple):
    """A cell of running text with one part marked: bold in HTML, in brackets in plain text."""

    before: str
    marked: str
    after: str

    def __str__(self) -> str:
        return f"{self.before}[{self.marked}]{self.after}"


Cell = str | int | float | Highlight | None


def render_table(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, caption: str = "", max_rows: int = MAX_ROWS
) -> str:
    """Render rows as an HTML table.

    Args:
        columns: The heading of each column.
        rows: One sequence of cells per row. Numbers are aligned right, floats are rounded, None is empty.
        caption: A line above the table.
        max_rows: How many rows to show; a last row counts the others.

    Returns:
        The table as HTML, with everything escaped.

    Example:
        >>> render_table(["word"], [["<b>"]]).count("<td")
        1

    """
    numeric, decimals = _find_numeric_columns(len(columns), rows), _choose_decimals(len(columns), rows)
    heading = "".join(
        f'<th style="{_CELL}{_choose_alignment(number)}">{escape(name)}</th>'
        for name, number in zip(columns, numeric, strict=True)
    )
    lines = [
        "<tr>"
        + "".join(
            f'<td style="{_CELL}{_choose_alignment(number)}">{_render_cell(cell, digits)}</td>'
            for cell, number, digits in zip(row, numeric, decimals, strict=True)
        )
        + "</tr>"
        for row in rows[:max_rows]
    ]
    if len(rows) > max_rows:
        lines.append(
            f'<tr><td style="{_CELL}" colspan="{len(columns)}">{_count_rest(rows, max_rows)}</td></tr>'
        )
    # A caption element would be as narrow as the table, so the caption is a paragraph above it.
    title = f'<p style="{_CELL}margin:0">{escape(caption)}</p>' if caption else ""
    return f"{title}<table><thead><tr>{heading}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def format_table(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, caption: str = "", max_rows: int = MAX_ROWS
) -> str:
    """Format rows as lines of text with aligned columns; arguments as in `render_table`.

    Wide characters (Chinese, Japanese, Korean) count as two columns.
    """
    numeric, decimals = _find_numeric_columns(len(columns), rows), _choose_decimals(len(columns), rows)
    cells = [
        [format_cell(cell, digits) for cell, digits in zip(row, decimals, strict=True)]
        for row in rows[:max_rows]
    ]
    lines = [list(columns), *cells]
    widths = [max(_measure_width(line[number]) for line in lines) for number in range(len(columns))]
    text = [
        "  ".join(
            _pad(cell, width, right=number) for cell, width, number in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
    if len(rows) > max_rows:
        text.append(_count_rest(rows, max_rows))
    return "\n".join([caption, *text] if caption else text)


def format_cell(cell: Cell, decimals: int = 4) -> str:
    """Format a cell as one line of plain text: floats with `decimals` digits, line breaks as spaces."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.{decimals}f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return " ".join(str(cell).splitlines())


def _render_cell(cell: Cell, decimals: int) -> str:
    if isinstance(cell, Highlight):
        return f"{escape(cell.before)}<b>{escape(cell.marked)}</b>{escape(cell.after)}"
    return escape(format_cell(cell, decimals))


def _find_numeric_columns(count: int, rows: Sequence[Sequence[Cell]]) -> list[bool]:
    """Which columns hold numbers: by the first row that has a value there."""
    first = [next((row[number] for row in rows if row[number] is not None), None) for number in range(count)]
    return [isinstance(cell, int | float) and not isinstance(cell, bool) for cell in first]


def _choose_decimals(count: int, rows: Sequence[Sequence[Cell]]) -> list[int]:
    """How many decimals the floats of each column get: 4, or 2 if one of them has two digits or more."""
    columns = ([row[number] for row in rows] for number in range(count))
    return [
        2 if any(isinstance(cell, float) and abs(cell) >= 10 for cell in column) else 4 for column in columns
    ]


def _choose_alignment(numeric: bool) -> str:
    return "text-align:right" if numeric else "text-align:left"


def _count_rest(rows: Sequence[object], max_rows: int) -> str:
    return f"… and {len(rows) - max_rows:,} more"


def _measure_width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _measure_width(text))
    return space + text if right else text + space
