r"""Read the lines of text files of any encoding, of HTML pages, EPUB books and FASTA files.

    file, folder or "-"  ->  text.reading  ->  text.vocab, text.static_vectors, text.corpus, tasks.data

Input: a file, a folder (all files below it, sorted, without hidden ones) or `-` for standard input. gzip and
zstandard are recognised by content, .html, .epub and .fasta by name; `~` is expanded. Output: `Line`s, one at
a time, in constant memory. What is odd about a file (its encoding, page numbers in the text) is logged once.

Invariant: a line ends at \n only (a \r before it is dropped), so line numbers agree with those of editors;
those of HTML and EPUB are lines of the extracted text, those of FASTA count sequences.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, Self, cast

from polyseme.errors import DataError, EncodingError, UsageError, require
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter
from polyseme.text.encodings import AUTO, check_encoding
from polyseme.text.fasta import FastaRecord, FastaStream, is_fasta, parse_fasta
from polyseme.text.markup import Chapter, read_epub, read_html
from polyseme.text.oddities import NotedStream
from polyseme.text.validate import check_path

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BUFFER_BYTES = 1 << 16
_COMPRESSED_CHUNK = 4096  # small, because a few bytes of zstandard can expand to megabytes


class Line(NamedTuple):
    """A line of text without its line break."""

    source: str  # name of its file
    number: int  # from 1
    text: str

    @property
    def location(self) -> str:
        """`file:line`, as error messages begin with it."""
        return f"{self.source}:{self.number}"


class EncodedPath(str):
    """A path with the encoding of its text, for readers that pass paths on: `read_lines` knows both."""

    encoding: str

    def __new__(cls, path: str | Path, encoding: str) -> Self:
        """Make the path; raises `UsageError` if there is no such encoding."""
        named = super().__new__(cls, path)
        named.encoding = check_encoding(encoding)
        return named


def read_lines(path: str | Path, encoding: str = AUTO, *, prose: bool = False) -> Iterator[Line]:
    """Yield the lines of a file, of all files in a folder, or of standard input.

    Args:
        path: A file, a folder, or `-` for standard input.
        encoding: The encoding of the text; "auto" is that of an `EncodedPath`, else detects it for each file.
        prose: Whether it is running text, in which page numbers and the like are noise, counted and logged.

    Raises:
        UsageError: If there is no such file or encoding.
        DataError: If a file cannot be read or decoded.

    """
    encoding = resolve_encoding(path, encoding)
    for file in list_inputs(expand_path(path)):
        yield from read_file_lines(file, encoding, prose=prose)


class ReadingProgress:
    """Reports how much of some texts has been read and processed.

    The share that is done is counted in bytes of text:

        with open_progress(progress) as on_progress:
            reading = ReadingProgress(on_progress, path, stage="embedding")
            for batch in make_batches(reading.count_lines(read_lines(path))):
                ...
                reading.add_tokens(batch.n_tokens)  # emits an event

    Args:
        on_progress: Receives an event for each call of `add_tokens`.
        texts: The files and folders that are read.
        stage: The stage of the events.

    """

    def __init__(self, on_progress: OnProgress, *texts: str | Path, stage: str = "reading") -> None:
        self._on_progress, self._stage = on_progress, stage
        self._bytes, self._total = 0, measure_bytes(*texts)
        self._meter = RateMeter()

    def count_lines(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the same lines, and count their bytes."""
        for line in lines:
            self._bytes += len(line.text.encode("utf-8", "surrogatepass")) + 1
            yield line

    def add_sentences(self, sentences: Sequence[Sequence[str]]) -> None:
        """Count the tokens of sentences that have been processed, and report."""
        self.add_tokens(sum(map(len, sentences)))

    def add_tokens(self, tokens: int) -> None:
        """Count tokens that have been processed, and report."""
        detail = self._meter.add(tokens)
        # Other encodings have fewer bytes than the UTF-8 that is counted.
        done = self._bytes if self._total is None else min(self._bytes, self._total)
        self._on_progress(ProgressEvent(self._stage, done, self._total, detail))


def measure_bytes(*texts: str | Path) -> int | None:
    """Bytes of text in files and folders; None if unknown beforehand (standard input, compressed files)."""
    paths = [Path(expand_path(text)) for text in texts]
    files = [file for path in paths for file in (list_files(path) if path.is_dir() else [path])]
    unknown = (
        file.suffix in (".gz", ".zst") or detect_text_format(file) or not file.is_file() for file in files
    )
    if "-" in map(str, texts) or any(unknown):
        return None
    return sum(file.stat().st_size for file in files)


def expand_path(path: str | Path) -> str:
    """`path` with a leading `~` replaced by the home folder; `UsageError` if no file can have this name."""
    check_path(path, "the input")
    return os.path.expanduser(path)


def list_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted, without hidden files and folders."""

    def refuse(error: OSError) -> None:
        raise _explain(str(error.filename), error) from error

    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.extend(Path(parent, name) for name in names if not name.startswith("."))
    return sorted(files, key=lambda file: file.parts)


def read_file_lines(path: str | Path, encoding: str = AUTO, *, prose: bool = False) -> Iterator[Line]:
    """Yield the lines of one file or of standard input (`-`); a folder is refused."""
    name, encoding = _name_input(path), resolve_encoding(path, encoding)
    with open_text(path, encoding, prose=prose) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise EncodingError(_describe_bad_byte(name, number, raw, error.start)) from error
            yield Line(name, number, text.removesuffix("\n").removesuffix("\r"))


def resolve_encoding(path: str | Path, encoding: str = AUTO) -> str:
    """The named encoding; for "auto" that of the path, if it is an `EncodedPath`."""
    return path.encoding if encoding == AUTO and isinstance(path, EncodedPath) else encoding


def detect_text_format(path: str | Path) -> Literal["html", "epub", "fasta"] | None:
    """Whether a file is an HTML page, an EPUB book or in FASTA, by its name."""
    name = str(path).lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".html", ".htm", ".xhtml")):
        return "html"
    if name.endswith(".epub"):
        return "epub"
    return "fasta" if is_fasta(name) else None


@contextmanager
def open_text(path: str | Path, encoding: str = AUTO, *, prose: bool = False) -> Iterator[BinaryIO]:
    """Open a text as bytes of UTF-8 without a byte order mark, whatever its encoding.

    HTML pages and EPUB books become plain text, FASTA files a sequence per line. Bytes that fit no encoding
    pass unchanged.

    Args:
        path: A file, or `-` for standard input.
        encoding: The encoding of the text; "auto" detects it.
        prose: Whether it is running text, in which page numbers and the like are noise, counted and logged.

    Raises:
        UsageError: If there is no such file or encoding.
        DataError: If the file cannot be read or decoded.

    """
    codec = check_encoding(encoding)
    kind, name = detect_text_format(path), _name_input(path)
    if kind == "epub":
        yield io.BytesIO("\n".join(chapter.text for chapter in read_chapters(path)).encode())
        return
    with open_bytes(path) as stream:
        if kind == "html":
            yield io.BytesIO(read_html(stream, name, codec).text.encode())
            return
        if kind == "fasta":
            yield cast(BinaryIO, io.BufferedReader(FastaStream(stream, name), _BUFFER_BYTES))
            return
        decoded = NotedStream(stream, name, codec, prose=prose)
        yield cast(BinaryIO, io.BufferedReader(decoded, _BUFFER_BYTES))
    decoded.log_notes()


def read_chapters(path: str | Path) -> Iterator[Chapter]:
    """Yield the chapters of an EPUB book; see `text.markup.read_epub`.

    Raises:
        UsageError: If there is no such file, or it is a folder.
        DataError: If it is not an EPUB book.

    """
    with open_bytes(path):  # explains a missing file
        pass
    yield from read_epub(expand_path(path))


def read_fasta(path: str | Path) -> Iterator[FastaRecord]:
    """Yield the names and sequences of a FASTA file; see `text.fasta`.

    Args:
        path: A file, which may be compressed, or `-` for standard input.

    Raises:
        UsageError: If there is no such file, or it is a folder.
        DataError: If a record is malformed.

    Example:
        >>> names, sequences = zip(*read_fasta("proteins.fasta"))

    """
    with open_bytes(path) as stream:
        yield from parse_fasta(stream, _name_input(path))


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file or standard input (`-`) as bytes, decompressed if need be.

    Raises:
        UsageError: If there is no such file, or it is a folder.
        DataError: If the file cannot be read or its compressed data is damaged.

    """
    path = expand_path(path)
    name = _name_input(path)
    stream: io.BufferedReader[Any]
    try:
        if name == "stdin":
            stream = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))  # for its peek
        else:
            stream = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise _explain(name, error) from error
    try:
        yield _decompress(stream, name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{name}: damaged or truncated ({error}). Copy or download the file again."
        ) from error
    except OSError as error:
        raise _explain(name, error) from error
    finally:
        if name == "stdin":
            stream.detach()  # leave standard input open
        else:
            stream.close()


def _name_input(path: str | Path) -> str:
    return "stdin" if str(path) == "-" else str(path)


def _explain(name: str, error: OSError) -> UsageError | DataError:
    """The error to raise for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return UsageError(
            f"{name}: no such file or folder. Check the path (the working directory is {Path.cwd()})."
        )
    if isinstance(error, IsADirectoryError):
        return UsageError(f"{name}: is a folder, expected a file. Name a file in it.")
    if isinstance(error, PermissionError):
        return DataError(f"{name}: no permission to read it. Allow it, e.g. chmod u+r, or copy the file.")
    return DataError(f"{name}: cannot be read ({error.strerror or error}). Check the disk or the path.")


def list_inputs(path: str | Path) -> Iterator[str | Path]:
    """Yield the files of a folder; another path, or `-`, is yielded as it is."""
    if str(path) == "-" or not os.path.isdir(path):
        yield path
        return
    files = list_files(Path(path))
    if not files:
        raise DataError(f"{path}: a folder without files. Hidden files (.name) do not count; check the path.")
    yield from files


def check_input(path: str | Path) -> None:
    """Raise `UsageError` now if there is no such file; nothing is opened, as a pipe can be read only once."""
    file = expand_path(path)
    if file != "-" and not os.path.exists(file):
        raise _explain(_name_input(path), FileNotFoundError())


def _decompress(stream: io.BufferedReader[Any], name: str) -> BinaryIO:
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
    """The decompressed bytes of a zstandard file; unlike the library's reader it detects a truncated file."""

    def __init__(self, stream: BinaryIO, zstandard: Any) -> None:
        self._stream, self._zstandard = stream, zstandard
        self._frame: Any = None  # decompressor of the current frame
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
        """Decompress a chunk; False at the end of the file."""
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


def _describe_bad_byte(name: str, number: int, raw: bytes, index: int) -> str:
    column = len(raw[:index].decode("utf-8")) + 1
    return (
        f"{name}:{number}: not UTF-8 (byte 0x{raw[index]:02x} at column {column}). "
        f"Name its encoding, e.g. `encoding='{_guess_encoding(raw)}'`, or repair the line."
    )


def _guess_encoding(raw: bytes) -> str:
    """Guess the encoding of a line: Chinese comes in pairs of high bytes, Latin in single ones."""
    if raw.count(0) * 4 > len(raw):
        return "utf-16"
    high = sum(byte >= 0x80 for byte in raw)
    paired = 2 * len(re.findall(rb"[\x81-\xfe][\x80-\xfe]", raw))
    try:
        raw.decode("gb18030")
    except UnicodeDecodeError:
        return "latin-1"
    return "gb18030" if paired * 5 >= high * 4 else "latin-1"
