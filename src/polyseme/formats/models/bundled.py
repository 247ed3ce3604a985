"""Models that come with the package: a name to the folder of its files, whole and unchanged.

    polyseme/bundled/NAME/  ->  formats.models.bundled  ->  formats.models.open

Beside the folders stands SHA256SUMS, as `sha256sum` writes it, with a line for every file of theirs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from polyseme.errors import FormatError
from polyseme.text.fingerprint import checksum

FOLDER = Path(__file__).parents[2] / "bundled"
SUMS = "SHA256SUMS"
REINSTALL = "pip install --force-reinstall --no-deps polyseme"


@cache
def _read_sums(folder: Path) -> dict[str, dict[str, str]]:
    """Of every model the files and their checksums."""
    sums: dict[str, dict[str, str]] = {}
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError:  # a package that somebody made smaller
        return sums
    for line in lines:
        expected, _, place = line.partition("  ")
        name, _, file = place.partition("/")
        sums.setdefault(name, {})[file] = expected
    return sums


def bundled_names() -> list[str]:
    """The names that `bundled_model` knows."""
    return sorted(_read_sums(FOLDER))


def verify_bundled(name: str) -> Path:
    """The folder of the model of this name; a file that is missing or was changed is refused."""
    folder = FOLDER / name
    for file, expected in _read_sums(FOLDER)[name].items():
        try:
            found = checksum(folder / file)
        except OSError as problem:
            raise FormatError(
                f"{folder / file}: cannot be read ({problem.strerror}). Install Polyseme again: {REINSTALL}"
            ) from None
        if found != expected:
            raise FormatError(
                f"{folder / file}: damaged: its SHA-256 is {found}, expected {expected}. "
                f"Install Polyseme again: {REINSTALL}"
            )
    return folder
