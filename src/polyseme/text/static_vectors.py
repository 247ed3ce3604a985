"""Read static word vectors: word2vec (text and binary), GloVe, fastText .vec.

    text.reading  ->  text.static_vectors  ->  elmo, training.static_words, tasks

Input: a file, compressed or not; its content decides the format, not its name. Output: `StaticVectors`, a (V,
D) float32 matrix. The file is streamed; with `only`, other words take no memory.

What must not change: memory is never allocated by the numbers of a header; the first of two equal words wins.
Words that are not UTF-8 (word2vec truncates long ones inside a character) get a replacement character.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import DataError, FormatError, UsageError
from polyseme.text.reading import open_bytes

FloatArray = NDArray[np.float32]

_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
_LONGEST_LINE = 1 << 22
_SAMPLE = 1 << 12
_LONGEST_WORD = 1 << 16
_LARGEST_DIM = 1 << 16
_CHUNK = 1 << 20


class StaticVectors:
    """One vector per word, independent of context.

    Attributes:
        words: The row of each word.
        matrix: The vectors, (V, D).

    """

    def __init__(self, words: Mapping[str, int], matrix: FloatArray) -> None:
        self.words = words
        self.matrix = matrix

    @property
    def dim(self) -> int:
        """D, the size of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def lookup(self, tokens: Sequence[str]) -> tuple[FloatArray, int]:
        """Look up the vectors of tokens.

        Args:
            tokens: The N tokens.

        Returns:
            The vectors (N, D), zeros for missing tokens, and the number of missing tokens.

        """
        rows = np.fromiter((self.words.get(token, -1) for token in tokens), np.int64, len(tokens))
        known = rows >= 0
        vectors = np.zeros((len(tokens), self.dim), np.float32)
        vectors[known] = self.matrix[rows[known]]
        return vectors, int(len(tokens) - known.sum())


class _Layout(NamedTuple):
    """What the start of a file says."""

    dim: int
    declared: int | None  # number of vectors in the header; None without a header
    binary: bool


class _Entry(NamedTuple):
    location: str  # file:line, or the number of the vector in a binary file
    word: str
    values: bytes | list[bytes]


def read_vectors(
    path: str | Path, *, only: Collection[str] | None = None, limit: int | None = None
) -> StaticVectors:
    """Read static word vectors.

    Args:
        path: A file of word2vec (text or binary), GloVe or fastText (.vec), compressed or not.
        only: Read only the vectors of these words.
        limit: Read only the first words of the file, which are the most frequent ones.

    Returns:
        The words and their vectors.

    Raises:
        UsageError: `limit` is negative, or there is no such file.
        FormatError: The file is not one of vectors, or is truncated.
        DataError: A line is invalid; the message begins with `file:line`.

    Example:
        >>> vectors = polyseme.read_vectors("glove.6B.100d.txt", limit=50_000)
        >>> vectors.lookup(["bank"])[0].shape
        (1, 100)

    """
    if limit is not None and limit < 0:
        raise UsageError(
            f"limit is {limit}: it counts words from the start of the file. Set it to 0 or more."
        )
    wanted = None if only is None else frozenset(only)
    layout = _detect_layout(path)
    words: dict[str, int] = {}
    rows = bytearray()  # grows with what is read, not with what the header declares
    with open_bytes(path) as stream:
        for entry in islice(_read_entries(stream, str(path), layout), limit):
            if entry.word in words or (wanted is not None and entry.word not in wanted):
                continue
            rows += _parse_numbers(entry, layout.dim).tobytes()
            words[entry.word] = len(words)
    matrix = np.frombuffer(rows, np.float32).reshape(len(words), layout.dim)
    return StaticVectors(words, matrix)


def read_dim(path: str | Path) -> int:
    """Read the size of the vectors of a file, from its start."""
    return _detect_layout(path).dim


def _detect_layout(path: str | Path) -> _Layout:
    """Detect the layout by the first line and a sample of the rest."""
    if str(path) == "-":
        raise UsageError(
            "Vectors cannot come from standard input, because they are read twice. Save them to a file."
        )
    with open_bytes(path) as stream:
        first, sample = stream.readline(_LONGEST_LINE), stream.read(_SAMPLE)
    if first.startswith(_FASTTEXT_MAGIC):
        raise FormatError(f"{path}: a fastText model (.bin), not vectors. Use its .vec file.")
    fields = first.split()
    if not fields:
        raise DataError(f"{path}:1: no vectors: the file is empty or starts with a blank line.")
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        declared, dim = map(int, fields)
        if not 0 < dim <= _LARGEST_DIM:
            raise FormatError(f"{path}:1: the header declares vectors of {dim} numbers. Is the file damaged?")
        return _Layout(dim, declared, _is_binary(sample))
    if _is_binary(first):
        raise FormatError(
            f"{path}: not word vectors. Known: word2vec (text, binary), GloVe text, fastText .vec."
        )
    numbers = 0  # numbers at the end of the line; the first field is a word even if it looks like a number
    while numbers < len(fields) - 1 and _is_number(fields[-1 - numbers]):
        numbers += 1
    if not numbers:
        raise DataError(
            f"{path}:1: expected a word and its numbers, separated by spaces. Is it a file of vectors?"
        )
    return _Layout(numbers, None, binary=False)


def _is_binary(sample: bytes) -> bool:
    """Whether bytes are not text: neither UTF-8 nor, after an invalid word, a line of numbers."""
    fields = sample.partition(b"\n")[0].split()
    if len(fields) > 1 and all(map(_is_number, fields[1:])):
        return False
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(sample)  # the sample may end inside a character
    except UnicodeDecodeError:
        return True
    return any(ord(c) < 32 and c not in "\t\r\n" for c in text)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_entries(stream: BinaryIO, name: str, layout: _Layout) -> Iterator[_Entry]:
    if layout.declared is not None:
        stream.readline(_LONGEST_LINE)
    entries = _read_binary if layout.binary else _read_text
    count = 0
    for entry in islice(entries(stream, name, layout), layout.declared):
        count += 1
        yield entry
    if layout.declared is not None and count < layout.declared:
        raise FormatError(
            f"{name}: truncated: {count} vectors, the header declares {layout.declared}. Download it again."
        )


def _read_text(stream: BinaryIO, name: str, layout: _Layout) -> Iterator[_Entry]:
    dim, first = layout.dim, 1 if layout.declared is None else 2
    for number, raw in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), b""), start=first):
        location = f"{name}:{number}"
        fields = raw.rsplit(None, dim)  # from the right: words of GloVe 840B contain spaces
        if len(fields) == dim and raw[:1] in (b" ", b"\t"):
            fields.insert(0, b"")  # GloVe for Twitter has an empty word
        in_word = fields[0].split() if fields else []  # more than one field, and a number: a column too many
        if len(fields) <= dim or (len(in_word) > 1 and _is_number(in_word[-1])):
            raise DataError(
                f"{location}: {len(raw.split())} columns, expected {dim + 1} (a word and {dim} numbers). "
                "Is the line truncated, or the file not separated by spaces?"
            )
        yield _Entry(location, fields[0].decode("utf-8", "replace"), fields[1:])


def _read_binary(stream: BinaryIO, name: str, layout: _Layout) -> Iterator[_Entry]:
    size, number, buffer, start = 4 * layout.dim, 0, b"", 0
    while True:
        space = buffer.find(b" ", start)
        if space < 0 or space + 1 + size > len(buffer):
            more = stream.read(_CHUNK)
            buffer, start = buffer[start:] + more, 0
            if not more and not buffer.strip(b"\n"):
                return
            if not more or (space < 0 and len(buffer) > _CHUNK + _LONGEST_WORD):
                reason = "ends inside it" if not more else "has no space after its word"
                raise FormatError(
                    f"{name}: vector {number + 1}: the file {reason}. It is truncated or damaged."
                )
            continue
        number += 1
        word = buffer[start:space].lstrip(b"\n").decode("utf-8", "replace")
        start = space + 1 + size
        yield _Entry(f"{name}: vector {number}", word, buffer[space + 1 : start])


def _parse_numbers(entry: _Entry, dim: int) -> FloatArray:
    """Parse the (D,) vector of an entry; refuse numbers that are not finite."""
    if isinstance(entry.values, bytes):
        vector = np.frombuffer(entry.values, "<f4").astype(np.float32)
    else:
        try:
            values = [float(field) for field in entry.values]
        except ValueError:
            bad = next(field for field in entry.values if not _is_number(field))
            shown = bad.decode("utf-8", "replace")[:40]
            raise DataError(
                f"{entry.location}: {shown!r} is not a number; {dim} must follow the word."
            ) from None
        with np.errstate(over="ignore"):
            vector = np.array(values, np.float64).astype(np.float32)
    if not np.isfinite(vector).all():
        raise DataError(
            f"{entry.location}: the vector of {entry.word!r} contains NaN or infinity. Correct or delete it."
        )
    return vector
