"""Turn tokens into character ids: bytes, as in published models, or code points.

    text.segment  ->  text.chars  ->  model.tokens

Input: tokens as strings. Output: (N, C) int64 rows, one per token, C = max_chars.
A row is [word begin, characters…, word end, padding…]; a token is truncated to C - 2 characters.

What must not change: ids are one above the raw ids of the published format, because row 0 of the embedding
pads sentences. `ByteAlphabet` follows that format to the byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polyseme.config import MAX_CHARS
from polyseme.errors import UsageError
from polyseme.text.simplified import pair_characters

IntArray = NDArray[np.int64]

SPECIALS = ("<pad>", "<bow>", "<eow>", "<bos>", "<eos>", "<oov>")

# Raw ids of the published format, after the 256 bytes.
_SENTENCE_BEGIN, _SENTENCE_END, _WORD_BEGIN, _WORD_END, _WORD_PADDING = range(256, 261)


class Alphabet(Protocol):
    """What the model and the corpus need of an alphabet."""

    @property
    def max_chars(self) -> int:
        """C, the width of a row."""

    @property
    def size(self) -> int:
        """Rows of the character embedding, including row 0, which pads sentences."""

    @property
    def padding(self) -> int:
        """The id that fills a row after its word."""

    def encode(self, tokens: Sequence[str]) -> IntArray:
        """Return the (N, C) ids of the tokens."""

    def boundaries(self) -> IntArray:
        """Return (2, C): the rows of the begin and end mark of a sentence."""

    def count_truncated(self, tokens: Sequence[str]) -> int:
        """Count the tokens that are too long for a row and are truncated."""


class ByteAlphabet:
    """UTF-8 bytes, as in bilm-tf and AllenNLP."""

    size = 262
    padding = _WORD_PADDING + 1

    def __init__(self, max_chars: int = 50) -> None:
        self.max_chars = _check_max_chars(max_chars)

    def encode(self, tokens: Sequence[str]) -> IntArray:
        """Return the (N, C) ids of the tokens; `<S>` and `</S>` give the rows of the boundaries."""
        limit = self.max_chars - 2
        pieces = [token.encode("utf-8", "ignore")[:limit] for token in tokens]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))  # (N,)
        inside = np.frombuffer(b"".join(pieces), np.uint8) + np.int64(1)
        rows = _build_rows(inside, lengths, self.max_chars, (_WORD_BEGIN + 1, _WORD_END + 1, self.padding))
        return _replace_boundaries(rows, tokens, {"<S>": 0, "</S>": 1}, self.boundaries())

    def boundaries(self) -> IntArray:
        """Return (2, C): the rows of `<S>` and `</S>`."""
        inside = np.array([_SENTENCE_BEGIN + 1, _SENTENCE_END + 1], np.int64)
        marks = (_WORD_BEGIN + 1, _WORD_END + 1, self.padding)
        return _build_rows(inside, np.ones(2, np.int64), self.max_chars, marks)

    def count_truncated(self, tokens: Sequence[str]) -> int:
        """Count the tokens with more than C - 2 bytes."""
        limit = self.max_chars - 2
        if 4 * max(map(len, tokens), default=0) <= limit:  # a character has at most 4 bytes
            return 0
        return sum(
            len(token.encode("utf-8", "ignore")) > limit
            for token in tokens
            if 4 * len(token) > limit and token not in ("<S>", "</S>")
        )


class CodepointAlphabet:
    """An ordered list of characters with six special entries; id = position in the list + 1.

    With `simplify`, a traditional Chinese character has the id of its simplified form if that stands before
    it in the list, which is sorted by falling frequency.
    """

    _BOUNDARIES: Mapping[str, int] = {"<S>": 0, "<bos>": 0, "</S>": 1, "<eos>": 1}

    def __init__(self, characters: Sequence[str], max_chars: int = 50, *, simplify: bool = False) -> None:
        self.max_chars = _check_max_chars(max_chars)
        self.simplifies = simplify
        self.characters = tuple(characters)
        ids = {character: position + 1 for position, character in enumerate(self.characters)}
        if len(ids) < len(self.characters):
            repeated, _ = Counter(self.characters).most_common(1)[0]
            raise UsageError(f"The alphabet lists {repeated!r} more than once. Keep one: ids are positions.")
        missing = [special for special in SPECIALS if special not in ids]
        if missing:
            raise UsageError(
                f"The alphabet lacks {' '.join(missing)}. It needs {' '.join(SPECIALS)}, in any order."
            )
        self.size = len(self.characters) + 1
        self.padding = ids["<pad>"]
        self._marks = (ids["<bow>"], ids["<eow>"], ids["<pad>"])
        self._begin, self._end, self._unknown = ids["<bos>"], ids["<eos>"], ids["<oov>"]
        if simplify:
            for traditional, simplified in pair_characters():
                if ids.get(simplified, len(ids)) < ids.get(traditional, len(ids)):
                    ids[traditional] = ids[simplified]
        single = sorted((ord(c), number) for c, number in ids.items() if len(c) == 1)
        self._codes = np.array([code for code, _ in single], np.uint32)  # sorted, for the binary search
        self._numbers = np.array([number for _, number in single], np.int64)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], max_chars: int = 50, min_count: int = 1
    ) -> CodepointAlphabet:
        """Build an alphabet from word counts: special entries, then characters by falling frequency.

        Args:
            counts: How often each word occurs.
            max_chars: C, the width of a row.
            min_count: Only characters that occur at least this often.

        """
        frequencies: Counter[str] = Counter()
        for word, times in counts.items():
            for character in word:
                frequencies[character] += times
        frequent = [c for c, n in frequencies.items() if n >= min_count and not "\ud800" <= c <= "\udfff"]
        return cls([*SPECIALS, *sorted(frequent, key=lambda c: (-frequencies[c], c))], max_chars)

    @property
    def unknown(self) -> int:
        """The id of characters that are not in the list."""
        return self._unknown

    def ids_by_character(self) -> dict[str, int]:
        """Return the id of every character; with `simplify` of traditional ones, too."""
        return {chr(code): number for code, number in zip(self._codes, self._numbers.tolist(), strict=True)}

    def encode(self, tokens: Sequence[str]) -> IntArray:
        """Return the (N, C) ids of the tokens; `<S>` or `<bos>`, `</S>` or `<eos>` give boundaries."""
        limit = self.max_chars - 2
        pieces = [token[:limit] for token in tokens]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))  # (N,)
        codes = np.frombuffer("".join(pieces).encode("utf-32-le", "surrogatepass"), "<u4")
        rows = _build_rows(self._look_up(codes), lengths, self.max_chars, self._marks)
        return _replace_boundaries(rows, tokens, self._BOUNDARIES, self.boundaries())

    def boundaries(self) -> IntArray:
        """Return (2, C): the rows of `<bos>` and `<eos>`."""
        inside = np.array([self._begin, self._end], np.int64)
        return _build_rows(inside, np.ones(2, np.int64), self.max_chars, self._marks)

    def count_truncated(self, tokens: Sequence[str]) -> int:
        """Count the tokens with more than C - 2 characters."""
        limit = self.max_chars - 2
        if max(map(len, tokens), default=0) <= limit:  # fast path for most texts
            return 0
        return sum(len(token) > limit for token in tokens if token not in self._BOUNDARIES)

    def _look_up(self, codes: NDArray[np.uint32]) -> IntArray:
        """The ids of code points; one id for all that are not in the alphabet."""
        if not len(self._codes):
            return np.full(len(codes), self._unknown, np.int64)
        positions = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
        return np.where(self._codes[positions] == codes, self._numbers[positions], np.int64(self._unknown))


def _check_max_chars(max_chars: int) -> int:
    """Refuse rows too short for a word, and rows that take all memory."""
    if max_chars < 3:
        raise UsageError(
            f"max_chars is {max_chars}, but a row needs a word begin, a character and a word end. "
            "Set it to 3 or more; published models have 50."
        )
    if max_chars > MAX_CHARS:
        raise UsageError(
            f"max_chars is {max_chars:,}, and every row has so many numbers. Set it to {MAX_CHARS:,} or "
            "less; published models have 50."
        )
    return max_chars


def _build_rows(inside: IntArray, lengths: IntArray, width: int, marks: tuple[int, int, int]) -> IntArray:
    """Build (N, C) rows from the character ids of all words, concatenated in `inside`."""
    begin, end, padding = marks
    rows = np.full((len(lengths), width), padding, np.int64)
    rows[:, 0] = begin
    starts = lengths.cumsum() - lengths  # where each word starts in `inside`
    columns = np.arange(1, len(inside) + 1) - starts.repeat(lengths)
    rows[np.arange(len(lengths)).repeat(lengths), columns] = inside
    rows[np.arange(len(lengths)), lengths + 1] = end
    return rows


def _replace_boundaries(
    rows: IntArray, tokens: Sequence[str], names: Mapping[str, int], boundaries: IntArray
) -> IntArray:
    """Replace the rows of begin and end marks."""
    for number, token in enumerate(tokens):
        if token in names:
            rows[number] = boundaries[names[token]]
    return rows
