"""Read CoNLL-U, the format of Universal Dependencies: one word per line, ten columns separated by tabs.

    text.reading (lines)  ->  text.conllu  ->  text.corpus.documents, tasks.data.columns

A blank line ends a sentence. Ranges (1-2) and empty nodes (1.1) are skipped: words are the syntactic ones.
See https://universaldependencies.org/format.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from polyseme.errors import DataError
from polyseme.text.reading import Line

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

_ID = re.compile(r"(?P<word>[1-9][0-9]*)|[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")


class ConlluWord(NamedTuple):
    """A word with all its columns.

    Attributes:
        location: `file:line`.
        columns: The values, in the order of `COLUMNS`.

    """

    location: str
    columns: list[str]

    @property
    def form(self) -> str:
        """The word itself; white space inside it becomes an underscore."""
        return "_".join(self.columns[1].split())


class ConlluSentence(NamedTuple):
    """A sentence.

    Attributes:
        words: Its words; never empty.
        opens_document: Whether `# newdoc` stands before it.
        size: The characters of its lines, comments and line breaks included.

    """

    words: list[ConlluWord]
    opens_document: bool
    size: int


def read_conllu(lines: Iterable[Line]) -> Iterator[ConlluSentence]:
    """Read the sentences of a CoNLL-U file, one at a time.

    Args:
        lines: The lines of the file, from `text.reading.read_lines`.

    Yields:
        The sentences that have words.

    Raises:
        DataError: A line does not have ten columns, or its ID or FORM is invalid.

    """
    words: list[ConlluWord] = []
    opens_document, size = False, 0
    for line in lines:
        is_newdoc = line.text.startswith("# newdoc")
        is_blank = not line.text or line.text.isspace()
        if words and (is_blank or is_newdoc):
            yield ConlluSentence(words, opens_document, size)
            words, opens_document, size = [], False, 0
        size += len(line.text) + 1
        opens_document = opens_document or is_newdoc
        if not is_blank and not line.text.startswith("#"):
            words.extend(_read_word(line))
    if words:
        yield ConlluSentence(words, opens_document, size)


def _read_word(line: Line) -> Iterator[ConlluWord]:
    """The word of a line; nothing for a range or an empty node."""
    location = f"{line.source}:{line.number}"
    columns = line.text.rstrip("\r").split("\t")
    if len(columns) != len(COLUMNS):
        raise DataError(
            f"{location}: {len(columns)} columns, expected {len(COLUMNS)}. CoNLL-U is separated by tabs."
        )
    match = _ID.fullmatch(columns[0])
    if match is None:
        raise DataError(f"{location}: the ID is {columns[0]!r}, expected 1, 1-2 or 1.1.")
    if not columns[1].strip():
        raise DataError(f"{location}: the FORM of word {columns[0]} is empty; CoNLL-U writes _ for that.")
    if match["word"]:
        yield ConlluWord(location, columns)
