"""Words that a segmentation must know: a user's dictionary, or what `discovery` found in a corpus.

    words.txt, text.segment.discovery  ->  text.segment.word_list  ->  text.segment, formats, text.corpus

The file is a dictionary of jieba: one `word count tag` per line, count and tag optional. A count of 0 says
that a word of jieba's dictionary is none (玄德曰 0). An English name of several words is written with spaces
or with `_` between them, and becomes one token with `_` (Elizabeth_Bennet 120 nr); its offsets are those of
the words in the text.

jieba segments a text twice: with its own dictionary, and with the listed words. Where the two differ, the
second is right if it has a listed word, else the first: text without listed words stays as it was. Words are
compared in simplified characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from polyseme.errors import DataError
from polyseme.text.reading import Line, read_lines
from polyseme.text.segment.token import HAN
from polyseme.text.simplified import simplify

if TYPE_CHECKING:
    import rjieba

MAX_WORDS = 1_000_000
NAME_SEPARATOR = "_"  # between the words of an English name, which are one token
_MAX_COUNT = 1_000_000_000
_HAN = re.compile(f"[{HAN}]")
_LINE = re.compile(r"(.+?)(?:[ \t]+([0-9]{1,18}))?(?:[ \t]+([a-zA-Z]{1,8}))?")
# Frequencies in jieba's dictionary add up to 60 million. Listed words get a quarter of that, by their counts.
_ALL_FREQUENCIES = 15_000_000
_MAX_FREQUENCY = 2_000_000
_MIN_FREQUENCY = 3_000


@dataclass(frozen=True, slots=True)
class ListedWord:
    """A line of a word list; a count of 0 says that it is no word, None that it was not counted."""

    word: str
    count: int | None = None
    tag: str = ""


@dataclass(frozen=True)
class WordList:
    """Words in addition to jieba's dictionary.

    Attributes:
        entries: The words, each once.

    Example:
        >>> WordList.parse(["郭芙 850 nr", "小龙女"]).cut("郭芙道")
        ['郭芙', '道']

    """

    entries: tuple[ListedWord, ...]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a word list.

        Raises:
            DataError: A line is not `word count tag`; the message names the file and the line.

        """
        return cls._collect(read_lines(path), str(path))

    @classmethod
    def parse(cls, lines: Iterable[str], source: str = "words") -> Self:
        """Make a word list of lines; raises as `read` does."""
        return cls._collect(
            (Line(source, number, text) for number, text in enumerate(lines, start=1)), source
        )

    @classmethod
    def _collect(cls, lines: Iterable[Line], source: str) -> Self:
        entries: dict[str, ListedWord] = {}
        for line in lines:
            entry = _parse_line(line)
            if entry is not None:
                entries[entry.word] = entry
            if len(entries) > MAX_WORDS:
                raise DataError(f"{source}: more than {MAX_WORDS:,} words. Leave out those jieba knows.")
        if not entries:
            raise DataError(f"{source}: no words in it. Write one word per line: 郭芙 850 nr")
        return cls(tuple(entries.values()))

    def lines(self) -> list[str]:
        """The lines of the file; `parse` reads them back."""
        return [" ".join(filter(None, _fields(entry))) for entry in self.entries]

    def write(self, path: Path) -> None:
        """Write the file."""
        path.write_text("\n".join(self.lines()) + "\n", encoding="utf-8")

    def extend(self, entries: Iterable[ListedWord]) -> WordList:
        """Add entries whose word is not listed yet."""
        known = {entry.word for entry in self.entries}
        return WordList((*self.entries, *(entry for entry in entries if entry.word not in known)))

    def join_names(self, words: list[str]) -> list[str]:
        """Join the words of a sentence that are a listed name, the longest name first."""
        names = self._names
        if names.keys().isdisjoint(words):
            return words
        joined: list[str] = []
        position = 0
        while position < len(words):
            for name in names.get(words[position], ()):
                if tuple(words[position : position + len(name)]) == name:
                    joined.append(NAME_SEPARATOR.join(name))
                    position += len(name)
                    break
            else:
                joined.append(words[position])
                position += 1
        return joined

    @cached_property
    def joined(self) -> dict[str, re.Pattern[str]]:
        """The names of several words, each with the pattern that finds it in raw text."""
        space = rf"(?:\s+|{NAME_SEPARATOR})?"
        return {
            NAME_SEPARATOR.join(name): re.compile(space.join(map(re.escape, name)))
            for names in self._names.values()
            for name in names
        }

    @cached_property
    def _names(self) -> dict[str, list[tuple[str, ...]]]:
        """Names of several words by their first word, the longest first."""
        names: dict[str, list[tuple[str, ...]]] = {}
        for entry in self.entries:
            parts = tuple(filter(None, entry.word.split(NAME_SEPARATOR)))
            if len(parts) > 1 and entry.count != 0 and not _HAN.search(entry.word):
                names.setdefault(parts[0], []).append(parts)
        return {first: sorted(group, key=lambda name: (-len(name), name)) for first, group in names.items()}

    @cached_property
    def has_chinese(self) -> bool:
        """Whether any word is Chinese: without one, jieba needs no list."""
        return any(_HAN.search(entry.word) for entry in self.entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return WordList, (self.entries,)  # without jieba's objects

    def cut(self, text: str) -> list[str]:
        """Split Chinese text into words, as `rjieba.cut` does."""
        return self.merge(*self.cut_twice(text))

    def cut_twice(self, text: str) -> tuple[list[str], list[str]]:
        """Split Chinese text with jieba's dictionary alone, and with the listed words, for `merge`."""
        plain, listed = self._jiebas
        return plain.cut(text), listed.cut(text)

    def merge(self, plain: list[str], listed: list[str]) -> list[str]:
        """Take from `listed` the stretches with a listed word, the rest from `plain`; both cover one text."""
        return plain if plain == listed else _merge(plain, listed, self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(simplify(entry.word) for entry in self.entries if entry.count != 0)

    @cached_property
    def _jiebas(self) -> tuple[rjieba.Jieba, rjieba.Jieba]:
        """Jieba with its own dictionary, and with the listed words."""
        import rjieba  # here, because it loads a dictionary

        listed = rjieba.Jieba()
        # A word without a count weighs as much as the most frequent one: whoever lists it wants it.
        most = max((entry.count or 0 for entry in self.entries), default=0) or 1
        counts = [most if entry.count is None else entry.count for entry in self.entries]
        total = sum(counts) or 1
        least = min(_MIN_FREQUENCY, _ALL_FREQUENCIES // len(self.entries))
        for entry, count in zip(self.entries, counts, strict=True):
            if NAME_SEPARATOR in entry.word:
                continue
            share = _ALL_FREQUENCIES * count // total
            frequency = 0 if entry.count == 0 else min(_MAX_FREQUENCY, max(least, share))
            listed.add_word(simplify(entry.word), frequency, entry.tag or "n")
        return rjieba.Jieba(), listed


def _fields(entry: ListedWord) -> tuple[str, ...]:
    """The columns of a line; a tag needs a count before it."""
    return (entry.word,) if entry.count is None else (entry.word, str(entry.count), entry.tag)


def _merge(plain: list[str], listed: list[str], words: frozenset[str]) -> list[str]:
    merged: list[str] = []
    i = j = 0
    while i < len(plain):
        if plain[i] == listed[j]:
            merged.append(plain[i])
            i, j = i + 1, j + 1
            continue
        start_i, start_j = i, j
        left, right = len(plain[i]), len(listed[j])
        i, j = i + 1, j + 1
        while left != right:  # up to the next common boundary
            if left < right:
                left, i = left + len(plain[i]), i + 1
            else:
                right, j = right + len(listed[j]), j + 1
        chosen = listed[start_j:j]
        merged += plain[start_i:i] if words.isdisjoint(chosen) else chosen
    return merged


def _parse_line(line: Line) -> ListedWord | None:
    text = line.text.strip().removeprefix("\ufeff")
    if not text or text.startswith("#"):
        return None
    word, count, tag = _split_line(text)
    if len(word) > 50 or any(character.isspace() for character in word):
        raise DataError(
            f"{line.location}: {text!r:.60} is not a word. Expected word, count, tag: 郭芙 850 nr"
        )
    if count is not None and count > _MAX_COUNT:
        raise DataError(f"{line.location}: count {count} is above {_MAX_COUNT:,}. Check the line.")
    return ListedWord(word, count, tag)


def _split_line(text: str) -> tuple[str, int | None, str]:
    """Word, count and tag of a line; without a count, a name such as New York has no tag."""
    match = _LINE.fullmatch(text)
    if match is None:
        return text, None, ""
    count = int(match[2]) if match[2] is not None else None
    if _HAN.search(text):
        return match[1].strip(), count, match[3] or ""
    word = text if count is None else match[1]
    return NAME_SEPARATOR.join(word.split()), count, "" if count is None else match[3] or ""
