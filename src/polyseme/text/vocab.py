"""Words and their ids: position in the vocabulary file from 1; 0 is padding.

    text.reading  ->  text.vocab  ->  corpus, model.softmax, formats

V counts the words without padding, so a table with a padding row has V + 1 rows.

What must not change: the order. Words are sorted by falling frequency, because the sampled softmax needs
that.
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
from polyseme.text.simplified import simplify

IntArray = NDArray[np.int64]

_SKIPPED = "!!!MAXTERMID"  # a line of old vocabulary files that is not a word


class Vocab:
    """The words of a model, in order.

    Args:
        words: The words, by falling frequency.
        begin: The word that begins a sentence.
        end: The word that ends a sentence.
        unknown: The word for all others.
        simplify: Look up words in simplified Chinese characters, too; the more frequent form counts.

    Raises:
        UsageError: A word is empty, contains a line break, is there twice, or one of the three is missing.

    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        begin: str = "<S>",
        end: str = "</S>",
        unknown: str = "<UNK>",
        simplify: bool = False,
    ) -> None:
        self.words = tuple(words)
        self.begin, self.end, self.unknown = begin, end, unknown
        self.simplifies = simplify
        self._ids: dict[str, int] = {}
        for number, word in enumerate(self.words, start=1):
            if not word or "\n" in word:
                raise UsageError(f"Word {number} of the vocabulary is {word!r}, expected a word on one line.")
            if self._ids.setdefault(word, number) != number:
                raise UsageError(f"Words {self._ids[word]} and {number} of the vocabulary are both {word!r}.")
        missing = _describe_missing(self._ids, (begin, end, unknown))
        if missing:
            raise UsageError(f"The vocabulary {missing}")

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        begin: str = "<S>",
        end: str = "</S>",
        unknown: str = "<UNK>",
        simplify: bool = False,
    ) -> Vocab:
        """Read a vocabulary file: one word per line, plain or compressed.

        Raises:
            DataError: The file has blank lines, repeated words, or lacks one of the three special words.

        """
        lines: dict[str, int] = {}
        blank = 0  # the first blank line: an error as soon as a word follows
        for line in read_lines(path, "utf-8"):
            word = line.text.strip(" \t\r")
            if word == _SKIPPED:
                continue
            if not word:
                blank = blank or line.number
                continue
            if blank:
                raise DataError(
                    f"{path}:{blank}: blank line between words. "
                    "The line number is the id of the word: restore the word or delete the line."
                )
            if word in lines:
                raise DataError(
                    f"{path}:{line.number}: {word!r} is on line {lines[word]} already. "
                    "A word has one id: delete one of the two lines."
                )
            lines[word] = line.number
        missing = _describe_missing(lines, (begin, end, unknown))
        if missing:
            raise DataError(f"{path}:1: the vocabulary {missing}")
        return cls(tuple(lines), begin=begin, end=end, unknown=unknown, simplify=simplify)

    def write(self, path: str | Path) -> None:
        """Write one word per line, compressed if the name ends in .gz, atomically."""
        for number, word in enumerate(self.words, start=1):
            if word != word.strip(" \t\r") or word == _SKIPPED or not _is_encodable(word):
                raise UsageError(
                    f"Word {number}, {word!r}, cannot be stored in a file. Drop it from the words."
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
        return word in self._ids or (
            self.simplifies and isinstance(word, str) and simplify(word) in self._ids
        )

    def id(self, word: str) -> int:
        """The id of a word; that of the unknown word if it is not in the vocabulary."""
        missing = len(self.words) + 1
        number = self._ids.get(word, missing)
        if self.simplifies and not word.isascii():
            number = min(number, self._ids.get(simplify(word), missing))
        return self._ids[self.unknown] if number == missing else number

    def ids(self, words: Iterable[str]) -> IntArray:
        """The ids of words, (N,)."""
        if self.simplifies:
            return np.fromiter(map(self.id, words), np.int64)
        get, unknown = self._ids.get, self._ids[self.unknown]
        return np.fromiter((get(word, unknown) for word in words), np.int64)

    def word(self, number: int) -> str:
        """The word with this id."""
        if not 1 <= number <= len(self.words):
            raise UsageError(
                f"{number} is not the id of a word: ids run from 1 to {len(self.words)}, 0 is padding."
            )
        return self.words[number - 1]


def _describe_missing(words: Iterable[str], specials: tuple[str, ...]) -> str:
    """Describe which special words are missing; empty if none is."""
    present = set(words)
    lacking = [special for special in specials if special not in present]
    if not lacking:
        return ""
    lower = [word for word in (special.lower() for special in lacking) if word in present]
    hint = f" It has {' '.join(lower)}: case matters, rename them." if lower else ""
    order = f"The first lines must be {' '.join(specials)}, then words by falling frequency."
    return f"lacks {' '.join(lacking)}. {order}{hint}"


def _is_encodable(word: str) -> bool:
    """Whether a word can be written as UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
