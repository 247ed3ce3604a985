"""Prepare text of any size as a corpus on disk, and open it with memory-mapped arrays.

    text.corpus.build, text.fingerprint  ->  text.corpus.prepared  ->  training

Input: files, folders, globs. Output: `Corpus`. Types are numbered: 0 `<S>`, 1 `</S>`, 2 `<UNK>`, then words
by falling frequency. The first V are the vocabulary; other types have numbers, too, so that a character model
can read them, while the softmax predicts `<UNK>` for them (`Corpus.targets`).

A corpus is written under a temporary name and renamed when it is complete. A second run with equal content
and settings opens it: the fingerprint covers the content of the files, their kinds and order, and the
settings, not names and times.

What must not change: FORMAT goes up whenever segmentation or numbering changes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import DataError, FormatError, PolysemeError, UsageError
from polyseme.io.atomic import new_folder
from polyseme.io.checked import check_array, read_json, read_npy, refuse_damaged
from polyseme.io.memory_map import map_ids, release
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.json_text import parse_json
from polyseme.text.chars import Alphabet, ByteAlphabet, CodepointAlphabet
from polyseme.text.corpus.build import DOCUMENTS_FILE, CorpusReport, InitialTypes, Sources, build_corpus
from polyseme.text.corpus.counts import read_types
from polyseme.text.corpus.documents import detect_kind, expand_inputs
from polyseme.text.corpus.new_words import (
    NEW_WORDS,
    WORD_LIST,
    find_new_words,
    read_new_words,
    write_word_list,
)
from polyseme.text.corpus.settings import CorpusSettings, CorpusSpec
from polyseme.text.corpus.workers import CHUNK_CHARACTERS, choose_worker_count
from polyseme.text.fingerprint import Stamp, check_unchanged, digest, stamp
from polyseme.text.reading import detect_text_format
from polyseme.text.segment import WordList
from polyseme.text.segment.discovery import NewWord
from polyseme.text.vocab import Vocab

__all__ = [
    "Corpus",
    "CorpusReport",
    "CorpusSettings",
    "CorpusSpec",
    "find_sentence_starts",
    "open_corpus",
    "prepare_corpus",
    "read_types",
]

FORMAT = 3
AGAIN = "Prepare it again from the text."
_CHECKED_NUMBERS = 1 << 20  # of a stream or a table, at a time
logger = logging.getLogger(__name__)
Ids = NDArray[np.uint32]

_META = "meta.json"
_RESULTS = (
    "train.ids",
    "valid.ids",
    "types.txt",
    "counts.npy",
    "chars.npy",
    "characters.json",
    DOCUMENTS_FILE,
    WORD_LIST,
    NEW_WORDS,
)
_DEFAULTS = CorpusSpec()
_SPECIALS = ("<S>", "</S>", "<UNK>")


class CorpusDocument(NamedTuple):
    """A document of a prepared corpus that is a file or has a title."""

    file: str  # without its folder
    title: str  # a heading, or a chapter of an EPUB book; "" if the document is a file
    words: int


@dataclass(frozen=True)
class Corpus:
    """An open prepared corpus."""

    folder: Path
    vocab: Vocab  # vocab.words[type] for types below V; Vocab.id is type + 1
    counts: NDArray[np.int64]  # (V,) how often each is predicted in train, including marks and <UNK>
    n_types: int
    train: Ids  # every sentence is begin w … w end
    valid: Ids
    chars: NDArray[np.uint16] | NDArray[np.uint32] | None  # (n_types, C)
    alphabet: Alphabet | None
    report: CorpusReport
    fingerprint: str
    word_list: WordList | None = None  # what the segmentation knew in addition to its dictionary
    new_words: tuple[NewWord, ...] = ()  # of these, what was found in the text

    @property
    def begin(self) -> int:
        """The type that begins a sentence: 0, unless the vocabulary was given and differs."""
        return self.vocab.id(self.vocab.begin) - 1

    @property
    def end(self) -> int:
        """The type that ends a sentence: 1, unless the vocabulary was given and differs."""
        return self.vocab.id(self.vocab.end) - 1

    @property
    def unknown(self) -> int:
        """The type of the unknown word: 2, unless the vocabulary was given and differs."""
        return self.vocab.id(self.vocab.unknown) - 1

    def documents(self) -> list[CorpusDocument]:
        """The files, chapters and parts below headings of the corpus, in the order of the text.

        Empty for other kinds of documents, and for a corpus of an older version.
        """
        path = self.folder / DOCUMENTS_FILE
        if not path.exists():
            return []
        with refuse_damaged(path, "the documents of a corpus", AGAIN):
            lines = path.read_text(encoding="utf-8").splitlines()
            return [_check_document(CorpusDocument(**parse_json(line))) for line in lines]

    def targets(self, types: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """What the softmax predicts for types: the type itself below V, else the unknown word."""
        return np.where(types < len(self.vocab), types, self.unknown).astype(np.int64)


def prepare_corpus(
    inputs: Sequence[str | Path],
    folder: str | Path,
    spec: CorpusSpec = _DEFAULTS,
    *,
    valid: Sequence[str | Path] = (),
    vocab: Vocab | None = None,
    alphabet: Alphabet | None = None,
    workers: int | None = None,
    on_progress: OnProgress = ignore_progress,
    chunk_characters: int = CHUNK_CHARACTERS,
) -> Corpus:
    """Prepare text as a corpus in `folder`, or open it if an equal run has prepared it.

    Args:
        inputs: Files, folders and globs.
        folder: Where the corpus is written.
        spec: What decides its content.
        valid: Held-out text; by default a part of `inputs` is held out, see `CorpusSettings`.
        vocab: A vocabulary to use as it is; other words get types beyond it.
        alphabet: An alphabet to use instead of one by `spec.encoding`.
        workers: Processes that segment; None chooses by the machine and the size of the text.
        on_progress: Receives progress events.
        chunk_characters: Characters that a worker segments at once.

    Returns:
        The open corpus.

    Raises:
        UsageError: There are no such files, or `folder` contains something else.
        DataError: A file cannot be read, or the text is too small.

    """
    folder = Path(folder)
    files = expand_inputs(inputs)
    held = expand_inputs(valid) if valid else []
    both = {file.resolve() for file in files} & {file.resolve() for file in held}
    if both:
        raise UsageError(f"{min(both)}: both training text and held-out text. Name it once.")
    old = _read_meta(folder)
    stamps = stamp([*files, *held], _read_stamps(old) if old else ())
    fingerprint = _compute_fingerprint(files, held, stamps, spec, vocab, alphabet)
    if old and old["fingerprint"] == fingerprint and _is_complete(folder, old):
        try:
            return open_corpus(folder)
        except PolysemeError as problem:
            logger.warning("%s The text is prepared again.", problem)
    size = sum(file.size for file in stamps)
    packed = any(file.suffix in (".gz", ".zst") or detect_text_format(file) for file in (*files, *held))
    sources = Sources(files, held, None if packed else size)
    _check_folder(folder)
    workers = workers or choose_worker_count(size)
    with new_folder(folder, force=True, known_names=(*_RESULTS, _META)) as temporary:
        new_words = find_new_words([*files, *held], spec, on_progress)
        listed = write_word_list(temporary, spec.word_list, new_words)
        report, used = build_corpus(
            sources,
            temporary,
            replace(spec, word_list=listed),
            _make_initial_types(vocab),
            alphabet,
            workers,
            on_progress,
            chunk_characters,
        )
        check_unchanged((*files, *held), stamps)
        _write_meta(temporary, stamps, spec, fingerprint, report, vocab, used)
    return open_corpus(folder)


def open_corpus(folder: str | Path) -> Corpus:
    """Open a prepared corpus.

    Raises:
        DataError: The folder is not a prepared corpus of this version, or is incomplete.
        FormatError: A file of it is damaged.

    """
    folder = Path(folder)
    meta = _read_meta(folder)
    if meta is None:
        raise DataError(f"{folder}: not a prepared corpus of this version. Prepare it again from the text.")
    if not _is_complete(folder, meta):
        raise DataError(f"{folder}: a file of the corpus is missing or truncated. Prepare it again.")
    with refuse_damaged(folder, "an intact prepared corpus", AGAIN):
        report = CorpusReport(**meta["report"])
        words: list[str] = []
        for block in read_types(folder):
            words.extend(block[: report.words - len(words)])
            if len(words) == report.words:
                break
        begin, end, unknown = meta["specials"]
        alphabet = _load_alphabet(folder, meta)
        new_words = read_new_words(folder / NEW_WORDS) if NEW_WORDS in meta["sizes"] else ()
        try:
            vocab = Vocab(words, begin=begin, end=end, unknown=unknown)
        except UsageError as problem:
            raise FormatError(f"{folder / 'types.txt'}: damaged: {problem} {AGAIN}") from None
    counts = read_npy(folder / "counts.npy", advice=AGAIN)
    check_array(counts, f"{folder / 'counts.npy'}: it", ("i8",), (len(vocab),), advice=AGAIN)
    chars = None
    if alphabet is not None:
        chars = read_npy(folder / "chars.npy", map_file=True, advice=AGAIN)
        shape = (report.types, alphabet.max_chars)
        check_array(chars, f"{folder / 'chars.npy'}: it", ("u2", "u4"), shape, advice=AGAIN)
        _check_limit(folder / "chars.npy", chars, alphabet.size)
    streams = []
    for name in ("train.ids", "valid.ids"):
        with refuse_damaged(folder / name, "a stream of types", AGAIN):
            streams.append(map_ids(folder / name, np.uint32))
        _check_limit(folder / name, streams[-1], report.types)
    return Corpus(
        folder=folder,
        vocab=vocab,
        counts=counts,
        n_types=report.types,
        train=streams[0],
        valid=streams[1],
        chars=chars,
        alphabet=alphabet,
        report=report,
        fingerprint=meta["fingerprint"],
        word_list=WordList.read(folder / WORD_LIST) if WORD_LIST in meta["sizes"] else None,
        new_words=new_words,
    )


def _check_limit(path: Path, numbers: NDArray[np.integer[Any]], limit: int) -> None:
    """Refuse numbers of types or characters that do not exist; the file is read in blocks."""
    rows = max(1, _CHECKED_NUMBERS // max(1, numbers[:1].size))
    for start in range(0, len(numbers), rows):
        if numbers[start : start + rows].max(initial=0) >= limit:
            raise FormatError(f"{path}: damaged: a number of {limit:,} or more. {AGAIN}")
        release(numbers)  # after each block, or the whole file would be in memory


def _check_document(document: CorpusDocument) -> CorpusDocument:
    if not (
        isinstance(document.file, str) and isinstance(document.title, str) and type(document.words) is int
    ):
        raise TypeError(f"{document!r:.60}")
    return document


def find_sentence_starts(stream: NDArray[np.integer[Any]], begin: int = 0) -> NDArray[np.int64]:
    """Positions in a stream where sentences begin."""
    starts = []
    for start in range(0, len(stream), _CHECKED_NUMBERS):
        starts.append(start + np.flatnonzero(stream[start : start + _CHECKED_NUMBERS] == begin))
        release(stream)
    return np.concatenate(starts) if starts else np.zeros(0, np.int64)


def _make_initial_types(vocab: Vocab | None) -> InitialTypes:
    if vocab is None:
        return InitialTypes(_SPECIALS, (0, 1, 2), fixed=False)
    begin, end, unknown = (vocab.id(name) - 1 for name in (vocab.begin, vocab.end, vocab.unknown))
    return InitialTypes(vocab.words, (begin, end, unknown), fixed=True)


def _compute_fingerprint(
    files: Sequence[Path],
    held: Sequence[Path],
    stamps: Sequence[Stamp],
    spec: CorpusSpec,
    vocab: Vocab | None,
    alphabet: Alphabet | None,
) -> str:
    return digest(
        {
            "format": FORMAT,
            "content": [(detect_kind(f), s.content) for f, s in zip((*files, *held), stamps, strict=True)],
            "valid": len(held),
            "settings": spec.as_dict(),
            "vocab": vocab and (vocab.begin, vocab.end, vocab.unknown, vocab.words),
            "alphabet": alphabet and _describe(alphabet),
        }
    )


def _describe(alphabet: Alphabet) -> tuple[str, int, Sequence[str]]:
    if isinstance(alphabet, CodepointAlphabet):
        return "codepoints", alphabet.max_chars, alphabet.characters
    return "bytes", alphabet.max_chars, ()


def _load_alphabet(folder: Path, meta: dict[str, Any]) -> Alphabet | None:
    path = folder / (_META if meta["encoding"] == "bytes" else "characters.json")
    try:
        return _make_alphabet(path, meta)
    except UsageError as problem:
        raise FormatError(f"{path}: damaged: {problem} {AGAIN}") from None


def _make_alphabet(path: Path, meta: dict[str, Any]) -> Alphabet | None:
    if meta["encoding"] == "bytes":
        return ByteAlphabet(meta["max_chars"])
    if meta["encoding"] == "codepoints":
        characters = read_json(path, "the characters of a corpus", AGAIN)
        if not isinstance(characters, list) or not all(isinstance(entry, str) for entry in characters):
            raise FormatError(f"{path}: expected a list of characters. {AGAIN}")
        return CodepointAlphabet(characters, meta["max_chars"])
    return None


def _read_meta(folder: Path) -> dict[str, Any] | None:
    """Read meta.json; None if there is none of this format."""
    try:
        meta = read_json(folder / _META)
    except FormatError:
        return None
    if not isinstance(meta, dict) or meta.get("polyseme corpus") != FORMAT:
        return None
    kinds = {"fingerprint": str, "report": dict, "sizes": dict, "specials": list, "files": list}
    return meta if all(isinstance(meta.get(name), kind) for name, kind in kinds.items()) else None


def _read_stamps(meta: dict[str, Any]) -> list[Stamp]:
    """The state of the files when they were prepared; nothing if that cannot be read."""
    try:
        return [Stamp(*file) for file in meta["files"]]
    except TypeError:
        return []


def _is_complete(folder: Path, meta: dict[str, Any]) -> bool:
    """Whether all files are there, with their sizes."""
    try:
        return all((folder / name).stat().st_size == size for name, size in meta["sizes"].items())
    except (OSError, ValueError):
        return False


def _write_meta(
    temporary: Path,
    stamps: Sequence[Stamp],
    spec: CorpusSpec,
    fingerprint: str,
    report: CorpusReport,
    vocab: Vocab | None,
    alphabet: Alphabet | None,
) -> None:
    """Delete temporary files and write meta.json."""
    for file in temporary.iterdir():
        if file.name not in _RESULTS:
            file.unlink()
    encoding, max_chars, _ = _describe(alphabet) if alphabet else (None, 0, ())
    meta = {
        "polyseme corpus": FORMAT,
        "fingerprint": fingerprint,
        "report": asdict(report),
        "settings": spec.as_dict(),
        "encoding": encoding,
        "max_chars": max_chars,
        "specials": (vocab.begin, vocab.end, vocab.unknown) if vocab else _SPECIALS,
        "sizes": {file.name: file.stat().st_size for file in sorted(temporary.iterdir())},
        "files": stamps,
    }
    (temporary / _META).write_text(json.dumps(meta, ensure_ascii=False, indent=1), encoding="utf-8")


def _check_folder(folder: Path) -> None:
    """Refuse to replace anything but an empty folder or a prepared corpus of any version."""
    known = (folder / _META).is_file() and (folder / "train.ids").is_file()
    if folder.exists() and not known and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists, and is not a prepared corpus. Choose another name.")
