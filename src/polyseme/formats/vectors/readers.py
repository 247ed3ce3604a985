"""Read vectors sentence by sentence from any file or folder that `polyseme.embed` wrote, without loading it.

    formats.vectors.file_formats, formats.vectors.manifest  ->  formats.vectors.readers  ->  scripts

A folder is a list of files (shards) in the order of the text; a few of them are open at a time.

What must not change: memory does not grow with the number of vectors (.npz: it grows with the number of
sentences of a file), and a damaged shard does not affect the others.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError, UsageError
from polyseme.formats.vectors.file_formats import VectorReader, find_vector_format
from polyseme.formats.vectors.manifest import Shard, read_folder
from polyseme.io.checked import refuse_damaged
from polyseme.text.fingerprint import checksum
from polyseme.text.validate import check_path

Result = TypeVar("Result")
MAX_OPEN_SHARDS = 16
REMEDY = "Run the same `polyseme.embed` again: it replaces the shard."


class Vectors:
    """The vectors of a text, sentence by sentence: `len(vectors)`, `vectors[i]`, `for array in vectors`.

    An array is (tokens, H), (L, tokens, H) for all layers, or (H,) and (L, H) for pooled sentences. It may be
    a read-only view of the file: copy it before changing it.
    """

    def __init__(
        self,
        path: Path,
        shards: list[Shard] | None,
        *,
        check: bool,
        max_open_shards: int = MAX_OPEN_SHARDS,
    ) -> None:
        self._path = path
        self._shards = shards
        self._check = check
        self._max_open_shards = max_open_shards
        self._checked: set[int] = set()
        self._open: OrderedDict[int, VectorReader] = OrderedDict()  # least recently used first
        if shards is None:
            self._ends = [len(self._open_shard(0))]
        else:
            self._ends = [int(end) for end in np.cumsum([shard.sentences for shard in shards])]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, key: int) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, key: slice) -> list[NDArray[Any]]: ...

    def __getitem__(self, key: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(key, slice):
            return [self[number] for number in range(*key.indices(len(self)))]
        vectors = self._read(key, lambda file, row: file.vectors(row))
        if vectors.dtype.kind != "f" or not np.isfinite(vectors).all():
            what = "NaN or infinite values" if vectors.dtype.kind == "f" else f"{vectors.dtype}, not vectors"
            raise FormatError(f"{self._path}: sentence {key} contains {what}. Embed the text again.")
        return vectors

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[number] for number in range(len(self)))

    def sentence(self, number: int) -> list[str]:
        """Return the tokens of a sentence.

        Args:
            number: The number of the sentence, from 0.

        Returns:
            The tokens.

        Raises:
            UsageError: The format stores no tokens, or not those of this sentence.

        """
        return self._read(number, lambda file, row: file.tokens(row))

    def verify(self) -> None:
        """Compare size and SHA-256 of all shards with the manifest; a single file is read completely.

        Raises:
            FormatError: Names the damaged shards.

        """
        if self._shards is None:
            for _ in self:
                pass
            return
        problems = []
        for number in range(len(self._shards)):
            try:
                self._verify(number)
            except FormatError as problem:
                problems.append(str(problem))
        if problems:
            more = f" {len(problems) - 3} more shards are damaged." if len(problems) > 3 else ""
            raise FormatError(" ".join(problems[:3]) + more)

    def close(self) -> None:
        """Close all files."""
        while self._open:
            self._open.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Vectors({str(self._path)!r}, {len(self):,} sentences)"

    def _read(self, number: int, read: Callable[[VectorReader, int], Result]) -> Result:
        """Read from the shard that holds a sentence."""
        row = number + len(self) if number < 0 else number
        if not 0 <= row < len(self):
            raise IndexError(f"sentence {number}: {self._path} has {len(self):,} sentences.")
        shard = bisect_right(self._ends, row)
        file = self._open_shard(shard)
        with refuse_damaged(self._get_file_path(shard), f"a file whose sentence {number} can be read"):
            return read(file, row - (self._ends[shard - 1] if shard else 0))

    def _get_file_path(self, number: int) -> Path:
        return self._path if self._shards is None else self._path / self._shards[number].file

    def _open_shard(self, number: int) -> VectorReader:
        """Open a shard; the least recently used one is closed."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        if self._shards is not None and self._check and number not in self._checked:
            self._verify(number)
            self._checked.add(number)
        file = _open_file(self._get_file_path(number))
        if self._shards is not None and len(file) != self._shards[number].sentences:
            count = len(file)
            file.close()
            raise FormatError(
                f"{self._get_file_path(number)}: {count} sentences, but "
                f"{self._shards[number].sentences} in the manifest. {REMEDY}"
            )
        self._open[number] = file
        while len(self._open) > self._max_open_shards:
            self._open.popitem(last=False)[1].close()
        return file

    def _verify(self, number: int) -> None:
        """Compare a shard with the manifest."""
        path, shard = self._get_file_path(number), (self._shards or [])[number]
        expected = f"the manifest says {shard.bytes:,} bytes with SHA-256 {shard.sha256}"
        try:
            size = path.stat().st_size
            sha256 = checksum(path) if size == shard.bytes else ""
        except OSError as problem:
            raise FormatError(f"{path}: cannot be read ({problem.strerror}); {expected}. {REMEDY}") from None
        if size != shard.bytes:
            raise FormatError(f"{path}: has {size:,} bytes; {expected}. {REMEDY}")
        if sha256 != shard.sha256:
            raise FormatError(f"{path}: has the SHA-256 {sha256}; {expected}. Delete the file. {REMEDY}")


def open_vectors(path: str | Path, *, check: bool = True, max_open_shards: int = MAX_OPEN_SHARDS) -> Vectors:
    """Open a file or folder that `polyseme.embed` wrote, without loading it.

    Args:
        path: The file or folder.
        check: Compare the SHA-256 of each shard of a folder when it is first opened, which reads it once.
        max_open_shards: Files of a folder to keep open, at least 1.

    Returns:
        The vectors, sentence by sentence.

    Raises:
        UsageError: If there is no such file, or its ending is not that of a vector format.
        FormatError: If the file is damaged, or the folder is not finished.

    Example:
        with polyseme.open_vectors("news.safetensors") as vectors:
            print(len(vectors), vectors[0].shape, vectors.sentence(0))

    """
    source = Path(check_path(path, "the vectors")).expanduser()
    if not source.exists():
        raise UsageError(
            f"{source}: no such file or folder. Check the path (the working directory is {os.getcwd()})."
        )
    if not source.is_dir():
        return Vectors(source, None, check=False)
    shards = [shard for share in read_folder(source) for shard in share.shards]
    shards.sort(key=lambda shard: (shard.block, shard.first))
    return Vectors(source, shards, check=check, max_open_shards=max_open_shards)


def _open_file(path: Path) -> VectorReader:
    vector_format = find_vector_format(path)
    with refuse_damaged(path, f"a {path.suffix} file"):
        return vector_format.reader(path)
