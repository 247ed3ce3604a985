"""Zip archives of models, opened with suspicion.

    a .zip  ->  formats.models.archive  ->  formats.models.open

A zip can write outside its folder, hide links, and unpack to petabytes. The whole archive is refused
for one suspicious name; only a model's own files are unpacked, by their bare names, into a folder that
only this user can read and that is gone when the model is loaded. Bytes are counted as they come out,
whatever the archive declares. Archives inside the archive stay closed.
"""

from __future__ import annotations

import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath

from polyseme.errors import FormatError

MAX_BYTES = 20 * 10**9  # the largest published model has less than 1 GB
MAX_RATIO = 200  # unpacked to packed; weights reach about 1.1, a vocabulary 5
SMALL_BYTES = 100 * 10**6  # below this, any ratio will do
MAX_MEMBERS = 10_000
BLOCK_BYTES = 1 << 20
WEIGHTS = (".hdf5", ".h5", ".safetensors", ".pkl")
WANTED = (*WEIGHTS, ".json", ".txt", ".txt.gz", ".dic")
ENCRYPTED = 0x1 | 0x40 | 0x2000  # flag bits: encrypted, strongly encrypted, encrypted directory


@contextmanager
def unpack_archive(path: Path) -> Iterator[Path]:
    """A temporary folder with the files of the one model in the zip `path`."""
    # On Windows a file that is still open cannot be removed: no reason to fail after a good load.
    with tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                _refuse_tricks(members, path)
                _unpack(archive, _model_members(members, path), folder, path)
        except (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, ValueError) as problem:
            raise FormatError(f"{path}: damaged or not a zip ({problem}). Copy it again.") from None
        except (NotImplementedError, RuntimeError) as problem:
            raise FormatError(f"{path}: cannot be unpacked ({problem}). Unpack it by other means.") from None
        except OSError as problem:
            raise FormatError(
                f"{path}: cannot be unpacked into {folder.parent} ({problem.strerror or problem}). "
                "Unpack it where there is room, and load the folder."
            ) from None
        yield folder


def _refuse_tricks(members: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse the archive for the first member that an honest one would not have."""
    if len(members) > MAX_MEMBERS:
        raise FormatError(f"{path}: holds {len(members):,} files; a model has about six. Unpack it by hand.")
    seen: set[str] = set()
    for member in members:
        name = member.orig_filename  # as stored: `filename` is cut at a NUL
        reason = _find_trick(member, name)
        if reason is None and name in seen:
            reason = "is there twice"
        if reason is not None:
            raise FormatError(
                f"{path}: {name!r:.100} {reason}: refused. "
                "If you trust the archive, unpack it and load the folder."
            )
        seen.add(name)


def _find_trick(member: zipfile.ZipInfo, name: str) -> str | None:
    """What is wrong with `member`, or None."""
    if name.startswith("/") or "\\" in name or ":" in name:
        return "is an absolute path, or one of another system"
    if ".." in name.split("/"):
        return "leads out of the archive"
    if not name or any(ord(character) < 32 for character in name):
        return "has an unprintable name"
    if member.flag_bits & ENCRYPTED:
        return "is encrypted"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is no ordinary file"
    return None


def _model_members(members: list[zipfile.ZipInfo], path: Path) -> list[zipfile.ZipInfo]:
    """The files of the archive's one model: all that could matter in the folder with the weights."""
    files = [member for member in members if not member.is_dir() and _is_wanted(member)]
    weights = [member for member in files if member.filename.lower().endswith(WEIGHTS)]
    folders = sorted({str(PurePosixPath(member.filename).parent) for member in weights})
    if not folders:
        found = ", ".join(member.filename for member in members[:8]) or "nothing"
        raise FormatError(
            f"{path}: no model in it. Looked for {', '.join('*' + ending for ending in WEIGHTS)}; "
            f"found {found}."
        )
    if len(folders) > 1:
        raise FormatError(
            f"{path}: weights in several folders ({', '.join(folders[:8])}). "
            "Unpack it and load the folder of one model."
        )
    chosen = [member for member in files if str(PurePosixPath(member.filename).parent) == folders[0]]
    names = [PurePosixPath(member.filename).name.casefold() for member in chosen]
    if len(set(names)) < len(names):
        raise FormatError(f"{path}: holds names that differ in upper and lower case alone: refused.")
    return chosen


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    """Whether a model could need `member`: not hidden, not a Mac's shadow of a file, a known ending."""
    parts = PurePosixPath(member.filename).parts
    if not parts or parts[0] == "__MACOSX" or parts[-1].startswith("."):
        return False
    return parts[-1].lower().endswith(WANTED)


def _unpack(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], folder: Path, path: Path) -> None:
    """Write `members` into `folder` by their bare names, counting the bytes that really come out."""
    most = min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * path.stat().st_size))
    total = 0
    for member in members:
        with (
            archive.open(member) as source,
            (folder / PurePosixPath(member.filename).name).open("xb") as target,
        ):
            while block := source.read(BLOCK_BYTES):
                total += len(block)
                if total > most:
                    raise FormatError(
                        f"{path}: unpacks to more than {most:,} bytes, too much for a file of "
                        f"{path.stat().st_size:,}: refused. If you trust it, unpack it and load the folder."
                    )
                target.write(block)
