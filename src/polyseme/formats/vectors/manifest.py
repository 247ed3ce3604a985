"""What a folder of vectors holds: which model and settings made it, and a checksum of each shard.

    bulk  ->  formats.vectors.manifest  ->  manifest.json, or manifest-1-of-4.json for a share
        ->  formats.vectors.readers

While a share is being written, its manifest is a journal, `….json.running`: the head, then a line for each
finished shard. A line that a kill cut off does not count. The journal is locked, so that no two processes
write the same share, and becomes the manifest at the end.

The text is cut into blocks, and block b belongs to share b % n + 1; `first` counts from the block's start.
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

from pydantic import BaseModel, ConfigDict, ValidationError

from polyseme.errors import FormatError, UsageError
from polyseme.io.atomic import new_file
from polyseme.text.fingerprint import checksum

if sys.platform != "win32":
    import fcntl

Kind = TypeVar("Kind", bound=BaseModel)
VERSION = 1
RUNNING = ".running"
_MANIFEST = re.compile(r"manifest(-(\d+)-of-(\d+))?\.json(\.running)?")
_SHARD = re.compile(r"\.?shard-(\d+)-(\d+)(-\w{8})?\.\w+")


class Share(NamedTuple):
    """The part of the blocks that one process does: number i of n, from 1."""

    number: int
    of: int

    def has(self, block: int) -> bool:
        """Whether a block belongs to this share."""
        return block % self.of == self.number - 1

    @property
    def name(self) -> str:
        """The file name of the share's manifest."""
        return "manifest.json" if self.of == 1 else f"manifest-{self.number}-of-{self.of}.json"


ALL = Share(1, 1)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shard(_Frozen):
    """A file of vectors of consecutive sentences of a block."""

    file: str
    block: int
    first: int  # sentence of the block
    sentences: int
    tokens: int
    cut: int  # tokens longer than the model's character limit
    last: bool  # whether the block ends here
    bytes: int
    sha256: str


class TextFile(_Frozen):
    """A file of text as it was read."""

    file: str
    bytes: int
    time: int  # nanoseconds; only to see that a file need not be read again
    content: str  # a hash


class ManifestHeader(_Frozen):
    """What must be the same for a folder to be gone on with."""

    version: int = VERSION
    model: str  # a hash of weights, settings and vocabulary
    settings: dict[str, Any]
    text: tuple[TextFile, ...]
    share: Share

    def difference(self, other: ManifestHeader) -> str | None:
        """What differs, old and new, or None; the paths of the text and the share's number may."""
        if self.model != other.model:
            return f"the model {self.model[:12]}, this one is {other.model[:12]}"
        for name, value in self.settings.items():
            if value != other.settings.get(name):
                return f"{name} {_format_value(value)}, now {_format_value(other.settings.get(name))}"
        if self.share.of != other.share.of:
            return f"{self.share.of} shares, now {other.share.of}"
        ours, theirs = ([(file.bytes, file.content) for file in head.text] for head in (self, other))
        if len(ours) != len(theirs):
            return f"a text of {len(ours)} files, now {len(theirs)}"
        changed = [file.file for file, one, two in zip(other.text, ours, theirs, strict=True) if one != two]
        return f"another text: {changed[0]} has other content" if changed else None


class Manifest(_Frozen):
    """A share that is finished."""

    head: ManifestHeader
    shards: tuple[Shard, ...]


class ShardJournal:
    """The shards of one share that are finished, kept on disk as they come."""

    def __init__(self, file: IO[bytes], shards: Iterable[Shard], complete: bool) -> None:
        self._file = file
        self.shards = {shard.file: shard for shard in shards}
        self.complete = complete  # nothing is left to do

    def add(self, shard: Shard) -> None:
        """Note a shard; when this returns, it is on the disk."""
        self.shards[shard.file] = shard
        self._file.write(_line(shard))
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def open_journal(folder: Path, head: ManifestHeader) -> Iterator[ShardJournal]:
    """The journal of a share, with what was finished before and is still there; at the end, the manifest.

    A folder that was begun with another model, text or setting is refused.
    """
    check_headers(folder, head)
    target = folder / head.share.name
    try:
        with _locked(target.with_name(target.name + RUNNING)) as file:
            _remove_leftovers(folder, head.share)
            whole = target.exists()
            finished = read_manifest(target).shards if whole else _read_shards(file)
            kept = _keep_intact(folder, finished)
            journal = ShardJournal(file, kept, complete=whole and len(kept) == len(finished))
            if not journal.complete:
                _rewrite_journal(file, head, kept)
                target.unlink(missing_ok=True)
            yield journal
            if not journal.complete:
                _write_manifest(target, head, journal.shards.values())
            Path(file.name).unlink()
    except OSError as problem:
        raise UsageError(f"{folder}: writing failed ({problem.strerror or problem}).") from problem


def check_headers(folder: Path, head: ManifestHeader) -> None:
    """Refuse a folder that was begun with something else than `head` says."""
    for name, other in read_headers(folder).items():
        difference = other.difference(head)
        if difference:
            anew = "replace it with `force=True`" if head.share.of == 1 else "remove this one"
            raise UsageError(
                f"{folder}: {name} says that it was begun with {difference}. "
                f"Choose another folder, or {anew}."
            )


def _keep_intact(folder: Path, shards: Iterable[Shard]) -> list[Shard]:
    """The shards whose files have the right size, and the last of them the right content, too."""
    kept = []
    for shard in shards:
        path = folder / shard.file
        if path.is_file() and path.stat().st_size == shard.bytes:
            kept.append(shard)
    if kept and checksum(folder / kept[-1].file) != kept[-1].sha256:
        kept.pop()  # it is the one that a fault of the machine would have hit
    return kept


def _write_manifest(target: Path, head: ManifestHeader, shards: Iterable[Shard]) -> None:
    ordered = sorted(shards, key=lambda shard: (shard.block, shard.first))
    manifest = Manifest(head=head, shards=tuple(ordered))
    with new_file(target, force=True) as temporary:
        temporary.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_headers(folder: Path) -> dict[str, ManifestHeader]:
    """The heads of all manifests and journals of a folder by their names."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not _MANIFEST.fullmatch(path.name):
            continue
        try:
            with path.open("rb") as file:
                text = file.readline() if path.name.endswith(RUNNING) else file.read()
        except FileNotFoundError:
            continue  # another process has just finished this journal
        if not path.name.endswith(RUNNING):
            found[path.name] = _parse(Manifest, text, path).head
        elif text.endswith(b"\n"):  # else it was killed before it began
            found[path.name] = _parse(ManifestHeader, text, path)
    return found


def read_folder(folder: Path) -> list[Manifest]:
    """The manifests of all shares; refused where one is missing or not finished."""
    names = [match for match in map(_MANIFEST.fullmatch, os.listdir(folder)) if match]
    if not names:
        raise FormatError(f"{folder}: no folder of vectors: it has no manifest.json.")
    of = max(int(match[3] or 1) for match in names)
    paths = [folder / Share(number, of).name for number in range(1, of + 1)]
    missing = [str(number) for number, path in enumerate(paths, 1) if not path.exists()]
    if missing:
        what = f"of {of} shares, {', '.join(missing[:10])} are" if of > 1 else "it is"
        raise FormatError(f"{folder}: {what} not finished. Run the same command again to go on.")
    manifests = [read_manifest(path) for path in paths]
    for path, manifest in zip(paths, manifests, strict=True):
        difference = manifests[0].head.difference(manifest.head)
        if difference:
            raise FormatError(f"{path}: made otherwise than {paths[0].name}: {difference}.")
    return manifests


def read_manifest(path: Path) -> Manifest:
    """One finished share."""
    try:
        return _parse(Manifest, path.read_bytes(), path)
    except OSError as problem:
        raise FormatError(f"{path}: cannot be read ({problem.strerror}).") from None


def remove_output(folder: Path) -> None:
    """Remove all that `embed` wrote into a folder, and nothing else."""
    for path in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
        if is_output_file(path.name):
            path.unlink()


def is_output_file(name: str) -> bool:
    """Whether `embed` gives such names to files in a folder."""
    hidden_manifest = name.startswith(".manifest") and name.endswith(".json")
    return bool(_MANIFEST.fullmatch(name) or _SHARD.fullmatch(name) or hidden_manifest)


def _parse(kind: type[Kind], text: bytes, path: Path) -> Kind:
    try:
        return kind.model_validate_json(text)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise FormatError(f"{path}: not a manifest of vectors ({where}: {first['msg']}).") from None


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The journal, opened by this process alone. A system without fcntl has no lock."""
    with path.open("ab+") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{path}: another process is writing this share. Wait for it, or take another `shard`."
                ) from None
        yield file


def _read_shards(file: IO[bytes]) -> tuple[Shard, ...]:
    """The shards that a journal notes, up to a line that was cut off; of a file noted twice, the later."""
    file.seek(0)
    lines = [line for line in file.readlines()[1:] if line.endswith(b"\n")]
    shards = [_parse(Shard, line, Path(file.name)) for line in lines]
    return tuple({shard.file: shard for shard in shards}.values())


def _rewrite_journal(file: IO[bytes], head: ManifestHeader, shards: list[Shard]) -> None:
    """Have the journal hold the head and `shards` and no more."""
    wanted = b"".join(map(_line, (head, *shards)))
    file.seek(0)
    if file.read(len(wanted)) == wanted:
        file.truncate(len(wanted))  # a last line may have been cut off
    else:
        file.truncate(0)
        file.write(wanted)
    file.flush()
    os.fsync(file.fileno())


def _line(entry: BaseModel) -> bytes:
    return f"{entry.model_dump_json()}\n".encode()


def _remove_leftovers(folder: Path, share: Share) -> None:
    """Remove what a killed process of this share left under temporary names."""
    for path in folder.iterdir():
        found = _SHARD.fullmatch(path.name)
        shard = found and path.name.startswith(".") and share.has(int(found[1]))
        if shard or (path.name.startswith(f".{Path(share.name).stem}-") and path.suffix == ".json"):
            path.unlink()
