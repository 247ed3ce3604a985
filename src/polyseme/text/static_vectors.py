"""Static word vectors from the files people have: word2vec (text, binary), GloVe, fastText .vec.

    text.reading  ->  text.static_vectors  ->  tasks, words

Comes in: a file, compressed or not; its content decides the format, never its name. Goes out:
`StaticVectors`, a (V, D) float32 matrix. The file is streamed; with `only`, other words cost no memory.

What must not change: nothing is allocated on the word of a header; the first of two equal words wins.
Words that are not UTF-8 (word2vec cuts long ones in the middle of a character) keep a replacement character.
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
    """One vector a word, whatever the context."""

    def __init__(self, words: Mapping[str, int], matrix: FloatArray) -> None:
        self.words = words
        self.matrix = matrix  # (V, D)

    @property
    def dim(self) -> int:
        """D, the size of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def lookup(self, tokens: Sequence[str]) -> tuple[FloatArray, int]:
        """Return the (N, D) vectors of the tokens, zeros for missing ones, and how many were missing."""
        rows = np.fromiter((self.words.get(token, -1) for token in tokens), np.int64, len(tokens))
        known = rows >= 0
        found = np.zeros((len(tokens), self.dim), np.float32)
        found[known] = self.matrix[rows[known]]
        return found, int(len(tokens) - known.sum())


class _Layout(NamedTuple):
    """What the start of a file tells."""

    dim: int
    declared: int | None  # vectors, by the header; None without header
    binary: bool


class _Entry(NamedTuple):
    place: str  # file:line, or the number of the vector in a binary file
    word: str
    values: bytes | list[bytes]


def read_vectors(
    path: str | Path, *, only: Collection[str] | None = None, limit: int | None = None
) -> StaticVectors:
    """Read the vectors of a file: of its first `limit` words, and of these only the words in `only`."""
    if limit is not None and limit < 0:
        raise UsageError(
            f"limit is {limit}: it counts words from the start of the file. Set it to 0 or more."
        )
    wanted = None if only is None else frozenset(only)
    layout = _layout(path)
    words: dict[str, int] = {}
    rows = bytearray()  # grows with what is read, never with what is declared
    with open_bytes(path) as stream:
        for entry in islice(_entries(stream, str(path), layout), limit):
            if entry.word in words or (wanted is not None and entry.word not in wanted):
                continue
            rows += _numbers(entry, layout.dim).tobytes()
            words[entry.word] = len(words)
    matrix = np.frombuffer(rows, np.float32).reshape(len(words), layout.dim)
    return StaticVectors(words, matrix)


def read_dim(path: str | Path) -> int:
    """Read the size of the vectors of a file, from its start."""
    return _layout(path).dim


def _layout(path: str | Path) -> _Layout:
    """Look at the first line and a sample of what follows."""
    if str(path) == "-":
        raise UsageError("Vectors are read from a file, not from standard input: it is looked at twice.")
    with open_bytes(path) as stream:
        first, sample = stream.readline(_LONGEST_LINE), stream.read(_SAMPLE)
    if first.startswith(_FASTTEXT_MAGIC):
        raise FormatError(
            f"{path}: a fastText model (.bin), not vectors. Use the .vec file that comes with it."
        )
    fields = first.split()
    if not fields:
        raise DataError(f"{path}:1: no vectors here: the file is empty or starts with a blank line.")
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        declared, dim = map(int, fields)
        if not 0 < dim <= _LARGEST_DIM:
            raise FormatError(f"{path}:1: the header declares vectors of {dim} numbers. Is the file damaged?")
        return _Layout(dim, declared, _is_binary(sample))
    if _is_binary(first):
        raise FormatError(
            f"{path}: not word vectors. Known: word2vec (text, binary), GloVe text, fastText .vec."
        )
    numbers = 0  # at the end of the line; the first field is a word even if it looks like a number
    while numbers < len(fields) - 1 and _is_number(fields[-1 - numbers]):
        numbers += 1
    if not numbers:
        raise DataError(
            f"{path}:1: expected a word and its numbers, separated by spaces. Is it a vector file?"
        )
    return _Layout(numbers, None, binary=False)


def _is_binary(sample: bytes) -> bool:
    """Say whether bytes are no text: neither UTF-8 nor, behind a broken word, a line of numbers."""
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


def _entries(stream: BinaryIO, name: str, layout: _Layout) -> Iterator[_Entry]:
    if layout.declared is not None:
        stream.readline(_LONGEST_LINE)
    entries = _from_binary if layout.binary else _from_text
    found = 0
    for entry in islice(entries(stream, name, layout), layout.declared):
        found += 1
        yield entry
    if layout.declared is not None and found < layout.declared:
        raise FormatError(
            f"{name}: cut off: {found} vectors, but the header declares {layout.declared}. Download it again."
        )


def _from_text(stream: BinaryIO, name: str, layout: _Layout) -> Iterator[_Entry]:
    dim, first = layout.dim, 1 if layout.declared is None else 2
    for number, raw in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), b""), start=first):
        place = f"{name}:{number}"
        fields = raw.rsplit(None, dim)  # from the right: words of GloVe 840B hold spaces
        if len(fields) == dim and raw[:1] in (b" ", b"\t"):
            fields.insert(0, b"")  # GloVe of Twitter has an empty word
        in_word = fields[0].split() if fields else []  # more than one field, and a number: a column too many
        if len(fields) <= dim or (len(in_word) > 1 and _is_number(in_word[-1])):
            raise DataError(
                f"{place}: {len(raw.split())} columns, expected {dim + 1} (a word and {dim} numbers). "
                "Is the line cut off, or is the file not separated by spaces?"
            )
        yield _Entry(place, fields[0].decode("utf-8", "replace"), fields[1:])


def _from_binary(stream: BinaryIO, name: str, layout: _Layout) -> Iterator[_Entry]:
    size, number, buffer, start = 4 * layout.dim, 0, b"", 0
    while True:
        space = buffer.find(b" ", start)
        if space < 0 or space + 1 + size > len(buffer):
            more = stream.read(_CHUNK)
            buffer, start = buffer[start:] + more, 0
            if not more and not buffer.strip(b"\n"):
                return
            if not more or (space < 0 and len(buffer) > _CHUNK + _LONGEST_WORD):
                why = "ends inside it" if not more else "has no space after its word"
                raise FormatError(f"{name}: vector {number + 1}: the file {why}. It is cut off or damaged.")
            continue
        number += 1
        word = buffer[start:space].lstrip(b"\n").decode("utf-8", "replace")
        start = space + 1 + size
        yield _Entry(f"{name}: vector {number}", word, buffer[space + 1 : start])


def _numbers(entry: _Entry, dim: int) -> FloatArray:
    """Return the (D,) vector of an entry; every number is finite."""
    if isinstance(entry.values, bytes):
        vector = np.frombuffer(entry.values, "<f4").astype(np.float32)
    else:
        try:
            values = [float(field) for field in entry.values]
        except ValueError:
            bad = next(field for field in entry.values if not _is_number(field))
            shown = bad.decode("utf-8", "replace")[:40]
            raise DataError(
                f"{entry.place}: {shown!r} is not a number; {dim} must follow the word."
            ) from None
        with np.errstate(over="ignore"):
            vector = np.array(values, np.float64).astype(np.float32)
    if not np.isfinite(vector).all():
        raise DataError(
            f"{entry.place}: the vector of {entry.word!r} holds NaN or infinity. Delete or mend it."
        )
    return vector
