"""How far a long reading of text has come.

    text.reading (lines)  ->  progress  ->  bar

The share that is done is counted in bytes of the text, where the size is known.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from polyseme.io.progress_bar import ProgressBar
from polyseme.text.reading import Line, measure_bytes


class TextProgress:
    """Shows tokens a second and the time left while `texts` are read."""

    def __init__(self, *texts: str | Path) -> None:
        self._total = measure_bytes(*texts)
        self._done = self._tokens = 0
        self._start = time.monotonic()
        self._bar = ProgressBar("reading")

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)

    def read(self, line: Line) -> None:
        """Count a line that was read."""
        self._done += len(line.text.encode("utf-8", "surrogatepass")) + 1

    def embedded(self, tokens: int) -> None:
        """Count tokens that were embedded, and show it now and then."""
        self._tokens += tokens
        rate = self._tokens / max(time.monotonic() - self._start, 1e-9)
        self._bar.update(f"{self._tokens:,} tokens, {rate:,.0f}/s", self._done, self._total)

    def building(self, share: float) -> None:
        """Show how much of what comes after the reading is done."""
        self._bar.update("building", share, 1.0)
