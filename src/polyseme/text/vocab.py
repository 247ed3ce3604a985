"""Words and their ids: line + 1, with 0 for padding.

    text.reading  ->  text.vocab  ->  corpus, model.softmax, formats

Comes in: a vocabulary file, one word a line, or a list of words. Goes out: `Vocab`.
V counts the words without padding, so a table with a padding row has V + 1 rows.

What must not change: the order. Words stand by falling frequency, because the sampled softmax relies on it.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import DataError, UsageError
from polyseme.text.reading import read_lines

IntArray = NDArray[np.int64]

_SKIPPED = "!!!MAXTERMID"  # a line of old vocabulary files that is no word


class Vocab:
    """Words in order, with the names of the begin and end of a sentence and of the unknown word."""

    def __init__(
        self, words: Sequence[str], *, begin: str = "<S>", end: str = "</S>", unknown: str = "<UNK>"
    ) -> None:
        self.words = tuple(words)
        self.begin, self.end, self.unknown = begin, end, unknown
        self._ids: dict[str, int] = {}
        for place, word in enumerate(self.words, start=1):
            if not word or "\n" in word:
                raise UsageError(
                    f"Word {place} of the vocabulary is {word!r}: a word is not empty, on one line."
                )
            if self._ids.setdefault(word, place) != place:
                raise UsageError(f"Words {self._ids[word]} and {place} of the vocabulary are both {word!r}.")
        missing = _missing(self._ids, (begin, end, unknown))
        if missing:
            raise UsageError(f"The vocabulary {missing}")

    @classmethod
    def read(
        cls, path: str | Path, *, begin: str = "<S>", end: str = "</S>", unknown: str = "<UNK>"
    ) -> Vocab:
        """Read one word a line, from a plain or a compressed file."""
        lines: dict[str, int] = {}
        blank = 0  # the first blank line: an error as soon as a word follows
        for line in read_lines(path):
            word = line.text.strip(" \t\r")
            if word == _SKIPPED:
                continue
            if not word:
                blank = blank or line.number
                continue
            if blank:
                raise DataError(
                    f"{path}:{blank}: blank line between words. "
                    "The number of a line is the id of its word: put the word back or delete the line."
                )
            if word in lines:
                raise DataError(
                    f"{path}:{line.number}: {word!r} stands on line {lines[word]} already. "
                    "A word has one id: delete one of the two lines."
                )
            lines[word] = line.number
        missing = _missing(lines, (begin, end, unknown))
        if missing:
            raise DataError(f"{path}:1: the vocabulary {missing}")
        return cls(tuple(lines), begin=begin, end=end, unknown=unknown)

    def write(self, path: str | Path) -> None:
        """Write one word a line, compressed if the name ends in .gz; the file appears whole or not at all."""
        for place, word in enumerate(self.words, start=1):
            if word != word.strip(" \t\r") or word == _SKIPPED or not _encodable(word):
                raise UsageError(
                    f"Word {place}, {word!r}, would not survive in a file. Drop it from the words."
                )
        content = "".join(f"{word}\n" for word in self.words).encode()
        if str(path).endswith(".gz"):
            content = gzip.compress(content, mtime=0)
        partial = Path(f"{path}.partial")
        partial.write_bytes(content)
        os.replace(partial, path)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id(self, word: str) -> int:
        """Return the id of a word, or that of the unknown word."""
        return self._ids.get(word, self._ids[self.unknown])

    def ids(self, words: Iterable[str]) -> IntArray:
        """Return the ids of the words, (N,)."""
        get, unknown = self._ids.get, self._ids[self.unknown]
        return np.fromiter((get(word, unknown) for word in words), np.int64)

    def word(self, number: int) -> str:
        """Return the word with this id."""
        if not 1 <= number <= len(self.words):
            raise UsageError(
                f"{number} is not the id of a word: ids run from 1 to {len(self.words)}, 0 is padding."
            )
        return self.words[number - 1]


def _missing(words: Iterable[str], specials: tuple[str, ...]) -> str:
    """Say what the words lack, or nothing."""
    have = set(words)
    lacking = [special for special in specials if special not in have]
    if not lacking:
        return ""
    found = [word for word in (special.lower() for special in lacking) if word in have]
    hint = f" It holds {' '.join(found)}: case matters, rename them." if found else ""
    order = f"The first lines must be {' '.join(specials)}, then words by falling frequency."
    return f"lacks {' '.join(lacking)}. {order}{hint}"


def _encodable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
