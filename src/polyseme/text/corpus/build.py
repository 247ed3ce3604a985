"""The steps from documents to the files of a prepared corpus.

    text.corpus.documents -> text.corpus.workers -> text.corpus.counts -> text.corpus.split
        -> text.corpus.renumber  =  text.corpus.build

Input: files and settings. Output, in a folder:

    train.ids, valid.ids   uint32 types; every sentence is begin w … w end
    types.txt              one type per line; the first V are the vocabulary
    counts.npy             (V,) int64, how often each is predicted in train
    chars.npy              (types, C) uint16 or uint32, and characters.json for an alphabet of code points
    documents.jsonl        file, title and words of each document that is a file, a chapter or below a heading

The text is read once, into a stream of words numbered by first occurrence; the vocabulary is counted on what
is not held out; then the stream is renumbered by rank. Temporary files are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import TooLittleTextError
from polyseme.io.memory_map import map_ids, release
from polyseme.io.progress import OnProgress, ProgressEvent
from polyseme.text.chars import Alphabet, ByteAlphabet, CodepointAlphabet
from polyseme.text.corpus import split
from polyseme.text.corpus.counts import TypeRanks, WordCounter, read_types
from polyseme.text.corpus.documents import Piece, read_pieces
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
from polyseme.text.corpus.workers import CHUNK_CHARACTERS, FIRST_WORD, Chunk, segment_pieces

IntArray = NDArray[np.int64]
DOCUMENTS_FILE = "documents.jsonl"


@dataclass(frozen=True)
class CorpusReport:
    """Counts of a prepared corpus; tokens are words, without the begin and end marks of sentences."""

    documents: int  # in train, including those held out in part
    valid_documents: int  # held out completely
    sentences: int
    valid_sentences: int
    tokens: int
    valid_tokens: int
    types: int  # distinct words, including <S>, </S> and <UNK>
    words: int  # V: the vocabulary, including <S>, </S> and <UNK>
    characters: int  # rows of the character embedding, 0 without one
    unknown: float  # share of the train tokens that are not in the vocabulary
    valid_unknown: float
    cut_tokens: int  # train tokens truncated to max_chars
    repeated_sentences: int  # exact repeats of an earlier sentence
    repeated_documents: int
    repeats_estimated: bool  # whether the two numbers above are estimates
    pruned_types: int  # rare words that were dropped while counting
    count_error: int  # maximum count of a pruned word; counts in the vocabulary are exact
    held_out: str  # how the held-out text was chosen


class Sources(NamedTuple):
    """The files to train on, the files to validate on, and their size in bytes if it is known."""

    files: Sequence[Path]
    valid: Sequence[Path]
    size: int | None


class InitialTypes(NamedTuple):
    """The types with the first numbers: three special words, or a whole vocabulary."""

    words: tuple[str, ...]
    specials: tuple[int, int, int]  # positions of begin, end, unknown
    fixed: bool  # whether no word is added to the vocabulary


@dataclass
class _RawStream:
    """A stream of words numbered by first occurrence, and its documents."""

    stream: Path
    document_starts: IntArray  # positions in the stream
    words_before: IntArray  # words before each document
    numbers: IntArray  # of documents; those without words are missing
    words: int


class _DocumentReader:
    """Reads files into raw streams, and reports progress."""

    def __init__(
        self,
        sources: Sources,
        folder: Path,
        spec: CorpusSpec,
        initial: InitialTypes,
        workers: int,
        on_progress: OnProgress,
        chunk_characters: int,
    ) -> None:
        self.counter = WordCounter(folder, initial.words, initial.specials, spec.max_types)
        self._folder, self._spec = folder, spec
        self._workers, self._chunk_characters = workers, chunk_characters
        self._specials = np.array(initial.specials, np.uint32)
        self._size, self._on_progress = sources.size, on_progress
        self._bytes = self._tokens = 0
        self.documents: dict[int, tuple[str, str]] = {}  # number -> file and title; of the last `read`

    def read(self, files: Sequence[Path], name: str, counted: bool) -> _RawStream:
        """Segment files into `name`.raw; words are numbered and, if `counted`, counted."""
        spec, settings = self._spec, self._spec.settings
        pieces = self._note_documents(
            read_pieces(files, settings.documents, spec.segment, settings.field, encoding=settings.encoding)
        )
        paths = [self._folder / f"{name}.{ending}" for ending in ("raw", "starts", "before", "numbers")]
        length = words = 0
        last = -1
        with ExitStack() as stack:
            stream, *tables = [stack.enter_context(path.open("wb")) for path in paths]
            chunks = segment_pieces(
                pieces, spec.segment, self._workers, self._chunk_characters, spec.word_list
            )
            for chunk in chunks:
                last = _write_documents(chunk, last, length, words, tables)
                table = self._number_words(chunk, counted)
                stream.write(table[chunk.ids].tobytes())
                length += len(chunk.ids)
                chunk_words = int((chunk.ids >= FIRST_WORD).sum())
                words += chunk_words
                self._bytes, self._tokens = self._bytes + chunk.size, self._tokens + chunk_words
                detail = f"{self._tokens:,} tokens"
                # Other encodings have fewer bytes than the UTF-8 that is counted.
                done = self._bytes if self._size is None else min(self._bytes, self._size)
                self._on_progress(ProgressEvent("reading", done, self._size, detail))
        if not words:
            more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
            raise TooLittleTextError(f"{files[0]}{more}: contains no words. A corpus needs text.")
        starts, before, numbers = (map_ids(path, np.int64) for path in paths[1:])
        return _RawStream(paths[0], starts, before, numbers, words)

    def _note_documents(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the same pieces, and note the files and titles of their documents."""
        self.documents = {}
        for piece in pieces:
            if piece.file:
                self.documents.setdefault(piece.document, (piece.file, piece.title))
            yield piece

    def _number_words(self, chunk: Chunk, counted: bool) -> NDArray[np.uint32]:
        """Map the numbers of a chunk to numbers by first occurrence."""
        counts = np.bincount(chunk.ids, minlength=FIRST_WORD + len(chunk.words))[FIRST_WORD:]
        numbers = self.counter.add(chunk.words, counts if counted else np.zeros_like(counts))
        return np.concatenate((self._specials, numbers))


def _write_documents(chunk: Chunk, last: int, length: int, words: int, files: Sequence[IO[bytes]]) -> int:
    """Write where documents with words start, and their numbers; return the number of the last one."""
    numbers, starts = chunk.documents
    filled = np.diff(starts, append=len(chunk.ids)) > 0
    numbers, starts = numbers[filled], starts[filled]
    is_new = np.diff(numbers, prepend=last) != 0
    new = starts[is_new]
    before = np.concatenate(([0], np.cumsum(chunk.ids >= FIRST_WORD)))  # words before each position
    files[0].write((length + new).astype(np.int64).tobytes())
    files[1].write((words + before[new]).astype(np.int64).tobytes())
    files[2].write(numbers[is_new].astype(np.int64).tobytes())
    return int(numbers[-1]) if len(numbers) else last


def build_corpus(
    sources: Sources,
    folder: Path,
    spec: CorpusSpec,
    initial: InitialTypes,
    alphabet: Alphabet | None,
    workers: int,
    on_progress: OnProgress,
    chunk_characters: int = CHUNK_CHARACTERS,
) -> tuple[CorpusReport, Alphabet | None]:
    """Write the files of a corpus to `folder`; return the counts and the alphabet."""
    settings = spec.settings
    reader = _DocumentReader(sources, folder, spec, initial, workers, on_progress, chunk_characters)
    raw = reader.read(sources.files, "corpus", counted=True)
    _write_titles(folder / DOCUMENTS_FILE, reader.documents, raw)
    held_out = reader.read(sources.valid, "apart", counted=False) if sources.valid else None
    counter = reader.counter
    counter.close()
    plan = (
        _choose_held_out(raw, settings, spec.seed)
        if held_out is None
        else split.hold_out_nothing("the given files")
    )
    for block in read_sentence_blocks(raw.stream, initial.specials[0]) if held_out is None else ():
        counter.subtract(block.ids[mark_held_out(block, plan)])
    alphabet = alphabet or _make_alphabet(counter, spec)
    ranking = counter.rank(settings.min_count, 0 if initial.fixed else settings.max_words)
    if not initial.fixed:
        _check_words(ranking, len(counter), sources.files[0], settings)
    truncated = _write_chars(folder, alphabet, ranking.types, initial.specials) if alphabet else None
    numbering = Numbering(ranking.numbers, initial.specials, ranking.words, truncated)
    train, valid, repeated = _write_streams(folder, raw, held_out, plan, numbering)
    _check_parts(train, valid, sources, settings)
    ranking.counts[list(initial.specials)] = (train.sentences, train.sentences, train.unknown)
    np.save(folder / "counts.npy", ranking.counts)
    report = CorpusReport(
        documents=len(raw.document_starts) - plan.documents,
        valid_documents=plan.documents if held_out is None else len(held_out.document_starts),
        sentences=train.sentences,
        valid_sentences=valid.sentences,
        tokens=train.tokens,
        valid_tokens=valid.tokens,
        types=ranking.types,
        words=ranking.words,
        characters=alphabet.size if alphabet else 0,
        unknown=train.unknown / train.tokens,
        valid_unknown=valid.unknown / max(valid.tokens, 1),
        cut_tokens=train.truncated,
        repeated_sentences=repeated.sentences.count(),
        repeated_documents=repeated.documents.count(),
        repeats_estimated=repeated.sentences.estimated or repeated.documents.estimated,
        pruned_types=counter.pruned_types,
        count_error=counter.count_error,
        held_out=plan.method,
    )
    return report, alphabet


def _write_titles(path: Path, documents: Mapping[int, tuple[str, str]], raw: _RawStream) -> None:
    """Write file, title and words of the documents that have them, in the order of the text."""
    words = np.diff(raw.words_before, append=raw.words)
    with path.open("w", encoding="utf-8") as table:
        for number, count in zip(raw.numbers.tolist(), words.tolist(), strict=True):
            if number in documents:
                file, title = documents[number]
                record = {"file": Path(file).name, "title": title, "words": count}
                table.write(json.dumps(record, ensure_ascii=False) + "\n")


def _choose_held_out(raw: _RawStream, settings: CorpusSettings, seed: int) -> HeldOut:
    if settings.valid_every is not None:
        return split.hold_out_every_nth(settings.valid_every)
    if settings.valid_share == 0:
        return split.hold_out_nothing()
    wanted = split.count_held_out_words(raw.words, settings.valid_share, settings.valid_tokens)
    stream = map_ids(raw.stream, np.uint32)
    plan = split.hold_out_documents(stream, raw.document_starts, raw.words_before, raw.words, wanted, seed)
    release(raw.document_starts, raw.words_before)
    return plan


def _write_streams(
    folder: Path, raw: _RawStream, held_out: _RawStream | None, plan: HeldOut, numbering: Numbering
) -> tuple[StreamCounts, StreamCounts, CorpusRepeats]:
    repeated = CorpusRepeats()
    with (folder / "train.ids").open("wb") as train, (folder / "valid.ids").open("wb") as valid:
        files = (train, valid)
        trained, held = renumber(raw.stream, numbering, plan, files, raw.document_starts, repeated)
        if held_out is not None:
            _, held = renumber(
                held_out.stream,
                numbering,
                split.hold_out_everything(),
                files,
                held_out.document_starts,
                CorpusRepeats(),
            )
    return trained, held, repeated


def _make_alphabet(counter: WordCounter, spec: CorpusSpec) -> Alphabet | None:
    if spec.encoding is None:
        return None
    if spec.encoding == "bytes":
        return ByteAlphabet(spec.max_chars)
    # A character rarer than a word of the vocabulary gets no row: it trains the row of unknown characters.
    return CodepointAlphabet.from_counts(counter.characters(), spec.max_chars, spec.settings.min_count)


def _write_chars(
    folder: Path, alphabet: Alphabet, types: int, specials: tuple[int, int, int]
) -> NDArray[np.bool_]:
    """Write the character ids of all types; return which types are truncated."""
    kind = np.dtype(np.uint16 if alphabet.size <= 1 << 16 else np.uint32)
    boundaries = alphabet.boundaries()
    start = 0
    with (folder / "chars.npy").open("wb") as file, (folder / "truncated").open("wb") as marks:
        header = {"descr": kind.str, "fortran_order": False, "shape": (types, alphabet.max_chars)}
        np.lib.format.write_array_header_1_0(file, header)
        for words in read_types(folder):
            rows = alphabet.encode(words)  # (n, C)
            truncated = np.array([alphabet.count_truncated([word]) for word in words], bool)
            for position, row in zip(specials[:2], boundaries, strict=True):
                if start <= position < start + len(words):
                    rows[position - start], truncated[position - start] = row, False
            file.write(rows.astype(kind).tobytes())
            marks.write(truncated.tobytes())
            start += len(words)
    if isinstance(alphabet, CodepointAlphabet):
        characters = json.dumps(alphabet.characters, ensure_ascii=False)
        (folder / "characters.json").write_text(characters, encoding="utf-8")
    return map_ids(folder / "truncated", np.bool_)  # type: ignore[no-any-return]


def _check_words(ranking: TypeRanks, words: int, file: Path, settings: CorpusSettings) -> None:
    frequent = ranking.words - 3
    if words < 2:
        raise TooLittleTextError(
            f"{file}: the corpus has only one distinct word, so there is nothing to learn."
        )
    if frequent < 2:
        raise TooLittleTextError(
            f"{file}: {frequent} of {words:,} words occur {settings.min_count} times or more in the "
            "training text. Use more text, or lower corpus.min_count."
        )


def _check_parts(
    train: StreamCounts, valid: StreamCounts, sources: Sources, settings: CorpusSettings
) -> None:
    wanted = settings.valid_share > 0 or settings.valid_every is not None
    if not train.sentences or (wanted and not sources.valid and not valid.sentences):
        part = "no text is left to train on" if not train.sentences else "no text is held out"
        raise TooLittleTextError(
            f"{sources.files[0]}: {part}: the corpus has {train.sentences + valid.sentences} sentences. "
            "Use more text, or name held-out text with `valid`."
        )
