"""Every usage of a word as lines of text (keyword in context), sorted, and counted over documents.

    search.index, search.contexts, search.corpus_text, search.senses  ->  search.concordance  ->  api, server

All usages are sorted, but only the lines that are asked for are read, so that an order takes milliseconds.
N usages of the word, D documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import ConcordanceSort
from polyseme.errors import UsageError
from polyseme.io.html import Cell, Highlight
from polyseme.io.result_list import ResultList
from polyseme.search.corpus_text import CorpusText
from polyseme.search.index import Index
from polyseme.search.selection import group_documents, sort_groups
from polyseme.search.senses import Senses, average_groups, represent_usages

Numbers = NDArray[np.int64]
SORTED_BY = 3  # words on one side that lines are sorted by
CHUNK = 20_000  # usages whose vectors are read at once
DOCUMENT = "document"


@dataclass(frozen=True)
class KwicLine:
    """A usage as a line: the word, and the text on its left and right.

    Attributes:
        number: The number of the usage in the index, which `polyseme.passage` takes.
        left: The text before the word, also of the sentences before.
        word: The word as it is written in the text.
        right: The text after it.
        document: The file.
        line: The line of the file, from 1.
        title: The title of the chapter or part of the file; "" if there is none.
        sense: The sense, from 0, if lines are sorted by it.
        cosine: The cosine to the chosen usage, if lines are sorted by similarity.

    """

    number: int
    left: str
    word: str
    right: str
    document: str
    line: int
    title: str = ""
    sense: int | None = None
    cosine: float | None = None

    @property
    def location(self) -> str:
        """Where it is in the corpus: document:line."""
        return f"{self.document}:{self.line}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        row: dict[str, Cell] = {"number": str(self.number)}
        if self.sense is not None:
            row["sense"] = self.sense + 1
        if self.cosine is not None:
            row["cosine"] = self.cosine
        row["usage"] = Highlight(self.left, self.word, self.right)
        return row | {"location": f"{Path(self.document).name}:{self.line}"}


@dataclass(frozen=True)
class DocumentCount:
    """How often a word is used in a document, or in a group of documents.

    Attributes:
        name: The title or file of the document, or the name of the group.
        count: How many usages of the word it has.
        total: How many usages of all words it has.

    """

    name: str
    count: int
    total: int

    @property
    def per_10_000(self) -> float:
        """Usages of the word per 10,000 usages."""
        return 10_000 * self.count / self.total if self.total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"name": self.name, "count": self.count, "total": self.total, "per_10_000": self.per_10_000}

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {"document": self.name, "usages": self.count, "per 10,000": self.per_10_000}


@dataclass(frozen=True, eq=False, repr=False)
class Concordance:
    """Lines of a concordance.

    Attributes:
        word: The word.
        total: How many lines there are in all.
        start: Which of them `lines` begins with, from 0.
        lines: The lines.
        documents: How often the word is used in each document or group, in their order.
        senses: The senses that lines are sorted by; None for another order.

    """

    word: str
    total: int
    start: int
    lines: list[KwicLine]
    documents: list[DocumentCount]
    senses: Senses | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "word": self.word,
            "total": self.total,
            "start": self.start,
            "lines": [line.as_dict() for line in self.lines],
            "documents": [document.as_dict() for document in self.documents],
            "kind": None if self.senses is None else self.senses.kind,
            "senses": None if self.senses is None else describe_senses(self.senses),
        }

    def _list_results(self) -> ResultList[KwicLine]:
        stop = self.start + len(self.lines)
        shown = f"{self.start + 1:,} to {stop:,} of " if stop - self.start < self.total else ""
        return ResultList(self.lines, f"{self.word}: {shown}{self.total:,} usages")

    def __repr__(self) -> str:
        return repr(self._list_results())

    def _repr_html_(self) -> str:
        return self._list_results()._repr_html_()


def describe_senses(senses: Senses) -> list[dict[str, Any]]:
    """Return what tells senses apart, as plain values for JSON.

    Args:
        senses: The senses of a word.

    """
    return [
        {
            "share": sense.share,
            "count": sense.count,
            "neighbours": sense.neighbours,
            "collocates": sense.collocates,
        }
        for sense in senses.senses
    ]


def find_lines(
    index: Index,
    word: str,
    k: int = 50,
    *,
    start: int = 0,
    sort: ConcordanceSort = "document",
    usage: int | None = None,
    collocate: str | None = None,
    window: int = 5,
    width: int = 60,
    by: str | None = None,
    senses: Senses | None = None,
) -> Concordance:
    """List usages of a word as lines.

    Args:
        index: The index, or a part of one.
        word: The word.
        k: How many lines to return.
        start: How many lines to skip.
        sort: The order: "document" (of the text), "left" or "right" (by the words on that side, the nearest
            first), "sense", or "similarity" to the usage `usage`.
        usage: The number of a usage, for "similarity".
        collocate: Only lines with this word near the word.
        window: How near: words on each side, within the sentence.
        width: Characters of text on each side.
        by: Count by a field of the metadata, such as "year" or "year/10"; by document if None.
        senses: The senses of the word, for "sense" only.

    Returns:
        The lines.

    Raises:
        UnknownWordError: The index has no usage of the word or of the collocate.
        UsageError: An argument is out of range, or `usage` does not fit `sort`.

    """
    _check(index, k, start, sort, usage, window, width)
    if (senses is None) == (sort == "sense"):
        raise UsageError("`senses` and `sort='sense'` need each other.")
    numbers = index.usage_numbers(word)
    if collocate is not None:
        numbers = _keep_near(index, numbers, collocate, window)
    keys: list[NDArray[Any]] = []
    labels: Numbers | None = None
    cosines: NDArray[np.float32] | None = None
    if sort in ("left", "right"):
        step = -1 if sort == "left" else 1
        keys = [rank_neighbours(index, numbers, step * offset) for offset in range(1, SORTED_BY + 1)]
    elif senses is not None:
        labels = label_usages(index, senses, numbers)
        keys = [labels]
    elif usage is not None:
        cosines = compare_usages(index, numbers, usage)
        keys = [-cosines.round(6)]  # equal sentences are in the order of the text
    order = np.lexsort((numbers, *keys[::-1]))[start : start + k]
    text = CorpusText(index)
    lines = []
    for row in order.tolist():
        found = index.usage(int(numbers[row]))
        left, right = text.read_around(found, width)
        lines.append(
            KwicLine(
                found.number,
                left,
                found.sentence[found.start : found.stop],
                right,
                found.document,
                found.line,
                found.title,
                None if labels is None else int(labels[row]),
                None if cosines is None else float(cosines[row]),
            )
        )
    counts = count_documents(index, numbers, by)
    return Concordance(word, len(numbers), start, lines, counts, senses)


def _check(index: Index, k: int, start: int, sort: str, usage: int | None, window: int, width: int) -> None:
    """Refuse arguments that are out of range."""
    if sort not in get_args(ConcordanceSort):
        raise UsageError(f"sort is {sort!r}, expected one of {', '.join(get_args(ConcordanceSort))}.")
    for name, value, least in (("k", k, 1), ("start", start, 0), ("window", window, 1), ("width", width, 0)):
        if value < least:
            raise UsageError(f"{name} is {value}, expected {least} or more.")
    if (usage is None) == (sort == "similarity"):
        needs = "needs `usage`, the number of a line" if usage is None else "is what `usage` needs"
        raise UsageError(f"`sort='similarity'` {needs}.")
    if usage is not None and not 0 <= usage < len(index.whole):
        raise UsageError(f"There is no usage {usage}: the index has usages 0 to {len(index.whole) - 1:,}.")


def _keep_near(index: Index, numbers: Numbers, collocate: str, window: int) -> Numbers:
    """The usages that have a word near them."""
    row = index.whole.words.row(collocate)
    contexts = index.context_reader.read(numbers, window)
    kept: Numbers = numbers[np.unique(contexts.usages[contexts.words == row])]
    if not len(kept):
        raise UsageError(f"No usage has {collocate!r:.60} within {window} words.")
    return kept


def rank_neighbours(index: Index, numbers: Numbers, offset: int) -> Numbers:
    """Return the alphabetical position of the word beside each usage; -1 where the document ends.

    Args:
        index: The index, or a part of one.
        numbers: (N,) the numbers of the usages.
        offset: How many words after the usage; negative before it. Words of other sentences count, too.

    """
    reader, total = index.context_reader, int(index.block_starts[-1])
    beside = numbers + offset
    inside = (beside >= 0) & (beside < total)
    beside = np.where(inside, beside, numbers)
    inside &= index.document_numbers(beside) == index.document_numbers(numbers)
    ranks: Numbers = np.where(inside, reader.ranks[reader.find_word_rows(beside)], -1)
    return ranks


def compare_usages(index: Index, numbers: Numbers, usage: int) -> NDArray[np.float32]:
    """Return the cosine (N,) of each usage to one of them.

    Args:
        index: The index, or a part of one.
        numbers: (N,) the numbers of the usages.
        usage: The number of the usage to compare with.

    """
    query = index.vectors(np.array([usage]))[0]
    parts = [np.zeros(0, np.float32)]
    parts += [
        index.vectors(numbers[first : first + CHUNK]) @ query for first in range(0, len(numbers), CHUNK)
    ]
    return np.concatenate(parts)


def label_usages(index: Index, senses: Senses, numbers: Numbers) -> Numbers:
    """Return the sense (N,) of usages of a word; one that was not clustered has that of the nearest centre.

    Args:
        index: The index, or a part of one.
        senses: The senses of the word.
        numbers: (N,) the numbers of its usages.

    """
    positions = np.minimum(np.searchsorted(senses.numbers, numbers), len(senses.numbers) - 1)
    known = senses.numbers[positions] == numbers
    labels = np.where(known, senses.labels[positions], 0).astype(np.int64)
    others = np.flatnonzero(~known)
    if len(others):
        centres = average_groups(represent_usages(index, senses.word, senses.numbers), senses.labels)
        for first in range(0, len(others), CHUNK):
            rows = others[first : first + CHUNK]
            joined = represent_usages(index, senses.word, numbers[rows])
            labels[rows] = (joined @ centres.T).argmax(axis=1)
    return labels


def count_documents(index: Index, numbers: Numbers, by: str | None = None) -> list[DocumentCount]:
    """Count usages over documents; those without the word are counted, too.

    Args:
        index: The index, or a part of one, whose documents are counted.
        numbers: (N,) the numbers of the usages.
        by: A field of the metadata, such as "year" or "year/10"; by document if None.

    Raises:
        UsageError: No document has the field.

    """
    listed = index.listed_documents
    counts = np.bincount(index.document_numbers(numbers), minlength=len(listed))
    if index.kept is None:
        totals = index.context_reader.document_sizes
    else:
        totals = np.bincount(index.document_numbers(np.flatnonzero(index.kept)), minlength=len(listed))
    groups: dict[str, DocumentCount] = {}
    for name, count, total in zip(
        group_documents(listed, by or DOCUMENT), counts.tolist(), totals.tolist(), strict=True
    ):
        if name is not None and total:
            before = groups.get(name, DocumentCount(name, 0, 0))
            groups[name] = DocumentCount(name, before.count + count, before.total + total)
    names = list(groups) if by is None else sort_groups(list(groups))
    return [groups[name] for name in names]
