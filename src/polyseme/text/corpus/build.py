"""The steps from documents to the files of a prepared corpus.

    text.corpus.documents -> text.corpus.workers -> text.corpus.counts -> text.corpus.split
        -> text.corpus.renumber  =  text.corpus.build

Comes in: files and settings. Goes out, in a folder:

    train.ids, valid.ids   uint32 types; every sentence is begin w … w end
    types.txt              one type a line; the first V are the vocabulary
    counts.npy             (V,) int64, how often each is to be predicted in train
    chars.npy              (types, C) uint16 or uint32, and characters.json for an alphabet of code points

The text is read once, into a stream numbered in the order of sight; the vocabulary is counted on what is
not held out; then the stream is renumbered by rank. What is only needed on the way is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import DataError
from polyseme.io.memory_map import map_ids, release
from polyseme.io.progress import OnProgress, ProgressEvent
from polyseme.text.chars import Alphabet, ByteAlphabet, CodepointAlphabet
from polyseme.text.corpus import split
from polyseme.text.corpus.counts import TypeRanks, WordCounter, read_types
from polyseme.text.corpus.documents import read_pieces
from polyseme.text.corpus.renumber import (
    CorpusRepeats,
    Numbering,
    StreamCounts,
    mark_held_out,
    read_sentence_blocks,
    renumber,
)
from polyseme.text.corpus.settings import CorpusSettings, CorpusSpec
from polyseme.text.corpus.split import HeldOut
from polyseme.text.corpus.workers import FIRST_WORD, Chunk, segment_pieces

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class CorpusReport:
    """What the program counted; tokens are words, without the boundaries of sentences."""

    documents: int  # in train; a document that is held out in part counts here
    valid_documents: int  # held out whole
    sentences: int
    valid_sentences: int
    tokens: int
    valid_tokens: int
    types: int  # with the three specials
    words: int  # V, with the three specials
    characters: int  # rows of the character embedding, 0 without one
    unknown: float  # share of the train tokens that are outside the vocabulary
    valid_unknown: float
    cut_tokens: int  # train tokens too long for max_chars
    repeated_sentences: int  # that stood in the inputs before, word for word
    repeated_documents: int
    repeats_estimated: bool
    pruned_types: int
    count_error: int  # a word that was pruned occurred at most so often; counts in the vocabulary are exact
    held_out: str  # how the held-out part was chosen


class Sources(NamedTuple):
    """What is read: files to train on, files to validate on, and their size if it is known."""

    files: Sequence[Path]
    valid: Sequence[Path]
    size: int | None


class InitialTypes(NamedTuple):
    """The start of the numbering: three specials, or a whole vocabulary."""

    words: tuple[str, ...]
    specials: tuple[int, int, int]  # places of begin, end, unknown
    fixed: bool  # no other word joins the vocabulary


@dataclass
class _Raw:
    """A stream in the order of sight, and where its documents start."""

    stream: Path
    places: IntArray
    before: IntArray  # words before each document
    words: int


class _DocumentReader:
    """Reads files into raw streams, and reports progress."""

    def __init__(
        self,
        sources: Sources,
        folder: Path,
        spec: CorpusSpec,
        given: InitialTypes,
        workers: int,
        on_progress: OnProgress,
    ) -> None:
        self.tally = WordCounter(folder, given.words, given.specials, spec.max_types)
        self._folder, self._spec, self._workers = folder, spec, workers
        self._specials = np.array(given.specials, np.uint32)
        self._size, self._on_progress = sources.size, on_progress
        self._bytes = self._tokens = 0

    def read(self, files: Sequence[Path], name: str, counted: bool) -> _Raw:
        """Segment files into `name`.raw; words are numbered, and counted if so told."""
        spec, settings = self._spec, self._spec.settings
        pieces = read_pieces(files, settings.documents, spec.segment, settings.field)
        paths = [self._folder / f"{name}.{ending}" for ending in ("raw", "places", "before")]
        length = words = 0
        last = -1
        with paths[0].open("wb") as stream, paths[1].open("wb") as places, paths[2].open("wb") as before:
            for chunk in segment_pieces(pieces, spec.segment, self._workers):
                last = _write_documents(chunk, last, length, words, (places, before))
                table = self._numbers(chunk, counted)
                stream.write(table[chunk.ids].tobytes())
                length += len(chunk.ids)
                found = int((chunk.ids >= FIRST_WORD).sum())
                words += found
                self._bytes, self._tokens = self._bytes + chunk.size, self._tokens + found
                detail = f"{self._tokens:,} tokens"
                self._on_progress(ProgressEvent("reading", self._bytes, self._size, detail))
        if not words:
            more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
            raise DataError(f"{files[0]}{more}: not a single word. A corpus needs text.")
        return _Raw(paths[0], map_ids(paths[1], np.int64), map_ids(paths[2], np.int64), words)

    def _numbers(self, chunk: Chunk, counted: bool) -> NDArray[np.uint32]:
        """From the chunk's numbering to that of the order of sight."""
        counts = np.bincount(chunk.ids, minlength=FIRST_WORD + len(chunk.words))[FIRST_WORD:]
        numbers = self.tally.add(chunk.words, counts if counted else np.zeros_like(counts))
        return np.concatenate((self._specials, numbers))


def _write_documents(
    chunk: Chunk, last: int, length: int, words: int, files: tuple[IO[bytes], IO[bytes]]
) -> int:
    """Note where documents with words start; return the number of the last one."""
    numbers, places = chunk.documents
    filled = np.diff(places, append=len(chunk.ids)) > 0
    numbers, places = numbers[filled], places[filled]
    new = places[np.diff(numbers, prepend=last) != 0]
    before = np.concatenate(([0], np.cumsum(chunk.ids >= FIRST_WORD)))  # words, at each place
    files[0].write((length + new).astype(np.int64).tobytes())
    files[1].write((words + before[new]).astype(np.int64).tobytes())
    return int(numbers[-1]) if len(numbers) else last


def prepare(
    sources: Sources,
    folder: Path,
    spec: CorpusSpec,
    given: InitialTypes,
    alphabet: Alphabet | None,
    workers: int,
    on_progress: OnProgress,
) -> tuple[CorpusReport, Alphabet | None]:
    """Write the files of the corpus into `folder`; say what was counted."""
    settings = spec.settings
    reader = _DocumentReader(sources, folder, spec, given, workers, on_progress)
    raw = reader.read(sources.files, "corpus", counted=True)
    apart = reader.read(sources.valid, "apart", counted=False) if sources.valid else None
    tally = reader.tally
    tally.close()
    plan = _plan(raw, settings, spec.seed) if apart is None else split.hold_out_nothing("the given files")
    for block in read_sentence_blocks(raw.stream, given.specials[0]) if apart is None else ():
        tally.subtract(block.ids[mark_held_out(block, plan)])
    alphabet = alphabet or _alphabet(tally, spec)
    ranking = tally.rank(settings.min_count, 0 if given.fixed else settings.max_words)
    if not given.fixed:
        _check_words(ranking, len(tally), sources.files[0], settings)
    cut = _write_chars(folder, alphabet, ranking.types, given.specials) if alphabet else None
    numbering = Numbering(ranking.numbers, given.specials, ranking.words, cut)
    train, valid, repeated = _write_streams(folder, raw, apart, plan, numbering)
    _check_parts(train, valid, sources, settings)
    ranking.counts[list(given.specials)] = (train.sentences, train.sentences, train.unknown)
    np.save(folder / "counts.npy", ranking.counts)
    report = CorpusReport(
        documents=len(raw.places) - plan.documents,
        valid_documents=plan.documents if apart is None else len(apart.places),
        sentences=train.sentences,
        valid_sentences=valid.sentences,
        tokens=train.tokens,
        valid_tokens=valid.tokens,
        types=ranking.types,
        words=ranking.words,
        characters=alphabet.size if alphabet else 0,
        unknown=train.unknown / train.tokens,
        valid_unknown=valid.unknown / max(valid.tokens, 1),
        cut_tokens=train.cut,
        repeated_sentences=repeated.sentences.count(),
        repeated_documents=repeated.documents.count(),
        repeats_estimated=repeated.sentences.estimated or repeated.documents.estimated,
        pruned_types=tally.pruned_types,
        count_error=tally.count_error,
        held_out=plan.how,
    )
    return report, alphabet


def _plan(raw: _Raw, settings: CorpusSettings, seed: int) -> HeldOut:
    if settings.valid_every is not None:
        return split.hold_out_every_nth(settings.valid_every)
    if settings.valid_share == 0:
        return split.hold_out_nothing()
    wanted = split.count_held_out_words(raw.words, settings.valid_share, settings.valid_tokens)
    stream = map_ids(raw.stream, np.uint32)
    plan = split.hold_out_documents(stream, raw.places, raw.before, raw.words, wanted, seed)
    release(raw.places, raw.before)
    return plan


def _write_streams(
    folder: Path, raw: _Raw, apart: _Raw | None, plan: HeldOut, numbering: Numbering
) -> tuple[StreamCounts, StreamCounts, CorpusRepeats]:
    repeated = CorpusRepeats()
    with (folder / "train.ids").open("wb") as train, (folder / "valid.ids").open("wb") as valid:
        files = (train, valid)
        trained, held = renumber(raw.stream, numbering, plan, files, raw.places, repeated)
        if apart is not None:
            _, held = renumber(
                apart.stream, numbering, split.hold_out_everything(), files, apart.places, CorpusRepeats()
            )
    return trained, held, repeated


def _alphabet(tally: WordCounter, spec: CorpusSpec) -> Alphabet | None:
    if spec.encoding is None:
        return None
    if spec.encoding == "bytes":
        return ByteAlphabet(spec.max_chars)
    # A character too rare for a word is too rare for a row: it helps to train the one for unknown ones.
    return CodepointAlphabet.from_counts(tally.characters(), spec.max_chars, spec.settings.min_count)


def _write_chars(
    folder: Path, alphabet: Alphabet, types: int, specials: tuple[int, int, int]
) -> NDArray[np.bool_]:
    """Write the characters of all types; return which types are too long for a row."""
    kind = np.dtype(np.uint16 if alphabet.size <= 1 << 16 else np.uint32)
    boundaries = alphabet.boundaries()
    start = 0
    with (folder / "chars.npy").open("wb") as file, (folder / "cut").open("wb") as cuts:
        header = {"descr": kind.str, "fortran_order": False, "shape": (types, alphabet.max_chars)}
        np.lib.format.write_array_header_1_0(file, header)
        for words in read_types(folder):
            rows = alphabet.encode(words)  # (n, C)
            cut = np.array([alphabet.count_truncated([word]) for word in words], bool)
            for place, row in zip(specials[:2], boundaries, strict=True):
                if start <= place < start + len(words):
                    rows[place - start], cut[place - start] = row, False
            file.write(rows.astype(kind).tobytes())
            cuts.write(cut.tobytes())
            start += len(words)
    if isinstance(alphabet, CodepointAlphabet):
        characters = json.dumps(alphabet.characters, ensure_ascii=False)
        (folder / "characters.json").write_text(characters, encoding="utf-8")
    return map_ids(folder / "cut", np.bool_)  # type: ignore[no-any-return]


def _check_words(ranking: TypeRanks, words: int, file: Path, settings: CorpusSettings) -> None:
    kept = ranking.words - 3
    if words < 2:
        raise DataError(f"{file}: the whole corpus is one word again and again. There is nothing to learn.")
    if kept < 2:
        raise DataError(
            f"{file}: {kept} of {words:,} words occur {settings.min_count} times or more in the part that is "
            "trained on. Give more text, or lower min_count."
        )


def _check_parts(
    train: StreamCounts, valid: StreamCounts, sources: Sources, settings: CorpusSettings
) -> None:
    wanted = settings.valid_share > 0 or settings.valid_every is not None
    if not train.sentences or (wanted and not sources.valid and not valid.sentences):
        part = "nothing is left to train on" if not train.sentences else "the held-out part is empty"
        raise DataError(
            f"{sources.files[0]}: {part}: the corpus has {train.sentences + valid.sentences} sentences. "
            "Give more text, or a file to validate on."
        )
