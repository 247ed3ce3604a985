"""Unpack zip archives of models safely.

    a .zip  ->  formats.models.archive  ->  formats.models.open

A zip can write outside its folder, contain links, and unpack to petabytes. One suspicious name is enough to
refuse the whole archive. Only the model's files are unpacked, by their base names, into a folder that only
this user can read and that is removed once the model is loaded. The bytes that come out are counted, whatever
the archive declares. Archives inside the archive are not unpacked.
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
SMALL_BYTES = 100 * 10**6  # below this, any ratio is allowed
MAX_MEMBERS = 10_000
BLOCK_BYTES = 1 << 20
WEIGHTS_ENDINGS = (".hdf5", ".h5", ".safetensors", ".pkl")
MODEL_ENDINGS = (*WEIGHTS_ENDINGS, ".json", ".txt", ".txt.gz", ".dic")
ENCRYPTED_FLAGS = 0x1 | 0x40 | 0x2000  # flag bits: encrypted, strongly encrypted, encrypted directory


@contextmanager
def unpack_archive(
    path: Path,
    *,
    max_members: int = MAX_MEMBERS,
    max_bytes: int = MAX_BYTES,
    small_bytes: int = SMALL_BYTES,
) -> Iterator[Path]:
    """Unpack the model in a zip into a temporary folder, which is removed when the block ends.

    Args:
        path: The zip.
        max_members: Files that the zip may contain.
        max_bytes: Size that the model may have, unpacked.
        small_bytes: Unpacked size below which any ratio of compression is allowed.

    Raises:
        FormatError: If the archive is damaged, suspicious, or does not hold exactly one model.

    """
    # On Windows an open file cannot be removed, which is no reason to fail after a good load.
    with tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                _check_members(members, path, max_members)
                limit = min(max_bytes, max(small_bytes, MAX_RATIO * path.stat().st_size))
                _unpack(archive, _select_members(members, path), folder, path, limit)
        except (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, ValueError) as problem:
            raise FormatError(f"{path}: damaged or not a zip file ({problem}). Copy it again.") from None
        except (NotImplementedError, RuntimeError) as problem:
            raise FormatError(
                f"{path}: cannot be unpacked ({problem}). Unpack it with another program."
            ) from None
        except OSError as problem:
            raise FormatError(
                f"{path}: cannot be unpacked into {folder.parent} ({problem.strerror or problem}). "
                "Unpack it on a disk with enough space, and load the folder."
            ) from None
        yield folder


def _check_members(members: list[zipfile.ZipInfo], path: Path, max_members: int) -> None:
    """Refuse the archive if one member is suspicious."""
    if len(members) > max_members:
        raise FormatError(
            f"{path}: contains {len(members):,} files; a model has about six. Unpack it yourself."
        )
    seen: set[str] = set()
    for member in members:
        name = member.orig_filename  # as stored: `filename` is cut at a NUL
        reason = _find_problem(member, name)
        if reason is None and name in seen:
            reason = "occurs twice"
        if reason is not None:
            raise FormatError(
                f"{path}: {name!r:.100} {reason}: refused. "
                "If you trust the archive, unpack it and load the folder."
            )
        seen.add(name)


def _find_problem(member: zipfile.ZipInfo, name: str) -> str | None:
    """What is suspicious about `member`, or None."""
    if name.startswith("/") or "\\" in name or ":" in name:
        return "is an absolute or a Windows path"
    if ".." in name.split("/"):
        return "points outside the archive"
    if not name or any(ord(character) < 32 for character in name):
        return "has unprintable characters in its name"
    if member.flag_bits & ENCRYPTED_FLAGS:
        return "is encrypted"
    file_type = stat.S_IFMT(member.external_attr >> 16)
    if file_type == stat.S_IFLNK:
        return "is a link"
    if file_type not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is not a regular file"
    return None


def _select_members(members: list[zipfile.ZipInfo], path: Path) -> list[zipfile.ZipInfo]:
    """The files of the archive's model: those in the folder of the weights that a model may have."""
    files = [member for member in members if not member.is_dir() and _is_wanted(member)]
    weights = [member for member in files if member.filename.lower().endswith(WEIGHTS_ENDINGS)]
    folders = sorted({str(PurePosixPath(member.filename).parent) for member in weights})
    if not folders:
        present = ", ".join(member.filename for member in members[:8]) or "nothing"
        raise FormatError(
            f"{path}: contains no model. Looked for {', '.join('*' + ending for ending in WEIGHTS_ENDINGS)}; "
            f"found {present}."
        )
    if len(folders) > 1:
        raise FormatError(
            f"{path}: weights in several folders ({', '.join(folders[:8])}). "
            "Unpack it and load the folder of one model."
        )
    chosen = [member for member in files if str(PurePosixPath(member.filename).parent) == folders[0]]
    names = [PurePosixPath(member.filename).name.casefold() for member in chosen]
    if len(set(names)) < len(names):
        raise FormatError(f"{path}: contains names that differ only in upper and lower case: refused.")
    return chosen


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    """Whether a model may have this file: not hidden, not macOS metadata, with a known ending."""
    parts = PurePosixPath(member.filename).parts
    if not parts or parts[0] == "__MACOSX" or parts[-1].startswith("."):
        return False
    return parts[-1].lower().endswith(MODEL_ENDINGS)


def _unpack(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], folder: Path, path: Path, limit: int
) -> None:
    """Write `members` into `folder` by their base names; at most `limit` bytes may come out."""
    total = 0
    for member in members:
        with (
            archive.open(member) as source,
            (folder / PurePosixPath(member.filename).name).open("xb") as file,
        ):
            while block := source.read(BLOCK_BYTES):
                total += len(block)
                if total > limit:
                    raise FormatError(
                        f"{path}: unpacks to more than {limit:,} bytes, too much for a file of "
                        f"{path.stat().st_size:,}: refused. If you trust it, unpack it and load the folder."
                    )
                file.write(block)
