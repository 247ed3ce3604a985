"""A frozen list of results that shows itself as a table.

    search, language, tasks  ->  io.result_list (drawn by io.html)  ->  notebooks, the terminal

A `ResultList` is a tuple: it has a length, is iterated, indexed and sliced, goes to JSON as a list, and
equals a list or tuple with the same items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self, SupportsIndex, TypeVar, overload

from polyseme.io.html import Cell, format_table, render_table


class TabularResult(Protocol):
    """A result that can be a row of a table."""

    def as_row(self) -> Mapping[str, Cell]:
        """Return the cells by the names of their columns; all results of a list have the same columns."""


Result = TypeVar("Result", bound=TabularResult, covariant=True)


class ResultList(tuple[Result, ...]):
    """Results in order, best first, shown as a table by notebooks and by `repr`.

    Args:
        results: The results, each with a method `as_row`.
        caption: A line above the table.
        complete: False if a time limit ended the search for results.

    Example:
        >>> found = words.nearest("bank", 5)
        >>> found[0].word, [word for word, cosine in found], found[:3]

    """

    caption: str
    complete: bool

    def __new__(cls, results: Iterable[Result] = (), caption: str = "", *, complete: bool = True) -> Self:
        """Create the list from results and a caption."""
        made = super().__new__(cls, results)
        made.caption, made.complete = caption, complete
        return made

    @overload
    def __getitem__(self, key: SupportsIndex) -> Result: ...

    @overload
    def __getitem__(self, key: slice) -> ResultList[Result]: ...

    def __getitem__(self, key: Any) -> Any:
        chosen = super().__getitem__(key)
        return ResultList(chosen, self.caption, complete=self.complete) if isinstance(key, slice) else chosen

    def __eq__(self, other: object) -> bool:
        return super().__eq__(tuple(other) if isinstance(other, list) else other)

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        if not self:
            return f"{self.caption}: nothing" if self.caption else "[]"
        return format_table(*self._make_table(), caption=self.caption)

    def _repr_html_(self) -> str:
        return render_table(*self._make_table(), caption=self.caption)

    def _make_table(self) -> tuple[list[str], list[list[Cell]]]:
        rows = [result.as_row() for result in self]
        columns = list(rows[0]) if rows else []
        return columns, [[row[column] for column in columns] for row in rows]
