"""Units of generated text: byte pairs, words or characters, to ids and back.

    text.segment, tasks.seq2seq.byte_pairs  ->  tasks.seq2seq.units  ->  the network and tasks of seq2seq

A text is split into tokens by `text.segment`; a token with white space before it begins with SPACE. Joining
units restores the text, but for the kind of white space, so a text that was tokenised stays as it was, and
Chinese gets no spaces. What must not change: `decode(encode(text))` is the text with single spaces, unless a
character or word is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, Self

from polyseme.errors import DataError, FormatError
from polyseme.tasks.examples import Segmenter, TokenizedText
from polyseme.tasks.seq2seq.byte_pairs import Pair, PairEncoder, learn_merges
from polyseme.text.segment.token import HAN

UnitKind = Literal["bpe", "words", "characters"]
SPACE = "▁"  # stands for white space before a token
START, END, UNKNOWN = 0, 1, 2  # ids of marks
MARKS = ("<start>", "<end>", "<unknown>")
_HAN_START = re.compile(f"[{HAN}]")


class TextUnits:
    """A vocabulary of units, and how texts are split into them."""

    def __init__(self, kind: UnitKind, segment: str, units: Sequence[str], merges: Iterable[Pair]) -> None:
        self.kind, self.segment = kind, segment
        self.units, self._merges = tuple(units), [(left, right) for left, right in merges]
        self._ids = {unit: number for number, unit in enumerate(self.units, start=len(MARKS))}
        self._pairs = PairEncoder(self._merges)
        self._segmenter = Segmenter(segment)

    def __len__(self) -> int:
        return len(MARKS) + len(self.units)

    @classmethod
    def learn(cls, kind: UnitKind, segment: str, size: int, texts: Iterable[str]) -> Self:
        """Learn at most `size` units from texts; all frequent characters are among byte pairs.

        Raises:
            DataError: If there is nothing to learn from.

        """
        segmenter = Segmenter(segment)
        words = Counter(chain.from_iterable(mark_spaces(text, segmenter) for text in texts))
        if not words:
            raise DataError("The targets have no text. There is nothing to learn from.")
        if kind == "words":
            return cls(kind, segment, [word for word, _ in words.most_common(size)], ())
        characters: Counter[str] = Counter()
        for word, count in words.items():
            for character in word:
                characters[character] += count
        units = [character for character, _ in characters.most_common(size)]
        if kind == "characters":
            return cls(kind, segment, units, ())
        merges = learn_merges(words, max(0, size - len(units)))
        joined = dict.fromkeys([*units, *(left + right for left, right in merges)])
        return cls(kind, segment, list(joined), merges)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without marks."""
        words = mark_spaces(text, self._segmenter)
        return [self._ids.get(unit, UNKNOWN) for word in words for unit in self.split(word)]

    def split(self, word: str) -> Sequence[str]:
        """The units of a token that may begin with SPACE."""
        if self.kind == "words":
            return (word,)
        return self._pairs.split(word) if self.kind == "bpe" else word

    def find(self, unit: str) -> int:
        """The id of a unit."""
        return self._ids.get(unit, UNKNOWN)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; marks are left out."""
        joined = "".join(self.units[number - len(MARKS)] for number in ids if number >= len(MARKS))
        return joined.replace(SPACE, " ").strip()

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        merges = [list(pair) for pair in self._merges]
        return {"kind": self.kind, "segment": self.segment, "units": list(self.units), "merges": merges}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """The units of `as_dict`.

        Raises:
            FormatError: If the values are not those of units.

        """
        try:
            kind, segment, units, merges = (values[name] for name in ("kind", "segment", "units", "merges"))
            valid = kind in ("bpe", "words", "characters") and isinstance(segment, str)
            valid = valid and all(isinstance(unit, str) and unit for unit in units)
            valid = valid and all(isinstance(part, str) for left, right in merges for part in (left, right))
        except (KeyError, TypeError, ValueError):
            valid = False
        if not isinstance(values, Mapping) or not valid:
            raise FormatError("The units of the task are missing or damaged.")
        return cls(kind, segment, units, merges)


def mark_spaces(text: str, segmenter: Segmenter) -> list[str]:
    """The tokens of a text; SPACE before those that white space precedes, and before a first Latin word."""
    words: list[str] = []
    end = -1
    for token in segmenter.tokens(text.replace(SPACE, " ")):
        is_attached = token.start == end if words else _HAN_START.match(token.text) is not None
        words.append(token.text if is_attached else SPACE + token.text)
        end = token.end
    return words


def mark_tokens(text: TokenizedText) -> list[str]:
    """The same for a text that is tokenised already."""
    return [
        token
        if (_HAN_START.match(token) if not position else not text.gap_before(position))
        else SPACE + token
        for position, token in enumerate(text.tokens)
    ]
