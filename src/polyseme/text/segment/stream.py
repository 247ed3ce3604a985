"""Segment lines of text of any size, in constant memory.

    text.reading, text.segment  ->  text.segment.stream  ->  corpus, bulk_embedding, search, api

Where a line break does not end a sentence (`en`, `auto`), the lines of a paragraph are segmented together: up
to a blank line, the end of the file, or MAX_CHARACTERS, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from polyseme.text.reading import Line
from polyseme.text.segment import WordList, split_token_texts

MAX_CHARACTERS = 1_000_000  # a longer paragraph is split at a line break


class Unit(NamedTuple):
    """A piece of text that no sentence crosses: a line or a paragraph."""

    source: str  # name of its file
    number: int  # of its first line, from 1
    text: str


def segment_lines(
    lines: Iterable[Line],
    segment: str,
    word_list: WordList | None = None,
    max_characters: int = MAX_CHARACTERS,
) -> Iterator[list[str]]:
    """Segment lines into sentences, as lists of token texts.

    With `split` every line is a sentence and a blank line an empty one, so that sentence numbers agree with
    line numbers; otherwise no sentence is empty.

    Args:
        lines: Lines of one or more files.
        segment: A segmentation: split, en, zh, zh-char, letters or auto.
        word_list: Words that `zh` must know in addition to jieba's dictionary.
        max_characters: A longer paragraph is split at a line break.

    Raises:
        UsageError: There is no such segmentation.

    """
    units = group_lines(lines, segment, max_characters)
    return (sentence for unit in units for sentence in segment_unit(unit.text, segment, word_list))


def group_lines(lines: Iterable[Line], segment: str, max_characters: int = MAX_CHARACTERS) -> Iterator[Unit]:
    """Group lines into units that no sentence crosses: lines, or paragraphs for `en` and `auto`."""
    split_token_texts("", segment)  # refuses an unknown segmentation now, not at the first line
    if segment in ("en", "auto"):
        return _group_paragraphs(lines, max_characters)
    return (Unit(*line) for line in lines)


def segment_unit(text: str, segment: str, word_list: WordList | None = None) -> list[list[str]]:
    """Segment the text of a unit into sentences; with `split` it is always one, which may be empty."""
    return [text.split()] if segment == "split" else split_token_texts(text, segment, word_list)


def _group_paragraphs(lines: Iterable[Line], max_characters: int) -> Iterator[Unit]:
    """Group lines of one file without a blank line between them."""
    for (_, blank), run in groupby(lines, key=lambda line: (line.source, not line.text.strip())):
        if blank:
            continue
        paragraph: list[Line] = []
        size = 0
        for line in run:
            if paragraph and size + len(line.text) > max_characters:
                yield _join(paragraph)
                paragraph, size = [], 0
            paragraph.append(line)
            size += len(line.text) + 1
        yield _join(paragraph)


def _join(lines: list[Line]) -> Unit:
    return Unit(lines[0].source, lines[0].number, "\n".join(line.text for line in lines))
