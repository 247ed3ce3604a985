"""Select and group the documents of an index: by number, title or metadata.

    index.json (documents with titles and metadata)  ->  search.selection  ->  search.index, api

A selection is written `1-20`, `3,5,8-`, `第一回`, `year=1900-1950` or `party=Whig`; several are separated by
commas or come in a list. Numbers and titles add up; conditions on different fields must all hold. Without
metadata, the year of a document is the one in its title or the name of its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.json_text import parse_digits
from polyseme.text.corpus.documents import Document

Documents = str | int | Sequence[str | int]
_RANGE = re.compile(r"(\d{1,9})(?:\s*([-–])\s*(\d{1,9})?)?")
_CONDITION = re.compile(r"([^\W\d]\w*)\s*=\s*(.+)")
_BY = re.compile(r"([^\W\d]\w*)(?:/(\d{1,6}))?")
_YEAR = re.compile(r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)")
YEAR, DOCUMENT = "year", "document"


def select_documents(listed: Sequence[Document], wanted: Documents) -> NDArray[np.bool_]:
    """Tell for each document whether it is selected.

    Args:
        listed: The documents of an index.
        wanted: The selection.

    Raises:
        UsageError: A number, title, field or value that no document has.

    """
    numbers_or_titles = np.zeros(len(listed), np.bool_)
    conditions: dict[str, NDArray[np.bool_]] = {}
    has_names = False
    for item in _list_items(listed, wanted):
        condition = _CONDITION.fullmatch(item)
        if condition is not None and not _has_title(listed, item):
            field, value = condition[1], condition[2].strip()
            matching = _match_field(listed, field, value)
            conditions[field] = conditions.get(field, np.zeros(len(listed), np.bool_)) | matching
        else:
            numbers_or_titles |= _match_name(listed, item)
            has_names = True
    chosen = numbers_or_titles if has_names else np.ones(len(listed), np.bool_)
    for matching in conditions.values():
        chosen = chosen & matching
    if not chosen.any():
        raise UsageError(f"No document fits {_quote(wanted)}. {_describe(listed)}")
    return chosen


def group_documents(listed: Sequence[Document], by: str) -> list[str | None]:
    """The group of each document: its title, or a field of its metadata; None if it has none.

    Args:
        listed: The documents of an index.
        by: "document", a field such as "year", or a field and a width such as "year/10" for decades;
            "document/10" for ten documents each.

    Raises:
        UsageError: No document has the field, or a value to be grouped by width is not a number.

    """
    match = _BY.fullmatch(by)
    if match is None:
        raise UsageError(f"by is {by!r}, expected document or a field such as year, year/10 or author.")
    field, width = match[1], int(match[2] or 0)
    if field == DOCUMENT:
        if not width:
            return [document.name for document in listed]
        return [_find_bin(str(max(document.number - 1, 0)), width, by, first=1) for document in listed]
    values = read_field(listed, field)
    return values if not width else [value and _find_bin(value, width, by) for value in values]


def read_field(listed: Sequence[Document], field: str) -> list[str | None]:
    """The value of a field for each document, None where it is not known; years come from names, too.

    Raises:
        UsageError: No document has the field.

    """
    if any(field in document.meta for document in listed):
        return [document.meta.get(field) for document in listed]
    years = [_find_year(document) for document in listed] if field == YEAR else []
    if not any(years):
        _refuse_field(listed, field)
    return years


def sort_groups(names: Sequence[str]) -> list[str]:
    """The distinct names, in numerical order if all begin with a number, else in the order they come."""
    unique = list(dict.fromkeys(names))
    starts = [re.match(r"-?[0-9]{1,18}", name) for name in unique]
    if all(starts):
        return [
            name
            for _, name in sorted(
                (int(start[0]), name) for start, name in zip(starts, unique, strict=True) if start
            )
        ]
    return unique


def _find_year(document: Document) -> str | None:
    """The first year in the title of a document, else in the name of its file."""
    match = _YEAR.search(document.title) or _YEAR.search(Path(document.file).name)
    return match[0] if match else None


def _find_bin(value: str, width: int, by: str, first: int = 0) -> str:
    """The numbers from a multiple of the width, plus `first`, to the next one."""
    try:
        start = int(value) // width * width + first
    except ValueError:
        raise UsageError(
            f"by is {by!r}, but {value!r} is not a number. Use {by.partition('/')[0]!r}."
        ) from None
    return f"{start}-{start + width - 1}"


def _list_items(listed: Sequence[Document], wanted: Documents) -> list[str]:
    """The parts of a selection; a title with commas stays whole."""
    items = [wanted] if isinstance(wanted, str | int) else list(wanted)
    parts: list[str] = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise UsageError(f"documents has {item!r}, expected numbers, titles or conditions.")
        text = str(item).strip()
        parts += [text] if _has_title(listed, text) else [part.strip() for part in re.split("[,，]", text)]
    parts = [part for part in parts if part]
    if not parts:
        raise UsageError("documents is empty. Name numbers such as 1-20, titles, or year=1900-1950.")
    return parts


def _has_title(listed: Sequence[Document], text: str) -> bool:
    return any(text in (document.title, document.file, document.name) for document in listed)


def _match_name(listed: Sequence[Document], item: str) -> NDArray[np.bool_]:
    """Documents by number, by a range of numbers, by title or file name, or by a part of one of them."""
    numbers = np.array([document.number for document in listed])
    span = _RANGE.fullmatch(item)
    if span is not None and not _has_title(listed, item):
        low = int(span[1])
        high = int(span[3]) if span[3] else (low if span[2] is None else int(numbers.max()))
        if low > high or not ((numbers >= low) & (numbers <= high)).any():
            raise UsageError(f"documents: there is no document {item}. {_describe(listed)}")
        return (numbers >= low) & (numbers <= high)
    folded = item.casefold()
    for is_match in (
        [folded in (text.casefold() for text in (d.title, d.file, d.name)) for d in listed],
        [folded in d.name.casefold() for d in listed],
    ):
        if any(is_match):
            return np.array(is_match, np.bool_)
    close = get_close_matches(item, [document.name for document in listed], n=1, cutoff=0.4)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"documents: no title contains {item!r}.{guess} {_describe(listed)}")


def _match_field(listed: Sequence[Document], field: str, value: str) -> NDArray[np.bool_]:
    """Documents whose field has a value, or a number in a range."""
    values = read_field(listed, field)
    span = _RANGE.fullmatch(value)
    if span is not None and span[2] is not None:
        low, high = int(span[1]), int(span[3]) if span[3] else None
        matching = [
            number is not None and low <= number and (high is None or number <= high)
            for number in (None if known is None else parse_digits(known) for known in values)
        ]
    else:
        matching = [known is not None and known.casefold() == value.casefold() for known in values]
    if not any(matching):
        known_values = sort_groups([known for known in values if known is not None])
        shown = ", ".join(known_values[:8]) + (", …" if len(known_values) > 8 else "")
        raise UsageError(f"documents: no document has {field}={value}. Its values are {shown}.")
    return np.array(matching, np.bool_)


def _refuse_field(listed: Sequence[Document], field: str) -> NoReturn:
    fields = sorted({name for document in listed for name in document.meta})
    known = f"Its fields are {', '.join(fields)}" if fields else "It has no metadata: build it with `meta`"
    raise UsageError(f"The index has no {field!r} of its documents. {known}.")


def _describe(listed: Sequence[Document]) -> str:
    """What documents there are, for errors."""
    numbers = [document.number for document in listed]
    titled = next((document.title for document in listed if document.title), "")
    example = f", such as {titled!r}" if titled else ""
    return f"The index has documents {min(numbers)} to {max(numbers)}{example}." if numbers else ""


def _quote(wanted: Documents) -> str:
    return repr(wanted if isinstance(wanted, str | int) else ", ".join(map(str, wanted)))
