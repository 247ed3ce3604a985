"""Usages on disk, in blocks: vectors, words, offsets and sentences, read through memory maps.

    search.usage_writer  ->  search.usage_store (INDEX/block-*.safetensors, index.json)  ->  search.index

A block is complete or absent, and does not depend on other blocks. U usages, S sentences, H values.

    vectors (U, H) float16 or float32    words (U,) int32: rows of `types`    sentences (U,) int32
    starts, stops (U,) int32: offsets in the sentence               documents, lines (S,) int32
    text, text_ends: the sentences; types, type_ends: the words of the block; both UTF-8
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from polyseme.choices import IndexPrecision, IndexView, SpaceKind
from polyseme.config import LARGEST
from polyseme.errors import FormatError
from polyseme.formats.vectors.flat import build_header, map_tensors, release_pages
from polyseme.io.atomic import new_file
from polyseme.json_text import parse_json
from polyseme.segmentations import SEGMENTATIONS
from polyseme.text.corpus.documents import Document

HEAD = "index.json"
HEADER_BYTES = 2048  # before the tensors of a block: more than eleven names and shapes need
FORMAT = 1
ADVICE = (
    "Build the index again: the same `polyseme.index(model, texts, out, force=True)`, and add the "
    "texts again that were added."
)
FIELDS: dict[str, tuple[type, ...]] = {  # the fields of index.json and their types
    "model": (str,),
    "layer": (str, int, list),
    "segment": (str,),
    "space": (str,),
    "size": (int,),
    "documents": (list,),
    "corpora": (list,),
    "blocks": (list,),
}
TENSORS: dict[str, tuple[tuple[str, ...], int]] = {  # the tensors of a block: their types and axes
    "vectors": (("f2", "f4"), 2),
    **dict.fromkeys(("words", "sentences", "starts", "stops", "documents", "lines"), (("i4",), 1)),
    **dict.fromkeys(("text", "types"), (("u1",), 1)),
    **dict.fromkeys(("text_ends", "type_ends"), (("i8",), 1)),
}
INDEX_VIEWS: tuple[IndexView, ...] = get_args(IndexView)
PRECISIONS: dict[IndexPrecision, type[np.float16] | type[np.float32]] = {
    "fp16": np.float16,
    "fp32": np.float32,
}
Vectors = NDArray[np.float16] | NDArray[np.float32]


class StoredUsage(NamedTuple):
    """A usage on disk: the word, its sentence, its offsets in the sentence, file, line and title."""

    word: str
    sentence: str
    start: int
    stop: int
    document: str
    line: int
    title: str


class StoredSentence(NamedTuple):
    """A sentence on disk: its text, the words of it that are indexed, document and line."""

    text: str
    words: list[str]
    document: int  # a row of index.json
    line: int


class UsageBlockWriter:
    """Writes a block: vectors go to the file as they come, everything else when it is closed."""

    def __init__(self, path: Path, size: int, precision: IndexPrecision = "fp16") -> None:
        self._dtype, self._size = np.dtype(PRECISIONS[precision]), size
        self._open = ExitStack()
        temporary = self._open.enter_context(new_file(path, force=True))
        self._file = self._open.enter_context(temporary.open("wb"))
        self._file.write(b" " * HEADER_BYTES)
        self._words: list[int] = []
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._sizes: list[int] = []  # usages of each sentence
        self._texts: list[bytes] = []
        self._documents: list[int] = []
        self._lines: list[int] = []
        self._types: defaultdict[str, int] = defaultdict(count().__next__)  # in the order of the text

    def __len__(self) -> int:
        return len(self._words)

    def add(
        self,
        sentence: str,
        document: int,
        line: int,
        words: Sequence[str],
        starts: Sequence[int],
        stops: Sequence[int],
    ) -> None:
        """Add a sentence, the words in it whose usages are stored, and their offsets."""
        self._words += map(self._types.__getitem__, words)
        self._starts += starts
        self._stops += stops
        self._sizes.append(len(words))
        self._texts.append(sentence.encode("utf-8", "replace"))
        self._documents.append(document)
        self._lines.append(line)

    def add_vectors(self, rows: Vectors) -> None:
        """Write the vectors (n, H) of the next n usages, in order."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)

    def close(self) -> None:
        """Write the rest; the block then appears under its name."""
        with self._open:
            tensors = self._make_tensors()
            shapes = {name: (values.dtype, values.shape) for name, values in tensors.items()}
            for values in tensors.values():
                self._file.write(values.data)
            self._file.seek(0)
            vectors = {"vectors": (self._dtype, (len(self), self._size))}
            self._file.write(build_header(vectors | shapes, HEADER_BYTES))
            self._file.close()

    def discard(self, problem: BaseException) -> None:
        """Delete the unfinished file and raise `problem`; errors of the disk get the name of the file."""
        with self._open:
            raise problem

    def _make_tensors(self) -> dict[str, NDArray[Any]]:
        """All tensors but the vectors, those of wider numbers first."""
        types = [word.encode("utf-8", "replace") for word in self._types]
        return {
            "text_ends": _count_ends(self._texts),
            "type_ends": _count_ends(types),
            "words": np.array(self._words, np.int32),
            "sentences": np.repeat(np.arange(len(self._sizes), dtype=np.int32), self._sizes),
            "starts": np.array(self._starts, np.int32),
            "stops": np.array(self._stops, np.int32),
            "documents": np.array(self._documents, np.int32),
            "lines": np.array(self._lines, np.int32),
            "text": np.frombuffer(b"".join(self._texts) or b" ", np.uint8),
            "types": np.frombuffer(b"".join(types) or b" ", np.uint8),
        }


def _count_ends(parts: Sequence[bytes]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


class UsageBlock:
    """A block on disk, memory-mapped.

    Attributes:
        path: The file.
        vectors: (U, H) as the model computed them.
        words: (U,) the row of `types` of each usage.

    """

    def __init__(self, path: Path) -> None:
        tensors, _ = map_tensors(path, ADVICE)
        for name, (dtypes, axes) in TENSORS.items():
            tensor = tensors.get(name)
            if tensor is None or tensor.dtype not in map(np.dtype, dtypes) or tensor.ndim != axes:
                raise _make_damage_error(path, f"{name} is missing")
        usages, sentences = len(tensors["vectors"]), len(tensors["text_ends"]) - 1
        expected = dict.fromkeys(("words", "sentences", "starts", "stops"), usages)
        expected |= dict.fromkeys(("documents", "lines"), sentences)
        for name, size in expected.items():
            if len(tensors[name]) != size:
                raise _make_damage_error(path, f"{name} has {len(tensors[name])} values, expected {size}")
        self.path, self._make_tensors = path, tensors
        self.vectors: Vectors = tensors["vectors"]
        self.words: NDArray[np.int32] = tensors["words"]
        self._check_ranges(usages, sentences)

    def _check_ranges(self, usages: int, sentences: int) -> None:
        """Refuse numbers that are out of range."""
        limits = {"words": len(self._make_tensors["type_ends"]) - 1, "sentences": sentences}
        for name, limit in limits.items():
            values = self._make_tensors[name]
            if usages and not (int(values.min()) >= 0 and int(values.max()) < limit):
                raise _make_damage_error(self.path, f"{name} has a number beyond {limit}")
        numbers = self._make_tensors["sentences"]
        if (numbers[1:] < numbers[:-1]).any():  # sentence_rows searches them
            raise _make_damage_error(self.path, "sentences are not in order")
        for name, whole in (("text_ends", "text"), ("type_ends", "types")):
            ends, size = self._make_tensors[name], len(self._make_tensors[whole])
            if len(ends) < 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > size:
                raise _make_damage_error(self.path, f"{name} does not fit {whole}")

    def __len__(self) -> int:
        return len(self.vectors)

    def release(self) -> None:
        """Give back the memory of the vectors; they are read from disk again when needed."""
        release_pages(self.vectors)

    @cached_property
    def types(self) -> list[str]:
        """The distinct words of the block, in the order of the text; read on first use."""
        text, ends = self._make_tensors["types"].tobytes(), self._make_tensors["type_ends"].tolist()
        return [text[a:b].decode("utf-8", "replace") for a, b in pairwise(ends)]

    def _read_text(self, values: str, ends: str, number: int) -> str:
        """One of the strings that are joined in the tensor `values`."""
        first, last = self._make_tensors[ends][number : number + 2].tolist()
        return self._make_tensors[values][first:last].tobytes().decode("utf-8", "replace")

    def read(self, row: int, documents: Sequence[Document]) -> StoredUsage:
        """Read the usage `row` of this block; `documents` are those that index.json lists."""
        return self.read_rows(np.array([row]), documents)[0]

    def read_rows(self, rows: NDArray[np.int64], documents: Sequence[Document]) -> list[StoredUsage]:
        """Read several usages; a sentence is decoded once for all of them."""
        tensors = self._make_tensors
        numbers, positions = np.unique(tensors["sentences"][rows], return_inverse=True)
        document_numbers = tensors["documents"][numbers]
        if len(numbers) and not 0 <= document_numbers.min() <= document_numbers.max() < len(documents):
            raise FormatError(f"{self.path.parent / HEAD}: damaged: a document is not listed. {ADVICE}")
        texts = [self._read_text("text", "text_ends", number) for number in numbers.tolist()]
        files = [documents[number] for number in document_numbers.tolist()]
        lines = tensors["lines"][numbers].tolist()
        columns = (tensors[name][rows].tolist() for name in ("words", "starts", "stops"))
        return [
            StoredUsage(
                self.types[word],
                texts[position],
                start,
                stop,
                files[position].file,
                lines[position],
                files[position].title,
            )
            for position, word, start, stop in zip(positions.tolist(), *columns, strict=True)
        ]

    def read_sentences(self) -> Iterator[StoredSentence]:
        """Yield all sentences, in the order of the text."""
        tensors, types = self._make_tensors, self.types
        text, ends = tensors["text"].tobytes(), tensors["text_ends"].tolist()
        count = len(ends) - 1
        stops = np.searchsorted(tensors["sentences"], np.arange(count), side="right").tolist()
        words, documents = self.words.tolist(), tensors["documents"].tolist()
        start = 0
        for number, (stop, document, line) in enumerate(
            zip(stops, documents, tensors["lines"].tolist(), strict=True)
        ):
            sentence = text[ends[number] : ends[number + 1]].decode("utf-8", "replace")
            yield StoredSentence(sentence, [types[word] for word in words[start:stop]], document, line)
            start = stop

    @property
    def sentence_count(self) -> int:
        """How many sentences the block has."""
        return len(self._make_tensors["lines"])

    def sentence_numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the number in this block of the sentence of each of these usages."""
        numbers: NDArray[np.int32] = self._make_tensors["sentences"][rows]
        return numbers

    def read_sentence(self, number: int) -> StoredSentence:
        """Read a sentence of this block."""
        first, last = np.searchsorted(self._make_tensors["sentences"], (number, number + 1)).tolist()
        words = [self.types[word] for word in self.words[first:last].tolist()]
        document, line = (int(self._make_tensors[name][number]) for name in ("documents", "lines"))
        return StoredSentence(self._read_text("text", "text_ends", number), words, document, line)

    def sentence_rows(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each of these usages where the usages of its sentence start and stop in the block."""
        sentences = self._make_tensors["sentences"]  # ascending
        numbers = sentences[rows]
        return np.searchsorted(sentences, numbers), np.searchsorted(sentences, numbers, side="right")

    def document_numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the number of the document of each of these usages."""
        numbers: NDArray[np.int32] = self._make_tensors["documents"][self._make_tensors["sentences"][rows]]
        return numbers


def as_tensor(rows: Vectors) -> Tensor:
    """Return rows of a block as a tensor that shares their memory; do not write to it."""
    try:
        return from_dlpack(rows)
    except BufferError:  # numpy 2.0 does not share read-only memory
        return torch.from_numpy(rows.copy())


def _make_damage_error(path: Path, problem: str) -> FormatError:
    return FormatError(f"{path}: damaged: {problem}. {ADVICE}")


def get_block_path(folder: Path, number: int) -> Path:
    """Return the file of a block."""
    return folder / f"block-{number:05d}.safetensors"


def read_head(folder: Path) -> dict[str, Any]:
    """Read index.json, in today's names.

    Raises:
        FormatError: There is no index, or the file is damaged or of a newer Polyseme.

    """
    try:
        values = parse_json((folder / HEAD).read_bytes())
    except FileNotFoundError:
        reason = f"no {HEAD} in it" if folder.is_dir() else "no such folder"
        raise FormatError(
            f"{folder}: {reason}. Build an index: `polyseme.index(model, texts, out)`."
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise FormatError(f"{folder / HEAD}: cannot be read ({problem}). {ADVICE}") from None
    if not isinstance(values, dict) or values.get("polyseme_index") != FORMAT:
        raise FormatError(
            f"{folder / HEAD}: not an index that this version reads. Upgrade Polyseme, or build it again."
        )
    wrong = [name for name, types in FIELDS.items() if not isinstance(values.get(name), types)]
    wrong += [name for name in ("corpora", "blocks") if not _are_records(values.get(name))]
    _translate_old_names(values)
    if values["view"] not in INDEX_VIEWS:
        wrong.append("view")
    wrong += [] if wrong else _find_wrong_values(values)
    if wrong:
        raise FormatError(f"{folder / HEAD}: damaged: {wrong[0]} is wrong. {ADVICE}")
    return values


def _find_wrong_values(head: dict[str, Any]) -> list[str]:
    """The names of fields whose values, or values in them, are not those that `UsageWriter` writes."""
    anisotropy, graph, layer = head.get("anisotropy"), head.get("graph"), head["layer"]
    is_valid = {
        "size": _is_count(head["size"]) and head["size"] > 0,
        "space": head["space"] in get_args(SpaceKind),
        "segment": head["segment"] in SEGMENTATIONS,
        "layer": _is_layer(layer),
        "documents": all(isinstance(file, str) for file in head["documents"]),
        "blocks": all(
            _is_count(block.get(name)) for block in head["blocks"] for name in ("usages", "corpus")
        ),
        "corpora": all(isinstance(corpus.get("content"), str) for corpus in head["corpora"])
        and (bool(head["corpora"]) or not head["blocks"]),
        "anisotropy": anisotropy is None
        or (
            isinstance(anisotropy, dict)
            and all(_is_finite(anisotropy.get(name)) for name in ("before", "after"))
        ),
        "graph": graph is None
        or (
            isinstance(graph, dict)
            and isinstance(graph.get("dtype"), str)
            and all(_is_count(graph.get(name)) for name in ("usages", "bytes"))
        ),
        "name": isinstance(head.get("name", ""), str | None),
    }
    return [name for name, valid in is_valid.items() if not valid]


def _is_layer(value: Any) -> bool:
    """Whether it is top, mean, a number, weights, or weights and gamma."""
    if not isinstance(value, list):
        return value in ("top", "mean") if isinstance(value, str) else _is_count(value)
    weights = [number for item in value for number in (item if isinstance(item, list) else [item])]
    return bool(weights) and all(map(_is_finite, weights))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST


def _translate_old_names(head: dict[str, Any]) -> None:
    """Translate the head of an index that an older Polyseme wrote."""
    view = head.setdefault("view", "word")  # the first indexes had no other
    if view == "place":
        head["view"] = "context"
    if "crowding" in head:
        head["anisotropy"] = head.pop("crowding")


def list_documents(head: dict[str, Any]) -> list[Document]:
    """The documents that index.json lists, in the order of the text.

    Raises:
        FormatError: The list is damaged.

    """
    files, records = head["documents"], head.get("titles")
    if records is None:  # of an older version: a document is a file
        numbers = {file: number for number, file in enumerate(dict.fromkeys(files), start=1)}
        return [Document(file, numbers[file], "", {}) for file in files]
    try:
        return [
            Document(str(file), int(record["number"]), str(record["title"]), dict(record.get("meta", {})))
            for file, record in zip(files, records, strict=True)
        ]
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{HEAD}: damaged: the titles do not fit the documents. {ADVICE}") from None


def note_documents(head: dict[str, Any], documents: Sequence[Document]) -> None:
    """Put documents into a head: their files, and beside them numbers, titles and metadata."""
    head["documents"] = [document.file for document in documents]
    head["titles"] = [
        {"number": document.number, "title": document.title}
        | ({"meta": dict(document.meta)} if document.meta else {})
        for document in documents
    ]


def _are_records(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, dict) for value in values)


def write_head(folder: Path, head: dict[str, Any]) -> None:
    """Write index.json, completely or not at all."""
    with new_file(folder / HEAD, force=True) as new:
        new.write_text(json.dumps(head, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
