"""Turn the text of a corpus into blocks of usages: sentences with offsets, and the vectors of their words.

    text.segment.stream, elmo  ->  search.usage_writer  ->  search.usage_store  (called by search.build)

Vectors go to the file of their block as they come; index.json lists a block when it is complete.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import CHUNK, Counts, Elmo
from polyseme.errors import DataError
from polyseme.model.output import OutputSpec
from polyseme.search.usage_store import (
    PRECISIONS,
    UsageBlockWriter,
    Vectors,
    get_block_path,
    list_documents,
    note_documents,
    write_head,
)
from polyseme.text.corpus.documents import Document
from polyseme.text.length_batches import chunk_by_size
from polyseme.text.reading import Line, ReadingProgress
from polyseme.text.segment import WordList, locate
from polyseme.text.segment.stream import group_lines, segment_unit

MAX_FP16 = float(np.finfo(np.float16).max)
IsKept = Callable[[str], bool]  # whether the usages of a word are indexed


@dataclass(frozen=True)
class WordFilter:
    """Which words have their usages indexed.

    Attributes:
        min_count: Only words with at least this many usages in the new text.
        max_count: Only words with at most this many.
        stop: Words to leave out.
        only: The only words to index, if any.

    """

    min_count: int = 1
    max_count: int | None = None
    stop: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    @property
    def needs_counts(self) -> bool:
        """Whether the words of the corpus must be counted first."""
        return self.min_count > 1 or self.max_count is not None

    def make_test(self, counts: Counter[str] | None) -> IsKept | None:
        """Return what tells whether a word is indexed; None if all are. `counts`: see `needs_counts`."""
        if not (self.stop or self.only or self.needs_counts):
            return None
        stop, only = frozenset(self.stop), frozenset(self.only)
        max_count = self.max_count

        def is_kept(word: str) -> bool:
            if word in stop or (only and word not in only):
                return False
            if counts is None:
                return True
            return counts[word] >= self.min_count and (max_count is None or counts[word] <= max_count)

        return is_kept


class IndexedSentence(NamedTuple):
    """A sentence of the corpus: its text, location, words, and the offsets where the words start and stop."""

    text: str
    document: Document
    line: int
    words: list[str]
    starts: list[int]
    stops: list[int]


def read_indexed_sentences(
    documents: Iterable[tuple[Document, Iterator[Line]]],
    segment: str,
    skip: int = 0,
    reading: ReadingProgress | None = None,
    word_list: WordList | None = None,
) -> Iterator[tuple[int, IndexedSentence]]:
    """Read the sentences of documents, each with the number of its unit of text: a line or paragraph, from 1.

    Args:
        documents: The documents with their lines, from `read_documents`.
        segment: How to split text.
        skip: How many units to skip.
        reading: Receives progress.
        word_list: Words that the segmentation must know.

    """
    units = (
        (document, unit)
        for document, lines in documents
        for unit in group_lines(lines if reading is None else reading.count_lines(lines), segment)
    )
    for number, (document, unit) in enumerate(islice(units, skip, None), start=skip + 1):
        end, line = 0, unit.number
        for words in segment_unit(unit.text, segment, word_list):
            if not words:
                continue
            starts, stops = _find_offsets(unit.text, words, end, word_list)
            first = starts[0]
            line += unit.text.count("\n", end, first)
            end = stops[-1]
            text = unit.text[first:end].replace("\n", " ")
            offsets = [start - first for start in starts], [stop - first for stop in stops]
            yield number, IndexedSentence(text, document, line, words, *offsets)
            line += unit.text.count("\n", first, end)


def _find_offsets(
    text: str, words: list[str], end: int, word_list: WordList | None
) -> tuple[list[int], list[int]]:
    """Where the words of a sentence start and stop in a text, from `end` on."""
    first = next(locate(text, words[:1], word_list, end))[0]
    if text.startswith("".join(words), first):  # nothing between the words, as in Chinese
        bounds = list(accumulate(map(len, words), initial=first))
        return bounds[:-1], bounds[1:]
    starts, stops = zip(*locate(text, words, word_list, first), strict=True)
    return list(starts), list(stops)


def batch_sentences(
    elmo: Elmo, sentences: Iterator[tuple[int, IndexedSentence]]
) -> Iterator[tuple[int, list[IndexedSentence]]]:
    """Group the sentences of whole units into batches to embed, each with the number of its last unit."""
    units = (list(unit) for _, unit in groupby(sentences, key=itemgetter(0)))
    size = CHUNK * elmo.batch_tokens
    for chunk in chunk_by_size(units, size, lambda unit: sum(len(sentence.words) for _, sentence in unit)):
        yield chunk[-1][0][0], [sentence for unit in chunk for _, sentence in unit]


def count_words(
    documents: Iterable[tuple[Document, Iterator[Line]]],
    segment: str,
    reading: ReadingProgress,
    word_list: WordList | None = None,
) -> Counter[str]:
    """Count the words of documents."""

    def read_words() -> Iterator[str]:
        for _, sentence in read_indexed_sentences(documents, segment, reading=reading, word_list=word_list):
            reading.add_tokens(len(sentence.words))
            yield from sentence.words

    return Counter(read_words())


class UsageWriter:
    """Writes the blocks of the last corpus of an index; after an error the unfinished block is deleted."""

    def __init__(self, elmo: Elmo, spec: OutputSpec, folder: Path, head: dict[str, Any]) -> None:
        self._elmo, self._spec, self._folder, self._head = elmo, spec, folder, head
        self._documents = list_documents(head)
        for leftover in folder.glob(".block-*"):  # of a process that was killed
            leftover.unlink()
        self._buffer: NDArray[Any] = np.empty((0, elmo.config.size), PRECISIONS[head["precision"]])
        self._block: UsageBlockWriter | None = None

    def __enter__(self) -> UsageWriter:
        return self

    def __exit__(self, _: object, problem: BaseException | None, __: object) -> None:
        if problem is not None and self._block is not None:
            self._block.discard(problem)

    def __len__(self) -> int:
        """How many usages the open block has."""
        return 0 if self._block is None else len(self._block)

    def add(self, sentences: list[IndexedSentence], is_kept: IsKept | None) -> None:
        """Embed sentences and write the usages of the words that are indexed."""
        tokens = [sentence.words for sentence in sentences]
        count = sum(map(len, tokens))
        if len(self._buffer) < count:
            self._buffer = np.empty((count + count // 8, self._buffer.shape[1]), self._buffer.dtype)
        rows = self._buffer[:count]
        with self._elmo.track_counts() as counts:
            self._elmo.embed_into(torch.from_numpy(rows), tokens, self._spec, counts)
        if is_kept is not None:
            rows = rows[[is_kept(word) for words in tokens for word in words]]
        if not _are_finite(rows):
            _raise_not_finite(self._elmo, sentences, self._spec)
        if self._block is None:
            path = get_block_path(self._folder, len(self._head["blocks"]))
            self._block = UsageBlockWriter(path, self._elmo.config.size, self._head["precision"])
        self._block.add_vectors(rows)
        for sentence in sentences if is_kept is None else _drop_words(sentences, is_kept):
            if not self._documents or self._documents[-1] != sentence.document:
                self._documents.append(sentence.document)
            document = len(self._documents) - 1
            self._block.add(
                sentence.text, document, sentence.line, sentence.words, sentence.starts, sentence.stops
            )

    def close(self, units: int) -> None:
        """Finish the open block and list it in index.json; `units` of the text have been read."""
        if self._block is None:
            return
        entry = {"usages": len(self._block), "corpus": len(self._head["corpora"]) - 1, "units": units}
        block, self._block = self._block, None
        block.close()
        self._head["blocks"].append(entry)
        note_documents(self._head, self._documents)
        write_head(self._folder, self._head)


def _drop_words(sentences: list[IndexedSentence], is_kept: IsKept) -> Iterator[IndexedSentence]:
    """The sentences with words that are indexed, without the other words."""
    for sentence in sentences:
        positions = [position for position, word in enumerate(sentence.words) if is_kept(word)]
        if positions:
            words = [sentence.words[position] for position in positions]
            starts = [sentence.starts[position] for position in positions]
            stops = [sentence.stops[position] for position in positions]
            yield sentence._replace(words=words, starts=starts, stops=stops)


def _are_finite(rows: Vectors) -> bool:
    """Whether all numbers are finite: others have all bits of their exponent set."""
    is_fp32 = rows.dtype == np.float32
    bits, exponent = (rows.view(np.int32), 0x7F80_0000) if is_fp32 else (rows.view(np.int16), 0x7C00)
    return not rows.size or int((bits & (exponent | (exponent - 1))).max()) < exponent


def _raise_not_finite(elmo: Elmo, sentences: list[IndexedSentence], spec: OutputSpec) -> None:
    """Name the sentence with a vector that cannot be stored."""
    vectors = elmo.embed_tokens([sentence.words for sentence in sentences], spec, Counts())
    for sentence, array in zip(sentences, vectors, strict=True):
        location, peak = f"{sentence.document.file}:{sentence.line}", float(np.abs(array).max(initial=0))
        if not math.isfinite(peak):
            raise DataError(f"{location}: a vector is not finite. Is the model broken?")
        if peak > MAX_FP16:
            raise DataError(
                f"{location}: a vector has values above {MAX_FP16:.0f}, the largest in fp16. Use "
                "`precision='fp32'`, with `force=True` or another `out`."
            )
