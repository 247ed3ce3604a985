"""Vectors in one flat safetensors file: written a sentence at a time, read through a memory map.

    formats.vectors.writers  ->  formats.vectors.flat (write)  ->  x.safetensors
        ->  formats.vectors.flat (read)  ->  formats.vectors.readers

vectors    (rows, H) or (rows, L, H): a row a token, or one for each pooled sentence
rows       (N + 1,) int64: sentence i has the rows from rows[i] to rows[i + 1]
text       uint8: the tokens of all sentences in UTF-8, a space between two; may end in spaces
text_ends  (N + 1,) int64: sentence i has the bytes from text_ends[i] to text_ends[i + 1]

What must not change: memory holds the sentence at hand. The header stands first and its sizes are known last,
so room is left for it; the smaller tensors wait in unnamed files beside the target.
"""

from __future__ import annotations

import json
import mmap
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError

HEADER = 1024  # bytes, with the 8 that say how many; more than the names and sizes of four tensors need
KIND = "polyseme-vectors"
_DTYPES: dict[str, np.dtype[Any]] = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class FlatWriter:
    """A flat file that is being written."""

    def __init__(self, path: Path, empty: NDArray[Any], pooled: bool) -> None:
        self._pooled = pooled
        self._dtype = empty.dtype
        self._shape = move_rows_first(empty, pooled).shape[1:]
        self._rows = self._text = 0
        self._open = ExitStack()
        self._file = self._open.enter_context(path.open("wb"))
        self._file.write(b" " * HEADER)
        self._tail = {
            name: self._open.enter_context(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115
            for name in ("text", "rows", "text_ends")
        }
        self._note_ends()

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence."""
        rows = np.ascontiguousarray(move_rows_first(vectors, self._pooled))
        self._file.write(rows.data if rows.size else b"")
        self._rows += len(rows)
        self._text += self._tail["text"].write(" ".join(tokens).encode("utf-8", "replace"))
        self._note_ends()

    def _note_ends(self) -> None:
        self._tail["rows"].write(self._rows.to_bytes(8, "little"))
        self._tail["text_ends"].write(self._text.to_bytes(8, "little"))

    def close(self) -> None:
        """Put the smaller tensors behind the vectors, and the header before all."""
        with self._open:
            shapes = {"vectors": (self._rows, *self._shape)}
            text = self._tail["text"]
            text.write(b" " * (-(self._file.tell() + self._text) % 8))  # so that the numbers are aligned
            shapes["text"] = (text.tell(),)
            shapes |= {name: (self._tail[name].tell() // 8,) for name in ("rows", "text_ends")}
            for tail in self._tail.values():
                tail.seek(0)
                shutil.copyfileobj(tail, self._file)
            self._file.seek(0)
            self._file.write(self._header(shapes))

    def _header(self, shapes: dict[str, tuple[int, ...]]) -> bytes:
        kinds = {"vectors": self._dtype, "text": np.dtype("u1")}
        metadata = {"format": KIND, "pooled": str(self._pooled).lower()}
        parts = {name: (kinds.get(name, np.dtype("<i8")), shape) for name, shape in shapes.items()}
        return build_header(parts, HEADER, metadata)


def build_header(
    parts: dict[str, tuple[np.dtype[Any], tuple[int, ...]]], room: int, metadata: dict[str, str] | None = None
) -> bytes:
    """`room` bytes that stand before tensors: their types, shapes and places, one behind the other."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    start = 0
    for name, (dtype, shape) in parts.items():
        stop = start + int(np.prod(shape)) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    return (room - 8).to_bytes(8, "little") + json.dumps(header).encode().ljust(room - 8)


class FlatReader:
    """A flat file that is being read; what it gives are read-only views of the file."""

    def __init__(self, path: Path) -> None:
        tensors, metadata = map_tensors(path)
        if metadata.get("format") != KIND or set(tensors) != {"vectors", "rows", "text", "text_ends"}:
            raise FormatError(f"{path}: a safetensors file, but not one of vectors that `embed` wrote.")
        self._tensors = tensors
        self._pooled = metadata.get("pooled") == "true"
        self._check(path)

    def _check(self, path: Path) -> None:
        """Refuse numbers that do not fit each other, before they are used as places."""
        for name, values in (("rows", "vectors"), ("text_ends", "text")):
            ends, most = self._tensors[name], self._tensors[values].size and len(self._tensors[values])
            fits = ends.ndim == 1 and 0 < len(ends) == len(self) + 1 and ends[0] == 0
            if not fits or not 0 <= ends[-1] <= most:
                raise FormatError(f"{path}: the tensor {name} does not fit the others. Write the file anew.")

    def __len__(self) -> int:
        return len(self._tensors["rows"]) - 1

    def vectors(self, number: int) -> NDArray[Any]:
        """(tokens, H), (L, tokens, H), or (H,) and (L, H) when pooled."""
        rows = self._part("vectors", "rows", number)
        return rows[0] if self._pooled else np.moveaxis(rows, 0, -2)

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence."""
        return self._part("text", "text_ends", number).tobytes().decode("utf-8", "replace").split()

    def _part(self, values: str, ends: str, number: int) -> NDArray[Any]:
        start, stop = (int(end) for end in self._tensors[ends][number : number + 2])
        return self._tensors[values][start:stop]

    def close(self) -> None:
        """Let go of the file; views that are still in use keep it open."""
        self._tensors = {}


def move_rows_first(vectors: NDArray[Any], pooled: bool) -> NDArray[Any]:
    """(rows, H), or (rows, L, H): a row a token, or one for the pooled sentence."""
    return vectors[None] if pooled else np.moveaxis(vectors, -2, 0)


def map_tensors(path: Path, advice: str = "Copy it again.") -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """All tensors as views of the file, and the metadata. safetensors checks that sizes and places agree.

    advice: what to do about a file that is missing or cut off.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as checked:
            metadata = checked.metadata() or {}
        with path.open("rb") as file:
            header = _read_header(file)
            start = file.tell()
        everything: NDArray[Any] = np.memmap(path, np.uint8, mode="r", offset=0).view(np.ndarray)
        tensors = {}
        for name, entry in header.items():
            first, stop = (start + place for place in entry["data_offsets"])
            tensors[name] = everything[first:stop].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as problem:
        raise FormatError(f"{path}: not a whole safetensors file ({problem}). {advice}") from None
    return tensors, metadata


def release_pages(tensor: NDArray[Any]) -> None:
    """Give back the memory of the file behind a tensor of `mapped_tensors`; the next look reads it again."""
    found: Any = tensor
    while isinstance(found, np.ndarray):
        found = found.base
    if isinstance(found, mmap.mmap) and hasattr(found, "madvise"):  # not on Windows
        found.madvise(mmap.MADV_DONTNEED)


def _read_header(file: IO[bytes]) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    header.pop("__metadata__", None)
    return header
