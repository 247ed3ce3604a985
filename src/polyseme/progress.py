"""How far a long reading of text has come: a bar on a terminal, plain lines elsewhere.

    text.reading (lines)  ->  progress  ->  standard error

The share that is done is counted in bytes of the text, where the size is known.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from polyseme.text.reading import Line, files_below, home

EVERY = 10.0  # seconds between two plain lines


class Progress:
    """Shows tokens a second and the time left while `texts` are read."""

    def __init__(self, *texts: str | Path) -> None:
        self._total = text_bytes(*texts)
        self._done = self._tokens = 0
        self._start = self._shown = time.monotonic()
        self._bar: RichProgress | None = None
        console = Console(stderr=True)
        if console.is_terminal:
            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("reading", total=self._total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def read(self, line: Line) -> None:
        """Count a line that was read."""
        self._done += len(line.text.encode("utf-8", "surrogatepass")) + 1

    def embedded(self, tokens: int) -> None:
        """Count tokens that were embedded, and show it now and then."""
        self._tokens += tokens
        now = time.monotonic()
        rate = self._tokens / max(now - self._start, 1e-9)
        if self._bar is not None:
            self._bar.update(
                self._task, completed=self._done, description=f"{self._tokens:,} tokens, {rate:,.0f}/s"
            )
        elif now - self._shown >= EVERY:
            self._shown = now
            print(f"{self._tokens:,} tokens, {rate:,.0f}/s{self._left(now)}", file=sys.stderr, flush=True)

    def building(self, share: float) -> None:
        """Show how much of what comes after the reading is done."""
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, total=1.0, completed=share, description="building")
        elif now - self._shown >= EVERY:
            self._shown = now
            print(f"building, {share:.0%}", file=sys.stderr, flush=True)

    def _left(self, now: float) -> str:
        """', 40%, 90 s left' where the size of the text is known."""
        if not self._total or not self._done:
            return ""
        share = min(self._done / self._total, 1.0)
        return f", {share:.0%}, {(now - self._start) * (1 - share) / share:,.0f} s left"


def text_bytes(*texts: str | Path) -> int | None:
    """Bytes of text below the paths; None where that cannot be known beforehand (stdin, compressed)."""
    paths = [Path(home(text)) for text in texts]
    files = [file for path in paths for file in (files_below(path) if path.is_dir() else [path])]
    if "-" in map(str, texts) or any(file.suffix in (".gz", ".zst") or not file.is_file() for file in files):
        return None
    return sum(file.stat().st_size for file in files)
