"""Usages on disk, block by block: vectors, words, places and sentences; read through a memory map.

    search.usage_writer  ->  search.usage_store (INDEX/block-*.safetensors, index.json)  ->  search.index

A block is whole or not there, and depends on no other. U usages, S sentences, W words of the block, H values.

    vectors (U, H) float16, or float32     words (U,) int32: rows of `types`     sentences (U,) int32
    starts, stops (U,) int32: characters of the sentence             documents, lines (S,) int32
    text, text_ends: the sentences; types, type_ends: the words; both UTF-8
"""

from __future__ import annotations

import json
import re
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

from polyseme.choices import IndexPrecision, IndexView
from polyseme.errors import FormatError
from polyseme.formats.vectors.flat import build_header, map_tensors, release_pages
from polyseme.io.atomic import new_file

HEAD = "index.json"
HEADER = 2048  # bytes before the tensors of a block: more than eleven names and shapes need
FORMAT = 1
ADVICE = "Build the index anew: the same polyseme index command with --force, and again what --add put in."
NAME = re.compile(r"block-(\d{5})\.safetensors")
FIELDS: dict[str, tuple[type, ...]] = {  # of index.json
    "model": (str,),
    "layer": (str, int, list),
    "segment": (str,),
    "space": (str,),
    "size": (int,),
    "documents": (list,),
    "corpora": (list,),
    "blocks": (list,),
}
KINDS: dict[str, tuple[tuple[str, ...], int]] = {  # types that are expected, and axes
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
    """A usage on disk: the word, its sentence, its offsets in the sentence, document and line."""

    word: str
    sentence: str
    start: int
    stop: int
    document: str
    line: int


class UsageBlockWriter:
    """A block that is being written: its vectors go to the file as they come, the rest when it is closed."""

    def __init__(self, path: Path, size: int, precision: IndexPrecision = "fp16") -> None:
        self._kind, self._size = np.dtype(PRECISIONS[precision]), size
        self._open = ExitStack()
        temporary = self._open.enter_context(new_file(path, force=True))
        self._file = self._open.enter_context(temporary.open("wb"))
        self._file.write(b" " * HEADER)
        self._words: list[int] = []
        self._starts: list[int] = []
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
        starts: Sequence[int],  # where each word begins in the sentence
    ) -> None:
        """A sentence and the words in it whose usages are kept."""
        self._words += map(self._types.__getitem__, words)
        self._starts += starts
        self._sizes.append(len(words))
        self._texts.append(sentence.encode("utf-8", "replace"))
        self._documents.append(document)
        self._lines.append(line)

    def add_vectors(self, rows: Vectors) -> None:
        """The vectors (n, H) of the next n usages, in their order."""
        self._file.write(np.ascontiguousarray(rows, self._kind).data)

    def close(self) -> None:
        """Write what is left: the block is whole then, and has its name."""
        with self._open:
            tensors = self._tensors()
            kinds = {name: (values.dtype, values.shape) for name, values in tensors.items()}
            for values in tensors.values():
                self._file.write(values.data)
            self._file.seek(0)
            vectors = {"vectors": (self._kind, (len(self), self._size))}
            self._file.write(build_header(vectors | kinds, HEADER))
            self._file.close()

    def give_up(self, problem: BaseException) -> None:
        """Leave nothing behind; raises the `problem`, one of the disk with the name of the file."""
        with self._open:
            raise problem

    def _tensors(self) -> dict[str, NDArray[Any]]:
        """All but the vectors, those of wider numbers first."""
        types = [word.encode("utf-8", "replace") for word in self._types]
        words, starts = np.array(self._words, np.int32), np.array(self._starts, np.int32)
        widths = np.fromiter(map(len, self._types), np.int32, len(types))
        return {
            "text_ends": _ends(self._texts),
            "type_ends": _ends(types),
            "words": words,
            "sentences": np.repeat(np.arange(len(self._sizes), dtype=np.int32), self._sizes),
            "starts": starts,
            "stops": starts + widths[words],
            "documents": np.array(self._documents, np.int32),
            "lines": np.array(self._lines, np.int32),
            "text": np.frombuffer(b"".join(self._texts) or b" ", np.uint8),
            "types": np.frombuffer(b"".join(types) or b" ", np.uint8),
        }


def _ends(parts: Sequence[bytes]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


class UsageBlock:
    """A block on disk."""

    def __init__(self, path: Path) -> None:
        tensors, _ = map_tensors(path, ADVICE)
        for name, (kinds, axes) in KINDS.items():
            found = tensors.get(name)
            if found is None or found.dtype not in map(np.dtype, kinds) or found.ndim != axes:
                raise _broken(path, f"{name} is missing")
        usages, sentences = len(tensors["vectors"]), len(tensors["text_ends"]) - 1
        wanted = dict.fromkeys(("words", "sentences", "starts", "stops"), usages)
        wanted |= dict.fromkeys(("documents", "lines"), sentences)
        for name, size in wanted.items():
            if len(tensors[name]) != size:
                raise _broken(path, f"{name} has {len(tensors[name])} values, expected {size}")
        self.path, self._tensors = path, tensors
        self.vectors: Vectors = tensors["vectors"]
        self.words: NDArray[np.int32] = tensors["words"]
        self._check(usages, sentences)

    def _check(self, usages: int, sentences: int) -> None:
        """Refuse numbers that point beyond what is there."""
        limits = {"words": len(self._tensors["type_ends"]) - 1, "sentences": sentences}
        for name, limit in limits.items():
            values = self._tensors[name]
            if usages and not (int(values.min()) >= 0 and int(values.max()) < limit):
                raise _broken(self.path, f"{name} points beyond the {limit} that there are")
        for name, whole in (("text_ends", "text"), ("type_ends", "types")):
            ends, most = self._tensors[name], len(self._tensors[whole])
            if len(ends) < 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] > most:
                raise _broken(self.path, f"{name} does not fit {whole}")

    def __len__(self) -> int:
        return len(self.vectors)

    def release(self) -> None:
        """Give back the memory of what was read; it is read again at need."""
        release_pages(self.vectors)

    @cached_property
    def types(self) -> list[str]:
        """The words of the block, read at the first need of all of them."""
        whole, places = self._tensors["types"].tobytes(), self._tensors["type_ends"].tolist()
        return [whole[a:b].decode("utf-8", "replace") for a, b in pairwise(places)]

    def _text(self, values: str, ends: str, number: int) -> str:
        first, last = self._tensors[ends][number : number + 2].tolist()
        return self._tensors[values][first:last].tobytes().decode("utf-8", "replace")

    def read(self, row: int, documents: Sequence[str]) -> StoredUsage:
        """Read the usage `row` of this block; `documents` are the names that index.json lists."""
        number = int(self._tensors["sentences"][row])
        document = int(self._tensors["documents"][number])
        return StoredUsage(
            self._text("types", "type_ends", int(self.words[row])),
            self._text("text", "text_ends", number),
            int(self._tensors["starts"][row]),
            int(self._tensors["stops"][row]),
            self.document_name(document, documents),
            int(self._tensors["lines"][number]),
        )

    def document_name(self, document: int, documents: Sequence[str]) -> str:
        """Return the name of a document that index.json lists."""
        if not 0 <= document < len(documents):
            raise FormatError(f"{self.path.parent / HEAD}: damaged: a document is not listed. {ADVICE}")
        return documents[document]

    def document_numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the number of the document of each of these usages."""
        numbers: NDArray[np.int32] = self._tensors["documents"][self._tensors["sentences"][rows]]
        return numbers


def lent(rows: Vectors) -> Tensor:
    """Rows of a block as a tensor: the same memory, which is not to be written to."""
    try:
        return from_dlpack(rows)
    except BufferError:  # numpy 2.0 lends no memory that is read-only
        return torch.from_numpy(rows.copy())


def _broken(path: Path, what: str) -> FormatError:
    return FormatError(f"{path}: damaged: {what}. {ADVICE}")


def block_path(folder: Path, number: int) -> Path:
    """The file of a block."""
    return folder / f"block-{number:05d}.safetensors"


def block_paths(folder: Path) -> Iterator[Path]:
    """The blocks that are there, in their order."""
    return iter(sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name)))


def read_head(folder: Path) -> dict[str, Any]:
    """What index.json says."""
    try:
        values = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = f"no {HEAD} in it" if folder.is_dir() else "there is no such folder"
        raise FormatError(f"{folder}: {what}. `polyseme index` makes an index.") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise FormatError(f"{folder / HEAD}: cannot be read ({problem}). {ADVICE}") from None
    if not isinstance(values, dict) or values.get("polyseme_index") != FORMAT:
        raise FormatError(
            f"{folder / HEAD}: not an index that this Polyseme reads. Upgrade it, or build it again."
        )
    wrong = [name for name, kinds in FIELDS.items() if not isinstance(values.get(name), kinds)]
    wrong += [name for name in ("corpora", "blocks") if not _are_records(values.get(name))]
    _translate_old_names(values)
    if values["view"] not in INDEX_VIEWS:
        wrong.append("view")
    if wrong or not all(isinstance(block.get("usages"), int) for block in values["blocks"]):
        raise FormatError(f"{folder / HEAD}: damaged: {(wrong or ['blocks'])[0]} is not as written. {ADVICE}")
    return values


def _translate_old_names(head: dict[str, Any]) -> None:
    """Bring the head of an index that an older Polyseme wrote to today's names."""
    view = head.setdefault("view", "word")  # at first there was no other
    if view == "place":
        head["view"] = "context"
    if "crowding" in head:
        head["anisotropy"] = head.pop("crowding")


def _are_records(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, dict) for value in values)


def write_head(folder: Path, head: dict[str, Any]) -> None:
    """Write index.json, whole or not at all."""
    with new_file(folder / HEAD, force=True) as new:
        new.write_text(json.dumps(head, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
