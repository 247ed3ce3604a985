"""Text of any size to a prepared corpus on disk, and the corpus opened: big arrays are memory maps.

    text.corpus.build, text.fingerprint  ->  text.corpus.prepared  ->  training

Comes in: files, folders, globs. Goes out: `Corpus`. Types are numbered: 0 `<S>`, 1 `</S>`, 2 `<UNK>`, then
words by falling frequency. The first V are the vocabulary; types beyond it keep a number of their own, so
that a model that reads characters can read them, while the softmax predicts `<UNK>` (`Corpus.targets`).

A corpus is written under a temporary name and renamed when it is whole. A second run with equal content and
settings opens what is there: the fingerprint is over the content of the files, their kinds and order, and
the settings, not over names and times.

What must not change: FORMAT goes up whenever segmentation or numbering changes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import DataError, UsageError
from polyseme.io.atomic import new_folder
from polyseme.io.memory_map import map_ids
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.text.chars import Alphabet, ByteAlphabet, CodepointAlphabet
from polyseme.text.corpus.build import CorpusReport, InitialTypes, Sources, prepare
from polyseme.text.corpus.counts import read_types
from polyseme.text.corpus.documents import detect_kind, expand_inputs
from polyseme.text.corpus.settings import CorpusSettings, CorpusSpec
from polyseme.text.corpus.workers import choose_worker_count
from polyseme.text.fingerprint import Stamp, check_unchanged, digest, stamp
from polyseme.text.vocab import Vocab

__all__ = [
    "Corpus",
    "CorpusReport",
    "CorpusSettings",
    "CorpusSpec",
    "open_corpus",
    "prepare_corpus",
    "read_types",
    "sentence_starts",
]

FORMAT = 2
Ids = NDArray[np.uint32]

_META = "meta.json"
_RESULTS = ("train.ids", "valid.ids", "types.txt", "counts.npy", "chars.npy", "characters.json")
_DEFAULTS = CorpusSpec()
_SPECIALS = ("<S>", "</S>", "<UNK>")


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus, opened."""

    folder: Path
    vocab: Vocab  # vocab.words[type] for types below V; Vocab.id is type + 1
    counts: NDArray[np.int64]  # (V,) how often each is to be predicted in train, boundaries and unknown too
    n_types: int
    train: Ids  # every sentence is begin w … w end
    valid: Ids
    chars: NDArray[np.uint16] | NDArray[np.uint32] | None  # (n_types, C)
    alphabet: Alphabet | None
    report: CorpusReport
    fingerprint: str

    @property
    def begin(self) -> int:
        """The type that begins a sentence: 0, unless a given vocabulary has it elsewhere."""
        return self.vocab.id(self.vocab.begin) - 1

    @property
    def end(self) -> int:
        """The type that ends a sentence: 1, unless a given vocabulary has it elsewhere."""
        return self.vocab.id(self.vocab.end) - 1

    @property
    def unknown(self) -> int:
        """The type of the unknown word: 2, unless a given vocabulary has it elsewhere."""
        return self.vocab.id(self.vocab.unknown) - 1

    def targets(self, types: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """What the softmax is to predict: the type itself below V, else the unknown word."""
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
) -> Corpus:
    """Segment, count and number the inputs into `folder`, or open what an equal run left there.

    A part is held out as `spec.settings` says, unless `valid` names files. A given `vocab` is kept as it
    is and in its order, other words get types beyond it; a given `alphabet` goes before `spec.encoding`.
    `workers` processes segment (None: by the machine and the size of the text; 1: this one alone).
    """
    folder = Path(folder)
    files = expand_inputs(inputs)
    held = expand_inputs(valid) if valid else []
    both = {file.resolve() for file in files} & {file.resolve() for file in held}
    if both:
        raise UsageError(f"{min(both)}: given both to train and to validate on. Name it once.")
    old = _meta(folder)
    stamps = stamp([*files, *held], [Stamp(*found) for found in old.get("files", ())] if old else ())
    fingerprint = _fingerprint(files, held, stamps, spec, vocab, alphabet)
    if old and old["fingerprint"] == fingerprint and _whole(folder, old):
        return open_corpus(folder)
    size = sum(found.size for found in stamps)
    packed = any(file.suffix in (".gz", ".zst") for file in (*files, *held))
    sources = Sources(files, held, None if packed else size)
    _check_folder(folder)
    workers = workers or choose_worker_count(size)
    with new_folder(folder, force=True, known_names=(*_RESULTS, _META)) as temporary:
        report, used = prepare(
            sources,
            temporary,
            spec,
            _given(vocab),
            alphabet,
            workers,
            on_progress,
        )
        check_unchanged((*files, *held), stamps)
        _finish(temporary, stamps, spec, fingerprint, report, vocab, used)
    return open_corpus(folder)


def open_corpus(folder: str | Path) -> Corpus:
    """Open a prepared corpus."""
    folder = Path(folder)
    meta = _meta(folder)
    if meta is None:
        raise DataError(f"{folder}: not a prepared corpus of this version. Prepare it again from the text.")
    if not _whole(folder, meta):
        raise DataError(f"{folder}: a part of the corpus is missing or cut off. Prepare it again.")
    report = CorpusReport(**meta["report"])
    words: list[str] = []
    for some in read_types(folder):
        words.extend(some[: report.words - len(words)])
        if len(words) == report.words:
            break
    begin, end, unknown = meta["specials"]
    return Corpus(
        folder=folder,
        vocab=Vocab(words, begin=begin, end=end, unknown=unknown),
        counts=np.load(folder / "counts.npy", allow_pickle=False),
        n_types=report.types,
        train=map_ids(folder / "train.ids", np.uint32),
        valid=map_ids(folder / "valid.ids", np.uint32),
        chars=np.load(folder / "chars.npy", mmap_mode="r", allow_pickle=False) if meta["encoding"] else None,
        alphabet=_alphabet(folder, meta),
        report=report,
        fingerprint=meta["fingerprint"],
    )


def sentence_starts(stream: NDArray[np.integer[Any]], begin: int = 0) -> NDArray[np.int64]:
    """Places in the stream where a sentence begins."""
    blocks = range(0, len(stream), 1 << 20)
    found = [start + np.flatnonzero(stream[start : start + (1 << 20)] == begin) for start in blocks]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _given(vocab: Vocab | None) -> InitialTypes:
    if vocab is None:
        return InitialTypes(_SPECIALS, (0, 1, 2), fixed=False)
    begin, end, unknown = (vocab.id(name) - 1 for name in (vocab.begin, vocab.end, vocab.unknown))
    return InitialTypes(vocab.words, (begin, end, unknown), fixed=True)


def _fingerprint(
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
            "alphabet": alphabet and _described(alphabet),
        }
    )


def _described(alphabet: Alphabet) -> tuple[str, int, Sequence[str]]:
    if isinstance(alphabet, CodepointAlphabet):
        return "codepoints", alphabet.max_chars, alphabet.characters
    return "bytes", alphabet.max_chars, ()


def _alphabet(folder: Path, meta: dict[str, Any]) -> Alphabet | None:
    if meta["encoding"] == "bytes":
        return ByteAlphabet(meta["max_chars"])
    if meta["encoding"] == "codepoints":
        characters = json.loads((folder / "characters.json").read_text(encoding="utf-8"))
        return CodepointAlphabet(characters, meta["max_chars"])
    return None


def _meta(folder: Path) -> dict[str, Any] | None:
    """What an earlier run wrote, if it was of this format."""
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) and meta.get("polyseme corpus") == FORMAT else None


def _whole(folder: Path, meta: dict[str, Any]) -> bool:
    """Whether all files are there, with all their bytes."""
    try:
        return all((folder / name).stat().st_size == size for name, size in meta["sizes"].items())
    except OSError:
        return False


def _finish(
    temporary: Path,
    stamps: Sequence[Stamp],
    spec: CorpusSpec,
    fingerprint: str,
    report: CorpusReport,
    vocab: Vocab | None,
    alphabet: Alphabet | None,
) -> None:
    """Delete what was only needed on the way, and write meta.json."""
    for file in temporary.iterdir():
        if file.name not in _RESULTS:
            file.unlink()
    encoding, max_chars, _ = _described(alphabet) if alphabet else (None, 0, ())
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
    """Refuse to write where something stands that is neither empty nor a corpus of ours, of any version."""
    known = (folder / _META).is_file() and (folder / "train.ids").is_file()
    if folder.exists() and not known and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists, and is not a prepared corpus. Choose another name.")
