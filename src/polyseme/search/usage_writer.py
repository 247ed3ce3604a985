"""The text of a corpus to blocks: sentences with their places, their vectors, and files of both.

    text.segment.stream, embedder  ->  search.usage_writer  ->  search.usage_store  (driven by search.build)

Vectors go to the file of their block as they come; index.json lists a block when it is whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.output import OutputSpec
from polyseme.search.usage_store import PRECISIONS, UsageBlockWriter, Vectors, block_path, write_head
from polyseme.text.length_batches import chunk_by_size
from polyseme.text.reading import Line, ReadingProgress, read_lines
from polyseme.text.segment.stream import placed_units, sentences_of_unit

LARGEST = float(np.finfo(np.float16).max)
FP32 = "say --precision fp32, with --force or another --out."
Keeps = Callable[[str], bool]  # whether the usages of a word are kept


@dataclass(frozen=True)
class WordFilter:
    """Which words have their usages kept."""

    min_count: int = 1
    max_count: int | None = None
    stop: tuple[str, ...] = ()  # never these
    only: tuple[str, ...] = ()  # these alone, if any

    def chosen(self, counts: Counter[str] | None) -> Keeps | None:
        """Whether a word is kept, None if all are; `counts` of the corpus, where a count matters."""
        if not (self.stop or self.only or self.counting):
            return None
        stop, only = frozenset(self.stop), frozenset(self.only)
        most = self.max_count

        def keeps(word: str) -> bool:
            if word in stop or (only and word not in only):
                return False
            if counts is None:
                return True
            return counts[word] >= self.min_count and (most is None or counts[word] <= most)

        return keeps

    @property
    def counting(self) -> bool:
        """Whether the corpus must be counted first."""
        return self.min_count > 1 or self.max_count is not None


class NewUsage(NamedTuple):
    """A sentence of the corpus: its text, where it stands, its words and where each begins in it."""

    text: str
    document: str
    line: int
    words: list[str]
    starts: list[int]


def sentences_of(
    texts: Sequence[Path], how: str, skip: int = 0, reading: ReadingProgress | None = None
) -> Iterator[tuple[int, NewUsage]]:
    """The sentences of files, each with the number of text units that are through with it."""
    lines: Iterator[Line] = (line for text in texts for line in read_lines(text))
    if reading is not None:
        lines = reading.count_lines(lines)
    for number, unit in enumerate(islice(placed_units(lines, how), skip, None), start=skip + 1):
        end, line = 0, unit.number
        for words in sentences_of_unit(unit.text, how):
            if not words:
                continue
            first = unit.text.index(words[0], end)
            line += unit.text.count("\n", end, first)
            starts = _starts(unit.text, words, first)
            end = first + starts[-1] + len(words[-1])
            text = unit.text[first:end].replace("\n", " ")
            yield number, NewUsage(text, unit.source, line, words, starts)
            line += unit.text.count("\n", first, end)


def _starts(text: str, words: list[str], first: int) -> list[int]:
    """Where each of the words of a sentence begins, counted from where the first of them does."""
    whole = "".join(words)
    if text.startswith(whole, first):  # nothing between them, as in Chinese
        return list(accumulate(map(len, words[:-1]), initial=0))
    find, end, starts = text.index, first, []
    for word in words:
        start = find(word, end)
        starts.append(start - first)
        end = start + len(word)
    return starts


def batches(elmo: Elmo, sentences: Iterator[tuple[int, NewUsage]]) -> Iterator[tuple[int, list[NewUsage]]]:
    """Sentences of whole units with enough tokens to be embedded together, and how many units are through."""
    units = (list(unit) for _, unit in groupby(sentences, key=itemgetter(0)))
    size = CHUNK * elmo.batch_tokens
    for chunk in chunk_by_size(units, size, lambda unit: sum(len(usage.words) for _, usage in unit)):
        yield chunk[-1][0][0], [usage for unit in chunk for _, usage in unit]


class UsageWriter:
    """The blocks of the last corpus of an index, being filled; at a fault the one that was begun goes."""

    def __init__(self, elmo: Elmo, spec: OutputSpec, folder: Path, head: dict[str, Any]) -> None:
        self._elmo, self._spec, self._folder, self._head = elmo, spec, folder, head
        self._documents: list[str] = list(head["documents"])
        for left in folder.glob(".block-*"):  # by a process that was killed
            left.unlink()
        self._room: NDArray[Any] = np.empty((0, elmo.config.size), PRECISIONS[head["precision"]])
        self._block: UsageBlockWriter | None = None

    def __enter__(self) -> UsageWriter:
        return self

    def __exit__(self, _: object, problem: BaseException | None, __: object) -> None:
        if problem is not None and self._block is not None:
            self._block.give_up(problem)

    def __len__(self) -> int:
        return 0 if self._block is None else len(self._block)

    def add(self, usages: list[NewUsage], keeps: Keeps | None) -> None:
        """Embed sentences and keep them, with the vectors of the words that are kept."""
        tokens = [usage.words for usage in usages]
        count = sum(map(len, tokens))
        if len(self._room) < count:
            self._room = np.empty((count + count // 8, self._room.shape[1]), self._room.dtype)
        rows = self._room[:count]
        with self._elmo.track_counts() as counted:
            self._elmo.embed_into(torch.from_numpy(rows), tokens, self._spec, counted)
        if keeps is not None:
            rows = rows[[keeps(word) for words in tokens for word in words]]
        if not _finite(rows):
            _refuse(self._elmo, usages, self._spec)
        if self._block is None:
            path = block_path(self._folder, len(self._head["blocks"]))
            self._block = UsageBlockWriter(path, self._elmo.config.size, self._head["precision"])
        self._block.add_vectors(rows)
        for usage in usages if keeps is None else _kept(usages, keeps):
            if not self._documents or self._documents[-1] != usage.document:
                self._documents.append(usage.document)
            place = len(self._documents) - 1
            self._block.add(usage.text, place, usage.line, usage.words, usage.starts)

    def close(self, units: int) -> None:
        """The block is full, and `units` pieces of text are through: index.json lists it once it is whole."""
        if self._block is None:
            return
        entry = {"usages": len(self._block), "corpus": len(self._head["corpora"]) - 1, "units": units}
        block, self._block = self._block, None
        block.close()
        self._head["blocks"].append(entry)
        self._head["documents"] = list(self._documents)
        write_head(self._folder, self._head)


def _kept(usages: list[NewUsage], keeps: Keeps) -> Iterator[NewUsage]:
    """The sentences in which words are kept, with these words alone."""
    for usage in usages:
        places = [place for place, word in enumerate(usage.words) if keeps(word)]
        if places:
            words = [usage.words[place] for place in places]
            yield usage._replace(words=words, starts=[usage.starts[place] for place in places])


def _finite(rows: Vectors) -> bool:
    """Whether all numbers are finite: the exponent of others has all bits set."""
    wide = rows.dtype == np.float32
    bits, most = (rows.view(np.int32), 0x7F80_0000) if wide else (rows.view(np.int16), 0x7C00)
    return not rows.size or int((bits & (most | (most - 1))).max()) < most


def _refuse(elmo: Elmo, usages: list[NewUsage], spec: OutputSpec) -> None:
    """Say which sentence has a vector that cannot be kept."""
    vectors = elmo.embed_tokens([usage.words for usage in usages], spec, Counts())
    for usage, array in zip(usages, vectors, strict=True):
        place, peak = f"{usage.document}:{usage.line}", float(np.abs(array).max(initial=0))
        if not math.isfinite(peak):
            raise DataError(f"{place}: a vector is not finite. Is the model broken?")
        if peak > LARGEST:
            raise DataError(
                f"{place}: a vector has values beyond {LARGEST:.0f}, the most that fp16 holds: {FP32}"
            )


def count_words(files: Sequence[Path], how: str, on_progress: OnProgress = ignore_progress) -> Counter[str]:
    """How often each word stands in the files."""
    reading = ReadingProgress(on_progress, *files, stage="counting")

    def read_words() -> Iterator[str]:
        for _, usage in sentences_of(files, how, reading=reading):
            reading.add_tokens(len(usage.words))
            yield from usage.words

    return Counter(read_words())
