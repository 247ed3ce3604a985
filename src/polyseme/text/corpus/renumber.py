"""Renumber a stream by rank, and separate the held-out text.

    text.corpus.counts, text.corpus.split  ->  text.corpus.renumber  ->  text.corpus.build

Input: a file of uint32 numbers by first occurrence. Output: files of uint32 types, every sentence `begin w …
w end`, and counts. Files are read in blocks of sentences; mapped pages are released after each block, so
memory does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.io.memory_map import release
from polyseme.text.corpus.duplicates import RepeatCounter
from polyseme.text.corpus.split import HeldOut, scatter_bits

Ids = NDArray[np.uint32]
IntArray = NDArray[np.int64]

_BLOCK = 1 << 19  # numbers read at once


class SentenceBlock(NamedTuple):
    """Complete sentences of a stream."""

    ids: Ids
    start: int  # position of its first number in the stream
    starts: IntArray  # positions of its sentences in the stream
    before: int  # sentences before it


@dataclass
class StreamCounts:
    """Counts of the train or the held-out stream; tokens are words without begin and end marks."""

    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    truncated: int = 0


@dataclass
class CorpusRepeats:
    """RepeatCounter of whole sentences and of whole documents."""

    sentences: RepeatCounter = field(default_factory=RepeatCounter)
    documents: RepeatCounter = field(default_factory=RepeatCounter)
    open: int = -1  # number of the current document
    sum: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(1, np.uint64))  # its hash so far, (1,)


class Numbering(NamedTuple):
    """The map from numbers to types, and properties of types."""

    types: Ids  # number by first occurrence -> type
    specials: tuple[int, int, int]  # begin, end, unknown
    words: int  # V
    truncated: NDArray[np.bool_] | None  # whether a type is too long for a row of characters


def read_sentence_blocks(file: Path, begin: int) -> Iterator[SentenceBlock]:
    """Read a stream in blocks of whole sentences."""
    rest, position, before = np.zeros(0, np.uint32), 0, 0
    with file.open("rb") as source:
        while True:
            more = np.frombuffer(source.read(4 * _BLOCK), np.uint32)
            ids = np.concatenate((rest, more))
            if not len(ids):
                return
            starts = np.flatnonzero(ids == begin)
            if len(more):  # the last sentence may continue
                ids, rest, starts = ids[: starts[-1]], ids[starts[-1] :], starts[:-1]
            else:
                rest = ids[:0]
            if len(starts):
                yield SentenceBlock(ids, position, position + starts, before)
            position, before = position + len(ids), before + len(starts)


def mark_held_out(block: SentenceBlock, plan: HeldOut) -> NDArray[np.bool_]:
    """Whether each number of a block is held out."""
    lengths = np.diff(block.starts, append=block.start + len(block.ids))
    return plan.select(block.starts, block.before).repeat(lengths)


def renumber(
    file: Path,
    numbering: Numbering,
    plan: HeldOut,
    outputs: tuple[IO[bytes], IO[bytes]],
    documents: IntArray,
    repeated: CorpusRepeats,
) -> tuple[StreamCounts, StreamCounts]:
    """Write the train and the held-out stream to `outputs` and count both; `documents`: where they start."""
    parts = StreamCounts(), StreamCounts()
    for block in read_sentence_blocks(file, numbering.specials[0]):
        types = numbering.types[block.ids]
        held = mark_held_out(block, plan)
        _count_repeats(types, block, documents, repeated)
        for part, chosen, out in zip(parts, (types[~held], types[held]), outputs, strict=True):
            out.write(chosen.tobytes())
            _count(part, chosen, numbering)
        release(numbering.types, numbering.truncated, documents)
    if repeated.open >= 0:
        repeated.documents.add(repeated.sum)
    return parts


def _count(part: StreamCounts, types: Ids, numbering: Numbering) -> None:
    begin, _, unknown = numbering.specials
    sentences = int((types == begin).sum())
    part.sentences += sentences
    part.tokens += len(types) - 2 * sentences
    part.unknown += int((types >= numbering.words).sum()) + int((types == unknown).sum())
    if numbering.truncated is not None:
        part.truncated += int(numbering.truncated[types].sum())


def _count_repeats(types: Ids, block: SentenceBlock, documents: IntArray, repeated: CorpusRepeats) -> None:
    """Hash sentences and documents: sums of a hash per word and position, which can be added in parts."""
    starts = block.starts - block.start
    lengths = np.diff(starts, append=len(types))
    positions = np.arange(len(types)) - starts.repeat(lengths)  # in the sentence
    hashes = scatter_bits(types.astype(np.uint64) << np.uint64(32) | positions.astype(np.uint64), 0)
    sentences = np.add.reduceat(hashes, starts)
    repeated.sentences.add(scatter_bits(sentences, 1))
    # A document: the sum over its sentences of a hash of the sentence and its position in the document.
    first = np.searchsorted(documents, block.starts, side="right") - 1  # the document of each sentence
    offset = (block.starts - documents[first]).astype(np.uint64)
    weighted = scatter_bits(sentences + offset * np.uint64(0x9E3779B97F4A7C15), 2)
    opens = np.flatnonzero(np.diff(first, prepend=first[0] - 1))
    sums = np.add.reduceat(weighted, opens)
    if first[0] == repeated.open:
        sums[:1] += repeated.sum
    elif repeated.open >= 0:
        repeated.documents.add(repeated.sum)
    repeated.documents.add(sums[:-1])
    repeated.open, repeated.sum = int(first[-1]), sums[-1:]
