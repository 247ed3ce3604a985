"""Verbs that read a corpus word by word: concordance, collocates, passage.

search.concordance, search.collocates, search.corpus_text, api.sources  ->  api.concordances  ->  api
"""

from __future__ import annotations

from pathlib import Path

from polyseme.api.meanings import senses as find_senses_of
from polyseme.api.sources import open_part
from polyseme.choices import ConcordanceSort
from polyseme.io.progress import ProgressOption
from polyseme.io.result_list import ResultList
from polyseme.search.collocates import Collocate, find_collocates
from polyseme.search.concordance import Concordance, find_lines
from polyseme.search.corpus_text import TextPassage, read_passage
from polyseme.search.index import Index
from polyseme.search.selection import Documents
from polyseme.search.senses import Senses


def concordance(
    index: Index | str | Path,
    word: str,
    k: int = 50,
    *,
    start: int = 0,
    sort: ConcordanceSort = "document",
    usage: int | None = None,
    collocate: str | None = None,
    window: int = 5,
    width: int = 60,
    max_senses: int = 6,
    groups: bool = False,
    seed: int = 0,
    memory: int | None = None,
    documents: Documents | None = None,
    by: str | None = None,
    computed: Senses | None = None,
    progress: ProgressOption = None,
) -> Concordance:
    """List the usages of a word as lines with the text around them (keyword in context).

    Args:
        index: An index, open or as a path.
        word: The word.
        k: How many lines to return.
        start: How many lines to skip.
        sort: The order of the lines: "document", as in the text; "left" or "right", by the words on that
            side, the nearest first; "sense"; or "similarity" to one of them, `usage`.
        usage: For "similarity": the number of a usage, which every line has.
        collocate: Only lines with this word near the word.
        window: How near: words on each side, within the sentence.
        width: Characters of text on each side.
        max_senses: For "sense": as in `senses`.
        groups: For "sense": as in `senses`.
        seed: For "sense": as in `senses`.
        memory: Megabytes of vectors to keep in memory.
        documents: Only usages in these documents; see `nearest`.
        by: Count the usages by a field of the metadata, such as "year" or "year/10"; by document if None.
        computed: For "sense": the senses of the word, if they are known.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The lines, how many there are in all, and how often the word is used in each document.

    Raises:
        UsageError: If an argument is out of range, or the word has too few usages to find senses.
        UnknownWordError: If the word or the collocate has no usages.

    Example:
        >>> for line in polyseme.concordance("books-index", "bank", sort="right").lines:
        ...     print(line.left[-40:].rjust(40), line.word, line.right[:40])

    """
    opened = open_part(index, documents, memory)
    senses = computed if sort == "sense" else None
    if sort == "sense" and computed is None:
        senses = find_senses_of(
            opened, word, max_senses=max_senses, groups=groups, seed=seed, progress=progress
        )
    return find_lines(
        opened,
        word,
        k,
        start=start,
        sort=sort,
        usage=usage,
        collocate=collocate,
        window=window,
        width=width,
        by=by,
        senses=senses,
    )


def collocates(
    index: Index | str | Path,
    word: str,
    k: int = 30,
    *,
    window: int = 5,
    min_count: int = 2,
    all_words: bool = False,
    senses: bool = False,
    max_senses: int = 6,
    groups: bool = False,
    seed: int = 0,
    memory: int | None = None,
    documents: Documents | None = None,
    computed: Senses | None = None,
    progress: ProgressOption = None,
) -> ResultList[Collocate]:
    """Find the words that stand near a word more often than elsewhere, by log-likelihood.

    Args:
        index: An index, open or as a path.
        word: The word.
        k: How many collocates to return.
        window: How near: words on each side, within the sentence.
        min_count: The fewest times that a collocate stands near the word.
        all_words: Return function words, numbers and punctuation, too.
        senses: Count how often each collocate stands near each sense of the word.
        max_senses: With `senses`: as in the verb `senses`.
        groups: With `senses`: as in the verb `senses`.
        seed: With `senses`: as in the verb `senses`.
        memory: Megabytes of vectors to keep in memory.
        documents: Only usages in these documents; see `nearest`.
        computed: With `senses`: the senses of the word, if they are known.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The collocates, the surest first.

    Raises:
        UsageError: If an argument is out of range, or the word has too few usages to find senses.
        UnknownWordError: If the word has no usages.

    Example:
        >>> for collocate in polyseme.collocates("books-index", "bank", 5):
        ...     print(collocate.word, collocate.count, round(collocate.log_likelihood, 1))

    """
    opened = open_part(index, documents, memory)
    known = computed if senses else None
    if senses and computed is None:
        known = find_senses_of(
            opened, word, max_senses=max_senses, groups=groups, seed=seed, progress=progress
        )
    return find_collocates(
        opened, word, k, window=window, min_count=min_count, all_words=all_words, senses=known
    )


def passage(
    index: Index | str | Path, usage: int, sentences: int = 15, *, memory: int | None = None
) -> TextPassage:
    """Read the text around a usage.

    Args:
        index: An index, open or as a path.
        usage: The number of the usage, which the lines of `concordance` and the results of `nearest` have.
        sentences: How many sentences to read before and after that of the usage, within its document.
        memory: Megabytes of vectors to keep in memory.

    Returns:
        The paragraphs around the usage, with the lines they begin at, and the position of the word.

    Raises:
        UsageError: If there is no usage of that number.

    Example:
        >>> (line,) = polyseme.concordance("books-index", "bank", k=1).lines
        >>> print(polyseme.passage("books-index", line.number).marked())

    """
    return read_passage(open_part(index, memory=memory), usage, sentences)
