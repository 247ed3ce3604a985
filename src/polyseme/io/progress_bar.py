"""A bar on a terminal, plain lines elsewhere, on standard error.

    text, done, total  ->  bar  ->  a person who waits

A change of the total begins a new phase, with a time left of its own.
"""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

EVERY = 10.0  # seconds between two plain lines


class ProgressBar:
    """What a long job shows."""

    def __init__(self, text: str = "") -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self._bar = (
            Progress(*columns, *times, console=console, transient=True) if console.is_terminal else None
        )
        self._task = self._bar.add_task(text, total=None) if self._bar else None
        self._shown = time.monotonic()
        self._phase: tuple[float | None, float] = (None, self._shown)  # its total, and when it began

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def update(self, text: str, done: float, total: float | None) -> None:
        """So much is done; on a plain output it is said now and then. Without a total, no share is known."""
        now = time.monotonic()
        if total != self._phase[0]:
            self._phase = total, now if self._phase[0] else self._phase[1]
        if self._bar and self._task is not None:
            self._bar.update(self._task, description=text, completed=done, total=total)
        elif now - self._shown >= EVERY:
            self._shown = now
            print(f"{text}{self._left(done, total, now)}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._bar:
            self._bar.console.print(text, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _left(self, done: float, total: float | None, now: float) -> str:
        """', 40%, 90 s left', as far as it is known."""
        if not total or not done:
            return ""
        share = min(done / total, 1.0)
        return f", {share:.0%}, {(now - self._phase[1]) * (1 - share) / share:,.0f} s left"
