"""Lines of text of any size to sentences of tokens, in constant memory.

    text.reading, text.segment  ->  text.segment.stream  ->  bulk, api, corpus

Where a line break does not end a sentence (`en`, `auto`), the lines of a paragraph are read together:
up to a blank line, the end of the file, or MOST_CHARACTERS, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from polyseme.text.reading import Line
from polyseme.text.segment import sentence_words

MOST_CHARACTERS = 1_000_000  # a longer paragraph is cut at a line break


class Unit(NamedTuple):
    """A piece of text that sentences never cross, and where its first line stands."""

    source: str
    number: int
    text: str


def sentences_of_lines(lines: Iterable[Line], how: str) -> Iterator[list[str]]:
    """The sentences of `lines` as lists of words.

    With `split` every line is a sentence and a blank line an empty one, so that sentence numbers agree
    with line numbers; otherwise no sentence is empty.
    """
    return (sentence for unit in units_of_lines(lines, how) for sentence in sentences_of_unit(unit, how))


def units_of_lines(lines: Iterable[Line], how: str) -> Iterator[str]:
    """The pieces of text that sentences never cross: lines, or paragraphs where a line ends no sentence."""
    return (unit.text for unit in placed_units(lines, how))


def placed_units(lines: Iterable[Line], how: str) -> Iterator[Unit]:
    """The same with their places."""
    sentence_words("", how)  # refuses an unknown segmentation at once, not at the first line
    return _paragraphs(lines) if how in ("en", "auto") else (Unit(*line) for line in lines)


def sentences_of_unit(unit: str, how: str) -> list[list[str]]:
    """The sentences of such a piece; with `split` always one, which may be empty."""
    return [unit.split()] if how == "split" else sentence_words(unit, how)


def _paragraphs(lines: Iterable[Line]) -> Iterator[Unit]:
    """Runs of lines of one file without a blank line between them."""
    for (_, blank), run in groupby(lines, key=lambda line: (line.source, not line.text.strip())):
        if blank:
            continue
        gathered: list[Line] = []
        size = 0
        for line in run:
            if gathered and size + len(line.text) > MOST_CHARACTERS:
                yield _joined(gathered)
                gathered, size = [], 0
            gathered.append(line)
            size += len(line.text) + 1
        yield _joined(gathered)


def _joined(lines: list[Line]) -> Unit:
    return Unit(lines[0].source, lines[0].number, "\n".join(line.text for line in lines))
