"""Usages on disk, block by block: vectors, words, places and sentences; read through a memory map.

    search.building  ->  search.blocks (INDEX/block-*.safetensors, index.json)  ->  search.index

A block is whole or not there, and depends on no other. U usages, S sentences, W words of the block, H values.

    vectors (U, H) float16, or float32     words (U,) int32: rows of `types`     sentences (U,) int32
    starts, stops (U,) int32: characters of the sentence             documents, lines (S,) int32
    text, text_ends: the sentences; types, type_ends: the words; both UTF-8
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from polyseme.errors import FormatError
from polyseme.formats.flat import mapped_tensors, release
from polyseme.writing import new_file

HEAD = "index.json"
FORMAT = 1
ADVICE = "Build the index anew: the same polyseme index command with --force, and again what --add put in."
NAME = re.compile(r"block-(\d{5})\.safetensors")
KINDS: dict[str, tuple[tuple[str, ...], int]] = {  # types that are expected, and axes
    "vectors": (("f2", "f4"), 2),
    **dict.fromkeys(("words", "sentences", "starts", "stops", "documents", "lines"), (("i4",), 1)),
    **dict.fromkeys(("text", "types"), (("u1",), 1)),
    **dict.fromkeys(("text_ends", "type_ends"), (("i8",), 1)),
}
Precision = Literal["fp16", "fp32"]
PRECISIONS: dict[Precision, type[np.float16] | type[np.float32]] = {"fp16": np.float16, "fp32": np.float32}
Vectors = NDArray[np.float16] | NDArray[np.float32]


class Place(NamedTuple):
    """Where a usage stands: its sentence, the characters of the word in it, document and line."""

    sentence: str
    start: int
    stop: int
    document: str
    line: int


@dataclass
class NewBlock:
    """A block that is being filled."""

    size: int
    precision: Precision = "fp16"
    vectors: list[NDArray[np.floating]] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    types: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        sentence: str,
        document: int,
        line: int,
        usages: Sequence[tuple[str, int, int]],
        vectors: NDArray[np.float32],
    ) -> None:
        """A sentence with its usages: (word, start, stop) each, and their vectors (n, H)."""
        number = len(self.texts)
        self.texts.append(sentence.encode("utf-8", "replace"))
        self.documents.append(document)
        self.lines.append(line)
        self.vectors.append(vectors.astype(PRECISIONS[self.precision]))
        for word, start, stop in usages:
            self.words.append(self.types.setdefault(word, len(self.types)))
            self.sentences.append(number)
            self.starts.append(start)
            self.stops.append(stop)

    def __len__(self) -> int:
        return len(self.words)

    def write(self, path: Path) -> None:
        """Write the block, whole or not at all."""
        types = [word.encode("utf-8", "replace") for word in self.types]
        empty = np.zeros((0, self.size), PRECISIONS[self.precision])
        tensors: dict[str, NDArray[Any]] = {
            "vectors": np.concatenate(self.vectors) if self.vectors else empty,
            "text": np.frombuffer(b"".join(self.texts) or b" ", np.uint8),
            "text_ends": _ends(self.texts),
            "types": np.frombuffer(b"".join(types) or b" ", np.uint8),
            "type_ends": _ends(types),
        }
        for name in ("words", "sentences", "starts", "stops", "documents", "lines"):
            tensors[name] = np.array(getattr(self, name), np.int32)
        with new_file(path, force=True) as new:
            save_file(tensors, new)


def _ends(parts: Sequence[bytes]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


class Block:
    """A block on disk."""

    def __init__(self, path: Path) -> None:
        tensors, _ = mapped_tensors(path, ADVICE)
        for name, (kinds, axes) in KINDS.items():
            found = tensors.get(name)
            if found is None or found.dtype not in map(np.dtype, kinds) or found.ndim != axes:
                raise _broken(path, f"{name} is missing")
        usages, sentences = len(tensors["vectors"]), len(tensors["text_ends"]) - 1
        wanted = dict.fromkeys(("words", "sentences", "starts", "stops"), usages)
        wanted |= dict.fromkeys(("documents", "lines"), sentences)
        for name, count in wanted.items():
            if len(tensors[name]) != count:
                raise _broken(path, f"{name} has {len(tensors[name])} values, expected {count}")
        self.path, self._tensors = path, tensors
        self.vectors: Vectors = tensors["vectors"]
        self.words: NDArray[np.int32] = tensors["words"]
        self.types = self._texts("types", "type_ends")
        self._check(usages, sentences)

    def _check(self, usages: int, sentences: int) -> None:
        """Refuse numbers that point beyond what is there."""
        limits = {"words": len(self.types), "sentences": sentences}
        for name, limit in limits.items():
            values = self._tensors[name]
            if usages and not (int(values.min()) >= 0 and int(values.max()) < limit):
                raise _broken(self.path, f"{name} points beyond the {limit} that there are")
        ends = self._tensors["text_ends"]
        if (
            len(ends) < 1
            or ends[0] != 0
            or (np.diff(ends) < 0).any()
            or ends[-1] > len(self._tensors["text"])
        ):
            raise _broken(self.path, "text_ends does not fit the text")

    def __len__(self) -> int:
        return len(self.vectors)

    def release(self) -> None:
        """Give back the memory of what was read; it is read again at need."""
        release(self.vectors)

    def _texts(self, values: str, ends: str) -> list[str]:
        whole, places = self._tensors[values].tobytes(), self._tensors[ends].tolist()
        if not places or places[0] != 0 or places[-1] > len(whole) or sorted(places) != places:
            raise _broken(self.path, f"{ends} does not fit {values}")
        return [whole[a:b].decode("utf-8", "replace") for a, b in pairwise(places)]

    def place(self, row: int, documents: Sequence[str]) -> Place:
        """Where the usage `row` of this block stands."""
        number = int(self._tensors["sentences"][row])
        first, last = self._tensors["text_ends"][number : number + 2].tolist()
        text = self._tensors["text"][first:last].tobytes().decode("utf-8", "replace")
        document = int(self._tensors["documents"][number])
        return Place(
            text,
            int(self._tensors["starts"][row]),
            int(self._tensors["stops"][row]),
            documents[document] if 0 <= document < len(documents) else "?",
            int(self._tensors["lines"][number]),
        )

    def documents_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The document of each of these usages."""
        found: NDArray[np.int32] = self._tensors["documents"][self._tensors["sentences"][rows]]
        return found


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
        raise FormatError(f"{folder}: no {HEAD} in it. `polyseme index` makes an index.") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise FormatError(f"{folder / HEAD}: cannot be read ({problem}). {ADVICE}") from None
    if not isinstance(values, dict) or values.get("polyseme_index") != FORMAT:
        raise FormatError(
            f"{folder / HEAD}: not an index that this Polyseme reads. Upgrade it, or build it again."
        )
    return values


def write_head(folder: Path, head: dict[str, Any]) -> None:
    """Write index.json, whole or not at all."""
    with new_file(folder / HEAD, force=True) as new:
        new.write_text(json.dumps(head, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
