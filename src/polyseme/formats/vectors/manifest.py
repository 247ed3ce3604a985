"""The manifest of a folder of vectors: the model and settings it was made with, and a checksum per shard.

    bulk_embedding  ->  formats.vectors.manifest  ->  manifest.json, or manifest-1-of-4.json for a part
        ->  formats.vectors.readers

While a part is being written, its manifest is a journal, `….json.running`: the header, then one line per
finished shard; an incomplete last line is ignored. The journal is locked, so that no two processes write the
same part, and replaced by the manifest at the end.

The text is divided into blocks; block b belongs to part b % n + 1. `first` counts from a block's start.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from polyseme.errors import FormatError, UsageError
from polyseme.io.atomic import new_file
from polyseme.text.fingerprint import checksum

if sys.platform != "win32":
    import fcntl

Entry = TypeVar("Entry", bound=BaseModel)
VERSION = 1
RUNNING = ".running"
MANIFEST_NAME = re.compile(r"manifest(-(\d+)-of-(\d+))?\.json(\.running)?")
SHARD_NAME = re.compile(r"\.?shard-(\d+)-(\d+)(-\w{8})?\.\w+")


class Part(NamedTuple):
    """The blocks that one process embeds: number i of n, from 1."""

    number: int
    of: int

    def has(self, block: int) -> bool:
        """Whether a block belongs to this part."""
        return block % self.of == self.number - 1

    @property
    def name(self) -> str:
        """The file name of the part's manifest."""
        return "manifest.json" if self.of == 1 else f"manifest-{self.number}-of-{self.of}.json"


ALL = Part(1, 1)


class _Frozen(BaseModel):
    """What is stored; a field whose name in the files differs has an alias."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Shard(_Frozen):
    """A file of vectors of consecutive sentences of a block."""

    file: str
    block: int
    first: int  # sentence of the block
    sentences: int
    tokens: int
    truncated: int = Field(validation_alias="cut", serialization_alias="cut")
    last: bool  # whether the block ends here
    bytes: int
    sha256: str


class TextFile(_Frozen):
    """A text file as it was when it was read."""

    file: str
    bytes: int
    time: int  # of modification, in nanoseconds: an unchanged file is not hashed again
    content: str  # a hash


class ManifestHeader(_Frozen):
    """What must be the same to resume a folder."""

    version: int = Field(default=VERSION, ge=1, le=VERSION)
    model: str  # a hash of weights, settings and vocabulary
    settings: dict[str, Any]
    text: tuple[TextFile, ...]
    part: Part = Field(validation_alias="share", serialization_alias="share")

    def difference(self, other: ManifestHeader) -> str | None:
        """Describe what differs, or None; the paths of texts and the number of the part may differ."""
        if self.model != other.model:
            return f"the model {self.model[:12]}, now {other.model[:12]}"
        for name, value in self.settings.items():
            if value != other.settings.get(name):
                return f"{name} {_format_value(value)}, now {_format_value(other.settings.get(name))}"
        if self.part.of != other.part.of:
            return f"{self.part.of} parts, now {other.part.of}"
        old, new = ([(file.bytes, file.content) for file in header.text] for header in (self, other))
        if len(old) != len(new):
            return f"a text of {len(old)} files, now {len(new)}"
        changed = [file.file for file, before, now in zip(other.text, old, new, strict=True) if before != now]
        return f"another text: {changed[0]} has changed" if changed else None


class Manifest(_Frozen):
    """A finished part."""

    head: ManifestHeader
    shards: tuple[Shard, ...]


class ShardJournal:
    """The finished shards of one part, on disk as soon as they are added."""

    def __init__(self, file: IO[bytes], shards: Iterable[Shard], complete: bool) -> None:
        self._file = file
        self.shards = {shard.file: shard for shard in shards}
        self.complete = complete  # all shards exist

    def add(self, shard: Shard) -> None:
        """Add a shard; it is on disk when this returns."""
        self.shards[shard.file] = shard
        self._file.write(_format_line(shard))
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def open_journal(folder: Path, header: ManifestHeader) -> Iterator[ShardJournal]:
    """Open the journal of a part, with the shards of earlier runs; at the end it becomes the manifest.

    Raises:
        UsageError: If the folder was begun with another model, text or setting, or another process writes it.

    """
    check_headers(folder, header)
    manifest = folder / header.part.name
    try:
        with _locked(manifest.with_name(manifest.name + RUNNING)) as file:
            _remove_leftovers(folder, header.part)
            is_finished = manifest.exists()
            recorded = read_manifest(manifest).shards if is_finished else _read_shards(file)
            intact = _find_intact(folder, recorded)
            journal = ShardJournal(file, intact, complete=is_finished and len(intact) == len(recorded))
            if not journal.complete:
                _rewrite_journal(file, header, intact)
                manifest.unlink(missing_ok=True)
            yield journal
            if not journal.complete:
                _write_manifest(manifest, header, journal.shards.values())
            Path(file.name).unlink()
    except OSError as problem:
        raise UsageError(
            f"{folder}: writing failed ({problem.strerror or problem}). Free space, or choose another path."
        ) from problem


def check_headers(folder: Path, header: ManifestHeader) -> None:
    """Refuse a folder that was begun with another model, text or setting."""
    for name, existing in read_headers(folder).items():
        difference = existing.difference(header)
        if difference:
            overwrite = "use `force=True` to overwrite this one" if header.part.of == 1 else "remove this one"
            raise UsageError(
                f"{folder}: cannot resume, {name} was begun with {difference}. "
                f"Choose another folder, or {overwrite}."
            )


def _find_intact(folder: Path, shards: Iterable[Shard]) -> list[Shard]:
    """The shards whose files have the right size; of the last one the content is checked, too."""
    intact = []
    for shard in shards:
        path = folder / shard.file
        if path.is_file() and path.stat().st_size == shard.bytes:
            intact.append(shard)
    if intact and checksum(folder / intact[-1].file) != intact[-1].sha256:
        intact.pop()  # a crash of the machine damages the last file
    return intact


def _write_manifest(path: Path, header: ManifestHeader, shards: Iterable[Shard]) -> None:
    ordered = sorted(shards, key=lambda shard: (shard.block, shard.first))
    manifest = Manifest(head=header, shards=tuple(ordered))
    with new_file(path, force=True) as temporary:
        temporary.write_text(manifest.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")


def read_headers(folder: Path) -> dict[str, ManifestHeader]:
    """The headers of all manifests and journals of a folder, by file name."""
    headers = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not MANIFEST_NAME.fullmatch(path.name):
            continue
        try:
            with path.open("rb") as file:
                text = file.readline() if path.name.endswith(RUNNING) else file.read()
        except FileNotFoundError:
            continue  # another process has just finished this journal
        except OSError as problem:
            raise FormatError(f"{path}: cannot be read ({problem.strerror}). Delete it.") from None
        if not path.name.endswith(RUNNING):
            headers[path.name] = _parse(Manifest, text, path).head
        elif text.endswith(b"\n"):  # else the process was killed before the first line was written
            headers[path.name] = _parse(ManifestHeader, text, path)
    return headers


def read_folder(folder: Path) -> list[Manifest]:
    """The manifests of all parts; an error if one is missing or not finished."""
    names = [match for match in map(MANIFEST_NAME.fullmatch, os.listdir(folder)) if match]
    if not names:
        raise FormatError(f"{folder}: not a folder of vectors: manifest.json is missing. Check the path.")
    of = max(int(match[3] or 1) for match in names)
    paths = [folder / Part(number, of).name for number in range(1, of + 1)]
    missing = [str(number) for number, path in enumerate(paths, 1) if not path.exists()]
    if missing:
        unfinished = f"of {of} parts, {', '.join(missing[:10])} are" if of > 1 else "it is"
        raise FormatError(
            f"{folder}: {unfinished} not finished. Run the same `polyseme.embed` again to resume."
        )
    manifests = [read_manifest(path) for path in paths]
    for path, manifest in zip(paths, manifests, strict=True):
        difference = manifests[0].head.difference(manifest.head)
        if difference:
            raise FormatError(f"{path}: differs from {paths[0].name}: {difference}. Embed all parts again.")
    return manifests


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a part."""
    try:
        return _parse(Manifest, path.read_bytes(), path)
    except OSError as problem:
        raise FormatError(f"{path}: cannot be read ({problem.strerror}). Check its permissions.") from None


def remove_output(folder: Path) -> None:
    """Remove the files that `embed` wrote into a folder, and nothing else."""
    for path in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
        if is_output_file(path.name):
            path.unlink()


def is_output_file(name: str) -> bool:
    """Whether a file name is one of those that `embed` writes."""
    hidden_manifest = name.startswith(".manifest") and name.endswith(".json")
    return bool(MANIFEST_NAME.fullmatch(name) or SHARD_NAME.fullmatch(name) or hidden_manifest)


def _parse(entry: type[Entry], text: bytes, path: Path) -> Entry:
    try:
        return entry.model_validate_json(text)
    except ValidationError as problem:
        first = problem.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise FormatError(
            f"{path}: not a manifest of vectors ({field}: {first['msg']}). Delete it and embed again."
        ) from None


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open a journal with an exclusive lock. Systems without fcntl have no lock."""
    with path.open("ab+") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{path}: another process is writing this part. Wait for it, or choose another `shard`."
                ) from None
        yield file


def _read_shards(file: IO[bytes]) -> tuple[Shard, ...]:
    """The shards in a journal, without an incomplete last line; of a file that occurs twice, the later."""
    file.seek(0)
    lines = [line for line in file.readlines()[1:] if line.endswith(b"\n")]
    shards = [_parse(Shard, line, Path(file.name)) for line in lines]
    return tuple({shard.file: shard for shard in shards}.values())


def _rewrite_journal(file: IO[bytes], header: ManifestHeader, shards: list[Shard]) -> None:
    """Make the journal contain the header and `shards`, and nothing else."""
    content = b"".join(map(_format_line, (header, *shards)))
    file.seek(0)
    if file.read(len(content)) == content:
        file.truncate(len(content))  # removes an incomplete last line
    else:
        file.truncate(0)
        file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _format_line(entry: BaseModel) -> bytes:
    return f"{entry.model_dump_json(by_alias=True)}\n".encode()


def _remove_leftovers(folder: Path, part: Part) -> None:
    """Remove temporary files of a killed process of this part."""
    for path in folder.iterdir():
        match = SHARD_NAME.fullmatch(path.name)
        is_shard = match and path.name.startswith(".") and part.has(int(match[1]))
        if is_shard or (path.name.startswith(f".{Path(part.name).stem}-") and path.suffix == ".json"):
            path.unlink()
