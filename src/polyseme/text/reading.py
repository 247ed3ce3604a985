r"""Files to lines: text is UTF-8 everywhere, or it is refused with its place.

    text.reading  ->  text.vocab, text.vectors, corpus, tasks

Comes in: a file, a folder (all files below it, sorted, hidden ones skipped), or `-` for standard input;
gzip and zstandard are recognised by their content, `~` is the home folder. Goes out: `Line`, one after the
other; memory holds one.

What must not change: lines end at \n only (a \r before it is dropped), so line numbers agree with editors.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from polyseme.errors import DataError, UsageError, require

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_COMPRESSED_CHUNK = 4096  # small, because a few bytes of zstandard can unfold to megabytes


class Line(NamedTuple):
    """A line without its end, and where it stands."""

    source: str
    number: int
    text: str


def read_lines(path: str | Path) -> Iterator[Line]:
    """Yield the lines of a file, of all files in a folder, or of standard input (`-`)."""
    for file in _files(home(path)):
        yield from lines_of(file)


def watched(lines: Iterator[Line], watch: Callable[[Line], None] | None) -> Iterator[Line]:
    """The same lines; `watch` sees each before it goes on."""
    for line in lines:
        if watch is not None:
            watch(line)
        yield line


def home(path: str | Path) -> str:
    """`path` with the home folder in place of a `~` at its start."""
    return os.path.expanduser(path)


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file, or `-`, as bytes, unpacked if it is compressed; what goes wrong becomes a `DataError`."""
    path = home(path)
    name = _name(path)
    stream: io.BufferedReader[Any]
    try:
        if name == "stdin":
            stream = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))  # for its peek
        else:
            stream = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise _unreadable(name, error) from error
    try:
        yield _unpacked(stream, name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: damaged or cut off ({error}). Copy or download the file again.") from error
    except OSError as error:
        raise _unreadable(name, error) from error
    finally:
        if name == "stdin":
            stream.detach()  # standard input is not ours to close
        else:
            stream.close()


def _name(path: str | Path) -> str:
    return "stdin" if str(path) == "-" else str(path)


def _unreadable(name: str, error: OSError) -> UsageError | DataError:
    if isinstance(error, FileNotFoundError):
        return UsageError(f"{name}: no such file or folder. Check the path; it is read from {Path.cwd()}.")
    if isinstance(error, IsADirectoryError):
        return UsageError(f"{name}: a folder, but one file is wanted here.")
    if isinstance(error, PermissionError):
        return DataError(f"{name}: no permission to read it. Allow it, e.g. chmod u+r, or copy the file.")
    return DataError(f"{name}: cannot be read ({error.strerror or error}).")


def _files(path: str | Path) -> Iterator[str | Path]:
    if str(path) == "-" or not os.path.isdir(path):
        yield path
        return
    found = False
    for file in files_below(Path(path)):
        found = True
        yield file
    if not found:
        raise DataError(f"{path}: a folder without files. Hidden files (.name) do not count; check the path.")


def files_below(folder: Path) -> list[Path]:
    """All files below a folder, sorted, without the hidden ones."""

    def refuse(error: OSError) -> None:
        raise _unreadable(str(error.filename), error) from error

    files: list[Path] = []
    for where, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.extend(Path(where, name) for name in names if not name.startswith("."))
    return sorted(files, key=lambda file: file.parts)


def _unpacked(stream: io.BufferedReader[Any], name: str) -> BinaryIO:
    head = stream.peek(4)[:4]
    if head.startswith(_GZIP):
        unzipped = gzip.GzipFile(fileobj=stream)
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, unzipped)))
    if head == _ZSTD:
        zstandard = require("zstandard", "parquet", f"Reading {name}")
        return cast(BinaryIO, io.BufferedReader(_ZstdStream(cast(BinaryIO, stream), zstandard)))
    for ending, kind in ((".gz", "gzip"), (".zst", "zstandard")):
        if name.endswith(ending):
            raise DataError(f"{name}: not {kind} data, in spite of its name. Rename it, or copy it again.")
    return cast(BinaryIO, stream)


class _ZstdStream(io.RawIOBase):
    """The unpacked bytes of a zstandard file; the library's own reader does not notice a file cut off."""

    def __init__(self, stream: BinaryIO, zstandard: Any) -> None:
        self._stream, self._zstandard = stream, zstandard
        self._frame: Any = None  # the frame that is being unpacked
        self._packed = self._plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        while not self._plain and self._fill():
            pass
        view = memoryview(target).cast("B")
        size = min(len(view), len(self._plain))
        view[:size], self._plain = self._plain[:size], self._plain[size:]
        return size

    def _fill(self) -> bool:
        """Unpack a chunk; say whether there was one."""
        self._packed = self._packed or self._stream.read(_COMPRESSED_CHUNK)
        if not self._packed:
            if self._frame is not None:
                raise EOFError("the last zstandard frame has no end")
            return False
        if self._frame is None:
            self._frame = self._zstandard.ZstdDecompressor().decompressobj()
        try:
            self._plain = self._frame.decompress(self._packed)
        except self._zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        self._packed = b""
        if self._frame.eof:
            self._packed, self._frame = self._frame.unused_data, None
        return True


def lines_of(path: str | Path) -> Iterator[Line]:
    """Yield the lines of one file, or of standard input (`-`); a folder is refused."""
    name = _name(path)
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise DataError(f"{name}:1: UTF-16, not UTF-8. Convert it: iconv -f UTF-16 -t UTF-8")
                raw = raw.removeprefix(b"\xef\xbb\xbf")
                if not raw:  # a byte order mark and nothing else
                    return
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError(_not_utf8(name, number, raw, error.start)) from error
            yield Line(name, number, text.removesuffix("\n").removesuffix("\r"))


def _not_utf8(name: str, number: int, raw: bytes, place: int) -> str:
    column = len(raw[:place].decode("utf-8")) + 1
    return (
        f"{name}:{number}: not UTF-8 (byte 0x{raw[place]:02x} at column {column}). "
        f"Convert it, e.g. iconv -f {_guess(raw)} -t UTF-8"
    )


def _guess(raw: bytes) -> str:
    """Guess the encoding of a line: Chinese comes in pairs of high bytes, Latin in single ones."""
    if raw.count(0) * 4 > len(raw):
        return "UTF-16"
    high = sum(byte >= 0x80 for byte in raw)
    paired = 2 * len(re.findall(rb"[\x81-\xfe][\x80-\xfe]", raw))
    try:
        raw.decode("gb18030")
    except UnicodeDecodeError:
        return "WINDOWS-1252"
    return "GB18030" if paired * 5 >= high * 4 else "WINDOWS-1252"
