r"""What is known about documents beside their text: year, author, party.

    file names, a table  ->  text.corpus.metadata  ->  text.corpus.documents

From a regular expression with named groups, which is searched in the names of the files
(`(?P<year>\d{4})_(?P<author>.*)\.txt`), or from a table: tab-separated with a header, the first column a file
(with or without its ending) or the title of a document. Values are strings.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Self

from polyseme.errors import DataError, UsageError
from polyseme.text.corpus.headings import find_danger
from polyseme.text.reading import expand_path, read_file_lines

logger = logging.getLogger(__name__)

RESERVED = frozenset(("number", "title", "file", "document", "word", "sense"))  # have a meaning of their own
_SHOWN_ROWS = 5
_FIELD = re.compile(r"[^\W\d]\w*")


class Metadata:
    """Values of documents by file name and title.

    Args:
        pattern: A regular expression with named groups.
        table: The values by the first column of a table.

    """

    def __init__(
        self, pattern: re.Pattern[str] | None = None, table: dict[str, dict[str, str]] | None = None
    ) -> None:
        self._pattern, self._table = pattern, table or {}
        self._unused = set(self._table)

    @classmethod
    def parse(cls, meta: str | Path | None) -> Self:
        """Parse what a user gives: the path of a table, or a regular expression; None has no values.

        Raises:
            UsageError: It is neither.
            DataError: The table is damaged.

        """
        if meta is None:
            return cls()
        path = Path(expand_path(meta))
        if path.is_file():
            return cls(table=read_table(path))
        text = str(meta)
        if "(?P<" not in text:
            raise UsageError(
                f"meta: {text!r} is neither a file nor a regular expression with names, such as "
                "'(?P<year>[0-9]{4})_(?P<author>.*)'."
            )
        try:
            pattern = re.compile(text)
        except (re.error, RecursionError, OverflowError) as problem:
            raise UsageError(f"meta: {text!r} is not a regular expression ({problem}).") from None
        if reason := find_danger(text):
            raise UsageError(f"meta: {text!r} may take very long: {reason}. Write it without.")
        _check_fields(list(pattern.groupindex), "meta")
        return cls(pattern)

    def find(self, file: str | Path, title: str) -> dict[str, str]:
        """The values of a document; none if nothing is known."""
        name = Path(file).name
        if self._pattern is not None:
            match = self._pattern.search(name) or (self._pattern.search(title[:255]) if title else None)
            return {} if match is None else {key: text for key, text in match.groupdict().items() if text}
        values: dict[str, str] = {}
        for key in (str(file), name, name.partition(".")[0], Path(name).stem, title):
            if key and key in self._table:
                values |= self._table[key]
                self._unused.discard(key)
        return values

    def log_unused(self) -> None:
        """Log the rows of the table that no document has, once: the documents may be read twice."""
        if self._unused:
            shown = ", ".join(sorted(self._unused)[:_SHOWN_ROWS])
            count = len(self._unused)
            rows = (
                "1 row of the table of metadata fits"
                if count == 1
                else f"{count:,} rows of the table of metadata fit"
            )
            logger.warning("%s no document: %s%s", rows, shown, ", …" if count > _SHOWN_ROWS else ".")
            self._unused.clear()


def read_table(path: Path) -> dict[str, dict[str, str]]:
    """Read a tab-separated table with a header: first column -> the other columns by name.

    Raises:
        DataError: A row has another number of columns than the header, or comes twice.

    """
    header: list[str] = []
    table: dict[str, dict[str, str]] = {}
    for line in read_file_lines(path):
        cells = [cell.strip() for cell in line.text.split("\t")]
        if not any(cells):
            continue
        if not header:
            header = cells
            if len(header) < 2:
                raise DataError(f"{line.location}: one column, expected a file or title, a tab, and more.")
            _check_fields(header[1:], line.location)
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{line.location}: {len(cells)} columns, expected {len(header)} as in the header."
            )
        if cells[0] in table:
            raise DataError(f"{line.location}: {cells[0]!r} comes twice. Leave one row out.")
        table[cells[0]] = {name: cell for name, cell in zip(header[1:], cells[1:], strict=True) if cell}
    if not table:
        raise DataError(f"{path}: a table of metadata needs a header and a row.")
    return table


def _check_fields(names: list[str], location: str) -> None:
    """Refuse names that are no words, or have a meaning of their own."""
    for name in names:
        if not _FIELD.fullmatch(name) or name in RESERVED:
            reason = "has a meaning of its own" if name in RESERVED else "is not a word"
            raise DataError(f"{location}: the column {name!r} {reason}. Rename it.")
