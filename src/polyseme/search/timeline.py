"""How often a word is used, and in which senses, from document to document or year to year.

    search.index, search.senses, search.selection  ->  search.timeline  ->  api, server

Frequencies are usages of the word among all indexed usages of a period. Intervals are Wilson's, at 95%: they
count usages as independent, so a word that one document repeats is less certain than its interval says.
Senses are found in the whole index, and then counted in each period.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.io.html import Cell
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.json_text import parse_digits
from polyseme.search.index import Index
from polyseme.search.selection import DOCUMENT, YEAR, group_documents, read_field, sort_groups
from polyseme.search.senses import MIN_USAGES, Senses, find_senses
from polyseme.text.corpus.documents import Document

PER = 1_000_000  # frequencies are per million usages
MAX_PERIODS = 40  # years are joined to decades, and documents to tens, beyond that
MAX_CHOICE = 400  # periods that can still be chosen
YEAR_WIDTHS, DOCUMENT_WIDTHS = (1, 5, 10, 25, 50, 100), (1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000)
MAX_VALUES = 60  # of a field that is offered to group by
Z = 1.959964  # of 95%
Interval = tuple[float, float]


@dataclass(frozen=True)
class TimelinePeriod:
    """A word in one document, or in one group of documents.

    Attributes:
        name: The document or the group.
        documents: Selects the documents of the period, as `documents` of the other verbs takes it.
        total: How many usages of all words the period has.
        count: How many of them are of the word.
        frequency: `count` per million usages.
        interval: 95% interval of `frequency`.
        shares: The share of each sense among the usages of the period; empty if there are none.
        share_intervals: 95% interval of each share.

    """

    name: str
    documents: str
    total: int
    count: int
    frequency: float
    interval: Interval
    shares: tuple[float, ...]
    share_intervals: tuple[Interval, ...]

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        low, high = self.interval
        return {
            "period": self.name,
            "usages": self.count,
            "per million": f"{self.frequency:,.0f} ({low:,.0f} to {high:,.0f})",
            "senses": " ".join(
                f"{share:.0%} ({low:.0%} to {high:.0%})"
                for share, (low, high) in zip(self.shares, self.share_intervals, strict=True)
            ),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """The usages of a word over documents or years.

    Attributes:
        word: The word.
        by: What the periods are: "document", or a field of the metadata such as "year/10".
        choices: What else they could be.
        periods: The periods, in order.
        senses: The senses that are counted; None if the word has too few usages to find any.

    """

    word: str
    by: str
    choices: tuple[str, ...]
    periods: ResultList[TimelinePeriod]
    senses: Senses | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        found = self.senses
        return {
            "word": self.word,
            "by": self.by,
            "choices": list(self.choices),
            "kind": None if found is None else found.kind,
            "senses": [
                {
                    "share": sense.share,
                    "count": sense.count,
                    "neighbours": sense.neighbours,
                    "collocates": sense.collocates,
                }
                for sense in (() if found is None else found.senses)
            ],
            "periods": [
                vars(period)
                | {
                    "interval": list(period.interval),
                    "shares": list(period.shares),
                    "share_intervals": [list(interval) for interval in period.share_intervals],
                }
                for period in self.periods
            ],
        }

    def __repr__(self) -> str:
        return repr(self.periods)

    def _repr_html_(self) -> str:
        return self.periods._repr_html_()


def make_timeline(
    index: Index,
    word: str,
    *,
    by: str | None = None,
    max_senses: int = 6,
    groups: bool = False,
    seed: int = 0,
    computed: Senses | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Timeline:
    """Count the usages of a word and of its senses over the documents of an index.

    Args:
        index: The index, or a part of it.
        word: The word.
        by: "document", "document/10" for ten documents each, or a field of the metadata such as "year" or
            "year/10"; None takes years if all documents have one, else documents, and joins them to at most
            as many as can be read.
        max_senses: As in `find_senses`.
        groups: As in `find_senses`.
        seed: As in `find_senses`.
        computed: The senses of the word, if they are known.
        on_progress: Receives the progress.

    Raises:
        UnknownWordError: The word has no usages.
        UsageError: No document has the field.

    """
    listed = index.listed_documents
    numbers = index.usage_numbers(word)
    choices = list_groupings(listed)
    chosen = choose_grouping(listed) if by is None else by
    names = group_documents(listed, chosen)
    sizes = index.document_sizes()  # of a part, 0 for documents that are not in it
    members: defaultdict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        if name is not None and sizes[number]:
            members[name].append(number)
    counts = np.bincount(index.document_numbers(numbers), minlength=len(listed))
    found, by_sense = None, np.zeros((0, len(listed)), np.int64)
    if len(numbers) >= MIN_USAGES:
        found = computed or find_senses(
            index, word, max_senses=max_senses, groups=groups, seed=seed, on_progress=on_progress
        )
        by_sense = _count_senses(index, found)
    periods = [
        _make_period(name, [listed[n] for n in rows], sizes[rows], counts[rows], by_sense[:, rows])
        for name, rows in ((name, members[name]) for name in sort_groups(list(members)))
    ]
    caption = f"{word} by {chosen}" + ("" if found is None else f"; {found.summary}")
    return Timeline(
        word, chosen, tuple(dict.fromkeys([chosen, *choices])), ResultList(periods, caption), found
    )


def _count_senses(index: Index, found: Senses) -> NDArray[np.int64]:
    """How many of the usages that were grouped are of each sense (K) in each document (D): (K, D)."""
    documents, count = index.document_numbers(found.numbers), len(index.listed_documents)
    flat = np.bincount(found.labels * count + documents, minlength=len(found.senses) * count)
    table: NDArray[np.int64] = flat.reshape(-1, count)
    return table


def _make_period(
    name: str,
    documents: Sequence[Document],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    by_sense: NDArray[np.int64],
) -> TimelinePeriod:
    total, count = int(sizes.sum()), int(counts.sum())
    low, high = estimate_share(count, total)
    of_senses = by_sense.sum(axis=1).tolist()
    sampled = sum(of_senses)
    if not sampled:
        of_senses = []
    return TimelinePeriod(
        name,
        _select(documents),
        total,
        count,
        PER * count / total,
        (PER * low, PER * high),
        tuple(number / sampled for number in of_senses),
        tuple(estimate_share(number, sampled) for number in of_senses),
    )


def estimate_share(count: int, total: int) -> Interval:
    """Return Wilson's 95% interval of a share.

    Args:
        count: How many of them.
        total: Of how many; 0 gives the whole range.

    """
    if not total:
        return 0.0, 1.0
    share, spread = count / total, Z * Z / total
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return (0.0 if count == 0 else middle - half), (1.0 if count == total else middle + half)


def _select(documents: Sequence[Document]) -> str:
    """The documents as ranges of their numbers: `1-3,8-8`. A single number could be a title, too."""
    numbers = sorted({document.number for document in documents})
    breaks = [0, *(n for n, (a, b) in enumerate(pairwise(numbers), start=1) if b > a + 1), len(numbers)]
    return ",".join(f"{numbers[first]}-{numbers[last - 1]}" for first, last in pairwise(breaks))


def choose_grouping(listed: Sequence[Document]) -> str:
    """Return what shows the development best: years if all documents have one, else documents."""
    years = _read_years(listed)
    if years is not None:
        return _add_width(YEAR, YEAR_WIDTHS, years, MAX_PERIODS)
    return _add_width(DOCUMENT, DOCUMENT_WIDTHS, [document.number for document in listed], MAX_PERIODS)


def list_groupings(listed: Sequence[Document]) -> list[str]:
    """Return what documents can be grouped by: years, documents, and fields with few values."""
    choices = [choose_grouping(listed)]
    years, numbers = _read_years(listed), [document.number for document in listed]
    for field, widths, values in ((YEAR, YEAR_WIDTHS, years or []), (DOCUMENT, DOCUMENT_WIDTHS, numbers)):
        for width in widths:
            if 1 < len({value // width for value in values}) <= MAX_CHOICE:
                choices.append(_name(field, width))
    for field in sorted({name for document in listed for name in document.meta} - {YEAR}):
        if 1 < len(set(read_field(listed, field)) - {None}) <= MAX_VALUES:
            choices.append(field)
    return list(dict.fromkeys(choices))


def _read_years(listed: Sequence[Document]) -> list[int] | None:
    """The years of all documents; None if one has none, or if they are all of the same year."""
    if not any(YEAR in document.meta for document in listed) and len(listed) < 2:
        return None
    try:
        years = [parse_digits(value) if value else None for value in read_field(listed, YEAR)]
    except UsageError:
        return None
    known = [year for year in years if year is not None]
    return known if len(known) == len(years) and len(set(known)) > 1 else None


def _add_width(field: str, widths: Sequence[int], values: Sequence[int], most: int) -> str:
    """The field with the least width that gives no more groups than can be read."""
    fitting = (width for width in widths if len({value // width for value in values}) <= most)
    return _name(field, next(fitting, widths[-1]))


def _name(field: str, width: int) -> str:
    return field if width == 1 else f"{field}/{width}"
