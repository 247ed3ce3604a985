"""Read the format of SemEval-2010 Task 8: a numbered, quoted sentence, its relation, a comment.

text.reading  ->  tasks.data.semeval  ->  tasks.relations
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from polyseme.errors import DataError
from polyseme.tasks.data.tables import TableRow
from polyseme.text.reading import read_lines

NUMBERED = re.compile(r'(\d+)\t"?(.*?)"?\s*')
COMMENT = "Comment:"


def read_semeval(path: str, text: str, label: str, *, labelled: bool) -> Iterator[TableRow]:
    """Yield sentences and their relations as rows with the fields `text` and `label`."""
    for block in _read_blocks(path):
        (location, first), *rest = block
        numbered = NUMBERED.fullmatch(first)
        comments = [number for number, (_, line) in enumerate(rest) if line.startswith(COMMENT)]
        if numbered is None or (labelled and (not rest or comments[:1] == [0])):
            raise DataError(
                f"{location}: expected a number, a tab and a sentence in quotation marks, and its relation "
                "on the next line."
            )
        if len(rest) - bool(comments) > 1:
            raise DataError(
                f"{rest[1][0]}: expected {COMMENT} or the next numbered sentence after a relation."
            )
        relation = {label: rest[0][1]} if rest and comments[:1] != [0] else {}
        yield TableRow(location, {text: numbered[2], **relation})


def _read_blocks(path: str) -> Iterator[list[tuple[str, str]]]:
    """Yield the lines of each sentence with their locations; a blank line or the next number ends them."""
    block: list[tuple[str, str]] = []
    for line in read_lines(path):
        text = line.text.strip()
        if block and (not text or NUMBERED.fullmatch(text)):
            yield block
            block = []
        if text:
            block.append((line.location, text))
    if block:
        yield block
