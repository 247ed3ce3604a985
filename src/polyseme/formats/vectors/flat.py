"""Vectors in one flat safetensors file: written sentence by sentence, read through a memory map.

    formats.vectors.file_formats  ->  formats.vectors.flat  ->  x.safetensors

vectors    (rows, H) or (rows, L, H): one row per token, or per pooled sentence
rows       (N + 1,) int64: sentence i has the rows from rows[i] to rows[i + 1]
text       uint8: the tokens of all sentences in UTF-8, separated by spaces; may end in spaces
text_ends  (N + 1,) int64: sentence i has the bytes from text_ends[i] to text_ends[i + 1]

What must not change: memory holds one sentence. The header comes first but its sizes are known last, so space
is reserved for it; the smaller tensors are collected in unnamed temporary files.
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
from polyseme.io.checked import check_array, refuse_damaged

HEADER_BYTES = 1024  # with the 8 that hold its length; more than four tensors need
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
    """Writes a flat file."""

    def __init__(self, path: Path, empty: NDArray[Any], pooled: bool) -> None:
        self._pooled = pooled
        self._dtype = empty.dtype
        self._shape = move_rows_first(empty, pooled).shape[1:]
        self._rows = self._text = 0
        self._open = ExitStack()
        self._file = self._open.enter_context(path.open("wb"))
        self._file.write(b" " * HEADER_BYTES)
        self._tail = {
            name: self._open.enter_context(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115
            for name in ("text", "rows", "text_ends")
        }
        self._write_ends()

    def add(self, tokens: Sequence[str], vectors: NDArray[Any]) -> None:
        """Append a sentence."""
        rows = np.ascontiguousarray(move_rows_first(vectors, self._pooled))
        self._file.write(rows.data if rows.size else b"")
        self._rows += len(rows)
        self._text += self._tail["text"].write(" ".join(tokens).encode("utf-8", "replace"))
        self._write_ends()

    def _write_ends(self) -> None:
        self._tail["rows"].write(self._rows.to_bytes(8, "little"))
        self._tail["text_ends"].write(self._text.to_bytes(8, "little"))

    def close(self) -> None:
        """Append the smaller tensors and write the header."""
        with self._open:
            shapes = {"vectors": (self._rows, *self._shape)}
            text = self._tail["text"]
            text.write(b" " * (-(self._file.tell() + self._text) % 8))  # aligns the numbers
            shapes["text"] = (text.tell(),)
            shapes |= {name: (self._tail[name].tell() // 8,) for name in ("rows", "text_ends")}
            for tail in self._tail.values():
                tail.seek(0)
                shutil.copyfileobj(tail, self._file)
            self._file.seek(0)
            self._file.write(self._make_header(shapes))

    def _make_header(self, shapes: dict[str, tuple[int, ...]]) -> bytes:
        dtypes = {"vectors": self._dtype, "text": np.dtype("u1")}
        metadata = {"format": KIND, "pooled": str(self._pooled).lower()}
        parts = {name: (dtypes.get(name, np.dtype("<i8")), shape) for name, shape in shapes.items()}
        return build_header(parts, HEADER_BYTES, metadata)


def build_header(
    parts: dict[str, tuple[np.dtype[Any], tuple[int, ...]]], size: int, metadata: dict[str, str] | None = None
) -> bytes:
    """A safetensors header of `size` bytes for consecutive tensors: their types, shapes and offsets."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    start = 0
    for name, (dtype, shape) in parts.items():
        stop = start + int(np.prod(shape)) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    return (size - 8).to_bytes(8, "little") + json.dumps(header).encode().ljust(size - 8)


class FlatReader:
    """Reads a flat file; arrays are read-only views of it."""

    def __init__(self, path: Path) -> None:
        tensors, metadata = map_tensors(path)
        if metadata.get("format") != KIND or set(tensors) != {"vectors", "rows", "text", "text_ends"}:
            raise FormatError(f"{path}: a safetensors file, but not one that `polyseme.embed` wrote.")
        self._tensors = tensors
        self._pooled = metadata.get("pooled") == "true"
        self._check(path)

    def _check(self, path: Path) -> None:
        """Refuse inconsistent tensors before their numbers are used as offsets."""
        vectors = self._tensors["vectors"]
        check_array(vectors, f"{path}: vectors", ("f2", "f4"), (None,) * (3 if vectors.ndim == 3 else 2))
        for name, kind in (("rows", "i8"), ("text_ends", "i8"), ("text", "u1")):
            check_array(self._tensors[name], f"{path}: {name}", (kind,), (None,))
        for name, values in (("rows", "vectors"), ("text_ends", "text")):
            ends, limit = self._tensors[name], self._tensors[values].size and len(self._tensors[values])
            fits = 0 < len(ends) == len(self) + 1 and ends[0] == 0 and bool((ends[1:] >= ends[:-1]).all())
            if not fits or not 0 <= ends[-1] <= limit:
                raise FormatError(
                    f"{path}: the tensor {name} is inconsistent with the others. Write the file again."
                )

    def __len__(self) -> int:
        return len(self._tensors["rows"]) - 1

    def vectors(self, number: int) -> NDArray[Any]:
        """(tokens, H), (L, tokens, H), or (H,) and (L, H) when pooled."""
        rows = self._slice_part("vectors", "rows", number)
        return rows[0] if self._pooled else np.moveaxis(rows, 0, -2)

    def tokens(self, number: int) -> list[str]:
        """The tokens of a sentence."""
        return self._slice_part("text", "text_ends", number).tobytes().decode("utf-8", "replace").split()

    def _slice_part(self, values: str, ends: str, number: int) -> NDArray[Any]:
        start, stop = (int(end) for end in self._tensors[ends][number : number + 2])
        return self._tensors[values][start:stop]

    def close(self) -> None:
        """Close the file; views that are still in use keep it open."""
        self._tensors = {}


def move_rows_first(vectors: NDArray[Any], pooled: bool) -> NDArray[Any]:
    """(rows, H) or (rows, L, H): one row per token, or one for a pooled sentence."""
    return vectors[None] if pooled else np.moveaxis(vectors, -2, 0)


def map_tensors(path: Path, advice: str = "Copy it again.") -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Map all tensors of a safetensors file, and read its metadata.

    Args:
        path: The file; safetensors checks that sizes and offsets agree.
        advice: What to do about a missing or truncated file, for the error.

    """
    from safetensors import safe_open

    with refuse_damaged(path, "a safetensors file", advice):
        with safe_open(path, framework="numpy") as checked:
            metadata = checked.metadata() or {}
        with path.open("rb") as file:
            header = _read_header(file)
            start = file.tell()
        everything: NDArray[Any] = np.memmap(path, np.uint8, mode="r", offset=0).view(np.ndarray)
        tensors = {}
        for name, entry in header.items():
            first, stop = (start + offset for offset in entry["data_offsets"])
            tensors[name] = everything[first:stop].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def release_pages(tensor: NDArray[Any]) -> None:
    """Release the memory of a tensor of `map_tensors`; the next access reads the file again."""
    base: Any = tensor
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(base, "madvise"):  # not on Windows
        base.madvise(mmap.MADV_DONTNEED)


def _read_header(file: IO[bytes]) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    header.pop("__metadata__", None)
    return header
