"""One corpus of a workspace on disk; a server that was killed knows all of it again.

    server.workspace.supervisor, server.workspace.routes  ->  server.workspace.corpus_folder  <->  DIR/NAME/

    corpus.json      title, settings and state; only the server writes it
    text/            the files; .NAME.part is one whose end is missing
    model/, index/   what the job makes
    progress.json    how far the job is; only the job writes it
    log.txt          what the job logged

States: draft (its text may change), waiting (for its job, which may run), paused, failed, ready.
"""

from __future__ import annotations

import os
import shutil
import time
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from polyseme.errors import PolysemeError
from polyseme.io.atomic import new_file
from polyseme.json_text import parse_json
from polyseme.server.http.limits import HttpError, invalid, too_large
from polyseme.server.workspace.failures import Failure, explain_damaged_record
from polyseme.server.workspace.job_progress import JobProgress
from polyseme.server.workspace.names import CORPUS_NAME, check_file_name
from polyseme.server.workspace.schemas import CorpusFile, JobSettings
from polyseme.text.encodings import SAMPLE_BYTES, Utf8Stream

RECORD, TEXT, MODEL, INDEX, LOG = "corpus.json", "text", "model", "index", "log.txt"
MAX_FILES = 500  # of a corpus
JOB_LOCK = "job"  # DIR/NAME/.job.lock, which a job holds
STOPPED = 130  # exit code of a job that saved because it was stopped
PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"PK\x03\x04": "zip (.docx, .epub)",
    b"%PDF": "PDF",
}
NO_FAILURE: dict[str, Any] = {"error": None, "error_code": None, "error_values": {}}
State = Literal["draft", "waiting", "paused", "failed", "ready"]


class CorpusRecord(BaseModel):
    """What corpus.json contains."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    title: str
    created: float  # seconds since 1970
    state: State = "draft"
    queued: float = 0.0  # when it began to wait
    error: str | None = None  # of a failure, like the next two
    error_code: str | None = None
    error_values: dict[str, str | int | list[str]] = {}
    settings: JobSettings | None = None


class CorpusFolder:
    """One corpus; whoever calls methods that write holds the lock of the workspace."""

    def __init__(self, path: Path, record: CorpusRecord) -> None:
        self.path, self.record = path, record

    @classmethod
    def create(cls, path: Path, title: str) -> Self:
        """Make the folder of a new corpus."""
        (path / TEXT).mkdir(parents=True)
        corpus = cls(path, CorpusRecord(title=title, created=time.time()))
        corpus.save()
        return corpus

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the folder of a corpus; None if it is something else."""
        if path.is_symlink() or not CORPUS_NAME.fullmatch(path.name) or not (path / RECORD).is_file():
            return None
        try:
            return cls(path, CorpusRecord.model_validate(parse_json((path / RECORD).read_bytes())))
        except (OSError, ValueError, RecursionError, ValidationError) as problem:
            failure = explain_damaged_record(f"{path.name}/{RECORD}", problem)
            record = CorpusRecord(title=path.name, created=path.stat().st_mtime, state="failed")
            return cls(path, record.model_copy(update=failure.model_dump()))

    @property
    def name(self) -> str:
        """The name in addresses."""
        return self.path.name

    @property
    def text(self) -> Path:
        """The folder of its files."""
        return self.path / TEXT

    @property
    def model(self) -> Path:
        """The folder of the model that is trained."""
        return self.path / MODEL

    @property
    def index(self) -> Path:
        """The folder of the index."""
        return self.path / INDEX

    def save(self) -> None:
        """Write corpus.json."""
        with new_file(self.path / RECORD, force=True) as new:
            new.write_text(self.record.model_dump_json(indent=1) + "\n", encoding="utf-8")

    def change(self, **values: object) -> None:
        """Change values of the record, and write it."""
        self.record = self.record.model_copy(update=values)
        self.save()

    def fail(self, failure: Failure) -> None:
        """Note why its job failed."""
        self.change(state="failed", **failure.model_dump())

    def read_progress(self) -> JobProgress:
        """How far its job is."""
        return JobProgress.read(self.path)

    @cached_property
    def _files(self) -> dict[str, CorpusFile]:
        """Complete files by name; kept, because a page asks every second."""
        self.text.mkdir(exist_ok=True)
        entries = sorted(self.text.iterdir())
        return {path.name: _describe(path) for path in entries if _is_complete(path)}

    @property
    def files(self) -> list[CorpusFile]:
        """Its complete files."""
        return list(self._files.values())

    @property
    def size(self) -> int:
        """Bytes of its complete files."""
        return sum(file.bytes for file in self._files.values())

    def add_text(self, name: str, offset: int, size: int, data: bytes, limit: int) -> tuple[int, bool]:
        """Write the next part of a file.

        Args:
            name: The name of the file, as the client sent it.
            offset: Where the part begins; 0 starts again.
            size: The size of the whole file.
            data: The part.
            limit: Bytes that the text of a corpus may have.

        Returns:
            How many bytes of the file there are now, and whether it is complete.

        Raises:
            HttpError: The name, the size or the place of the part is wrong, or it is no text.

        """
        check_file_name(name)
        part = self.text / f".{name}.part"
        others = [file.bytes for file in self.files if file.name != name]
        others += [path.stat().st_size for path in self.text.glob(".*.part") if path != part]
        if sum(others) + size > limit:
            message = f"The text of a corpus may have {limit:,} bytes."
            raise too_large(message, "corpus_too_large", limit=limit)
        if len(others) >= MAX_FILES:
            raise too_large(f"A corpus may have {MAX_FILES} files.", "too_many_files", limit=MAX_FILES)
        if size == 0 or offset + len(data) > size:
            raise invalid("size must be the bytes of the whole file, and more than 0.", "file_size")
        received = part.stat().st_size if part.is_file() and offset else 0
        if offset != received:
            message = f"The next part begins at offset {received}."
            raise HttpError(409, "conflict", message, code="file_offset", values={"received": received})
        with part.open("ab" if offset else "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        received += len(data)
        if received == size:
            self._complete(part, name)
        return received, received == size

    def _complete(self, part: Path, name: str) -> None:
        """Give a file its name if it is text."""
        try:
            _check_text(part, name)
        except HttpError:
            part.unlink()
            raise
        part.replace(self.text / name)
        self.__dict__.pop("_files", None)

    def remove_text(self, name: str) -> None:
        """Remove a file."""
        if name not in self._files:
            raise HttpError(404, "not_found", "The corpus has no such file.", code="file_missing")
        (self.text / name).unlink()
        self.__dict__.pop("_files", None)

    def discard_results(self) -> None:
        """Remove all but the text and the record."""
        for path in (self.model, self.index):
            shutil.rmtree(path, ignore_errors=True)
        JobProgress.remove(self.path)

    def remove(self) -> None:
        """Remove the corpus; it is renamed first, so that a kill leaves nothing that looks like a corpus."""
        (self.path / RECORD).unlink(missing_ok=True)
        shutil.rmtree(self.path)


def shorten_paths(message: str, folder: Path) -> str:
    """A message with paths inside of a corpus as `text/novel.txt`."""
    return message.replace(f"{folder}{os.sep}", "")


def _is_complete(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not path.name.startswith(".")


def _describe(path: Path) -> CorpusFile:
    return CorpusFile(name=path.name, bytes=path.stat().st_size, encoding=_read_encoding(path, path.name))


def _read_encoding(path: Path, name: str) -> str | None:
    """The encoding of the beginning of a file."""
    with path.open("rb") as raw:
        stream = Utf8Stream(raw, name)
        buffer = bytearray(SAMPLE_BYTES)
        try:
            while stream.detected is None and stream.readinto(buffer):
                pass
        except PolysemeError:  # damaged further on: the job says where
            pass
    return None if stream.detected is None else stream.detected.name


def _check_text(path: Path, name: str) -> None:
    """Refuse compressed and binary data; damage further on is found by the job."""
    with path.open("rb") as raw:
        head = raw.read(4)
        kind = next((kind for magic, kind in PACKED.items() if head.startswith(magic)), None)
        if kind is not None:
            raise invalid(f"This is {kind} data, not text. Save it as plain text.", "file_packed", kind=kind)
        raw.seek(0)
        stream, size = Utf8Stream(raw, name), 0
        try:  # an error comes after the text before it
            while size < 2 * SAMPLE_BYTES and (text := stream.read(SAMPLE_BYTES)):
                size += len(text)
        except PolysemeError:
            message = "This is no text in an encoding that can be recognised. Save it as UTF-8."
            raise invalid(message, "file_binary") from None
