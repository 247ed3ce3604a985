"""Where the characters of a book occur: in which chapters, and which of them together.

    books.characters, text.corpus.documents  ->  books.mentions  ->  books.network, books.page

A mention is a name in the text that is not part of a longer name of the list. Two characters occur together
in a sentence or in a paragraph; each is counted once per sentence or paragraph.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from polyseme.books.characters import Character

Pair = tuple[int, int]  # numbers of two characters, the smaller first


class Paragraph(NamedTuple):
    """A line or paragraph of a book, as its sentences."""

    chapter: int  # position in the list of chapters
    sentences: list[str]


class ParagraphMentions(NamedTuple):
    """A paragraph that mentions a character."""

    paragraph: int  # its number, from 0
    sentence: int  # the first sentence of it that does
    mentions: int


@dataclass
class BookMentions:
    """Counts of the characters of a book; characters have the numbers of the list they were found with."""

    chapters: list[str]  # titles
    counts: Counter[int] = field(default_factory=Counter)
    by_chapter: Counter[tuple[int, int]] = field(default_factory=Counter)  # (character, chapter)
    in_sentence: Counter[Pair] = field(default_factory=Counter)
    in_paragraph: Counter[Pair] = field(default_factory=Counter)
    examples: dict[int, str] = field(default_factory=dict)  # the first sentence of each
    paragraphs: defaultdict[int, list[ParagraphMentions]] = field(default_factory=lambda: defaultdict(list))

    def chapters_of(self, character: int) -> list[int]:
        """The chapters in which a character occurs, in order."""
        return [n for n in range(len(self.chapters)) if self.by_chapter[character, n]]


def count_mentions(
    paragraphs: Iterable[Paragraph], chapters: Sequence[str], characters: Sequence[Character]
) -> BookMentions:
    """Count where characters occur, and which of them together."""
    mentions = BookMentions(list(chapters))
    numbers = {name: n for n, character in enumerate(characters) for name in character.names}
    pattern = _compile(numbers)
    if pattern is None:
        return mentions
    for position, paragraph in enumerate(paragraphs):
        together: Counter[int] = Counter()
        firsts: dict[int, int] = {}
        for row, sentence in enumerate(paragraph.sentences):
            present = [numbers[match[0]] for match in pattern.finditer(sentence)]
            for number in present:
                mentions.counts[number] += 1
                mentions.by_chapter[number, paragraph.chapter] += 1
                mentions.examples.setdefault(number, sentence)
                firsts.setdefault(number, row)
            mentions.in_sentence.update(_pairs(present))
            together.update(present)
        mentions.in_paragraph.update(_pairs(together))
        for number, count in together.items():
            mentions.paragraphs[number].append(ParagraphMentions(position, firsts[number], count))
    return mentions


def _pairs(numbers: Iterable[int]) -> Iterator[Pair]:
    return combinations(sorted(set(numbers)), 2)


def _compile(names: Iterable[str]) -> re.Pattern[str] | None:
    """Match any name, the longest first; a name of letters with a space must not be part of another word."""
    ordered = sorted(names, key=lambda name: (-len(name), name))
    if not ordered:
        return None
    alternatives = [
        rf"(?<!\w){re.escape(name)}(?!\w)" if name.isascii() else re.escape(name) for name in ordered
    ]
    firsts = "".join(sorted({re.escape(name[0]) for name in ordered}))
    return re.compile(f"(?=[{firsts}])(?:{'|'.join(alternatives)})")  # most characters begin no name
