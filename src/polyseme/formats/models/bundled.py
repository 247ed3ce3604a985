"""Models that come with the package: from a name to the folder of its files, verified by checksums.

    polyseme/bundled/NAME/  ->  formats.models.bundled  ->  formats.models.open

SHA256SUMS beside the folders, as `sha256sum` writes it, has one line per file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from polyseme.errors import FormatError
from polyseme.text.fingerprint import checksum

FOLDER = Path(__file__).parents[2] / "bundled"
SUMS_FILE = "SHA256SUMS"
REINSTALL = "pip install --force-reinstall --no-deps polyseme"


@cache
def _read_sums(folder: Path) -> dict[str, dict[str, str]]:
    """The files of every bundled model and their checksums."""
    sums: dict[str, dict[str, str]] = {}
    try:
        lines = (folder / SUMS_FILE).read_text(encoding="utf-8").splitlines()
    except OSError:  # somebody removed the models from the package
        return sums
    for line in lines:
        expected, _, path = line.partition("  ")
        name, _, file = path.partition("/")
        sums.setdefault(name, {})[file] = expected
    return sums


def list_bundled() -> list[str]:
    """The names of the bundled models."""
    return sorted(_read_sums(FOLDER))


def verify_bundled(name: str) -> Path:
    """The folder of a bundled model, after checking that its files are complete and unchanged.

    Raises:
        FormatError: If a file is missing or differs from its checksum.

    """
    folder = FOLDER / name
    for file, expected in _read_sums(FOLDER)[name].items():
        try:
            sha256 = checksum(folder / file)
        except OSError as problem:
            raise FormatError(
                f"{folder / file}: cannot be read ({problem.strerror}). Reinstall Polyseme: {REINSTALL}"
            ) from None
        if sha256 != expected:
            raise FormatError(
                f"{folder / file}: damaged: its SHA-256 is {sha256}, expected {expected}. "
                f"Reinstall Polyseme: {REINSTALL}"
            )
    return folder
