"""Report how far a long job is: one kind of event, one way to receive it, one way to show it.

    corpus, training, embedding, indexing, tasks  ->  ProgressEvent  ->  a bar, plain lines, or a callback

Every verb takes `progress`. None shows progress on a terminal or in a notebook and nowhere else, True always
shows it (as plain lines where a bar is impossible), False never; a callable receives the events.
Output goes to standard error.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
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

LINE_INTERVAL = 10.0  # seconds between two plain lines
RATE_SECONDS = 600.0  # over which the time left is estimated: events may be a minute apart
BAR_DELAY = 1.0  # seconds before a bar appears, so that quick work shows none


@dataclass(frozen=True)
class ProgressEvent:
    """How far a job is.

    Attributes:
        stage: What is being done: "reading", "training", "embedding".
        done: How much of it is done, in any unit.
        total: How much there is, in the same unit; None if unknown.
        detail: Text to show beside the bar: "loss 3.21, 14,000 tokens/s".
        message: A line that stays on the screen, such as the scores of an epoch; None updates the bar.

    """

    stage: str
    done: float = 0.0
    total: float | None = None
    detail: str = ""
    message: str | None = None


OnProgress = Callable[[ProgressEvent], None]
ProgressOption = bool | OnProgress | None  # what a user passes as `progress`


@contextmanager
def open_progress(progress: ProgressOption, *, delay: float = BAR_DELAY) -> Iterator[OnProgress]:
    """Resolve the `progress` argument of a verb: to a bar, plain lines, a callback, or nothing.

    Args:
        progress: As every verb takes it; see the module. What a callback raises ends the work.
        delay: Seconds before a bar appears.

    """
    if callable(progress):
        yield progress
    elif progress or (progress is None and is_interactive()):
        with ProgressDisplay(delay) as bar:
            yield bar
    else:
        yield ignore_progress


def ignore_progress(event: ProgressEvent) -> None:
    """Receive events and show nothing."""


def is_interactive() -> bool:
    """Whether standard error is a terminal or this is a notebook."""
    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


def _has_bar(console: Console) -> bool:
    """Whether `console` can show a bar; rich needs ipywidgets for that in a notebook."""
    return find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal


class ProgressDisplay:
    """Shows events: a bar on a terminal or in a notebook with ipywidgets, plain lines elsewhere.

    Args:
        delay: Seconds before a bar appears; messages are shown at once.
        line_interval: Seconds between two plain lines.
        console: Where to show the bar; None is standard error.

    """

    def __init__(
        self,
        delay: float = BAR_DELAY,
        *,
        line_interval: float = LINE_INTERVAL,
        console: Console | None = None,
    ) -> None:
        console = console or Console(stderr=True)
        self._line_interval = line_interval
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        has_bar = _has_bar(console)
        # rich would send standard output to standard error, even if it goes to a file.
        is_seen = console.is_jupyter or sys.stdout.isatty()
        self._bar = (
            RichProgress(
                *columns,
                *times,
                console=console,
                transient=True,
                redirect_stdout=is_seen,
                speed_estimate_period=RATE_SECONDS,
            )
            if has_bar
            else None
        )
        self._task = self._bar.add_task("", total=None) if self._bar else None
        self._last_line = time.monotonic()
        self._timer = threading.Timer(delay, self._reach_delay) if has_bar and delay else None
        self._lock = threading.Lock()  # the timer has its own thread
        self._is_due = not delay
        self._has_event = self._is_shown = self._is_closed = False
        # The stage and its total: a change of either restarts the clock.
        self._stage: tuple[str, float | None] = ("", None)
        self._stage_start = self._last_line

    def __enter__(self) -> Self:
        if self._timer:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer:
            self._timer.cancel()
        with self._lock:
            self._is_closed = True
            if self._bar and self._is_shown:
                # In a notebook rich would leave an empty output behind.
                self._bar.console.quiet = self._bar.console.is_jupyter
                self._bar.stop()

    def _reach_delay(self) -> None:
        self._is_due = True
        self._show_bar()

    def _show_bar(self) -> None:
        """Start the bar once there was an event and the delay is over, unless the work has ended."""
        with self._lock:
            if self._bar and self._has_event and self._is_due and not (self._is_shown or self._is_closed):
                self._is_shown = True
                self._bar.start()

    def __call__(self, event: ProgressEvent) -> None:
        """Show an event."""
        if event.message is not None:
            self._print(event.message)
            return
        now = time.monotonic()
        if (event.stage, event.total) != self._stage:
            self._stage, self._stage_start = (event.stage, event.total), now
            if self._bar and self._task is not None:
                self._bar.reset(self._task)
        text = f"{event.stage}: {event.detail}" if event.detail else event.stage
        if self._bar and self._task is not None:
            self._bar.update(self._task, description=text, completed=event.done, total=event.total)
            if not self._has_event:
                self._has_event = True
                self._show_bar()
        elif now - self._last_line >= self._line_interval:
            self._last_line = now
            print(f"{text}{self._time_left(event, now)}", file=sys.stderr, flush=True)

    def _print(self, text: str) -> None:
        if self._bar:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _time_left(self, event: ProgressEvent, now: float) -> str:
        """', 40%, 90 s left', if the total is known."""
        if not event.total or not event.done:
            return ""
        share = min(event.done / event.total, 1.0)
        return f", {share:.0%}, {(now - self._stage_start) * (1 - share) / share:,.0f} s left"


class TokenProgress:
    """Reports how many tokens of some sentences have been processed.

    Args:
        on_progress: Receives an event for each call of `add`.
        stage: The stage of the events.
        sentences: All sentences, as token lists; counted only if somebody receives the events.

    """

    def __init__(self, on_progress: OnProgress, stage: str, sentences: Sequence[Sequence[str]]) -> None:
        self._on_progress, self._stage = on_progress, stage
        self._is_ignored = on_progress is ignore_progress
        self._total = 0 if self._is_ignored else sum(map(len, sentences))
        self._meter = RateMeter()

    def add(self, sentences: Sequence[Sequence[str]]) -> None:
        """Count sentences that have been processed, and report."""
        if not self._is_ignored:
            detail = self._meter.add(sum(map(len, sentences)))
            self._on_progress(ProgressEvent(self._stage, self._meter.count, self._total, detail))


class ByteProgress:
    """Reports how many bytes of a job have been processed: '410 MB, 95 MB/s'.

    Args:
        on_progress: Receives an event for each call of `add`.
        stage: The stage of the events.
        total: Bytes of the whole job; None if unknown.

    """

    def __init__(self, on_progress: OnProgress, stage: str, total: int | None) -> None:
        self._on_progress, self._stage, self._total = on_progress, stage, total
        self._done, self._start = 0, time.monotonic()

    def add(self, count: int) -> None:
        """Count bytes that have been processed, and report."""
        if self._on_progress is ignore_progress:
            return
        self._done += count
        rate = self._done / max(time.monotonic() - self._start, 1e-9)
        decimals = 0 if self._done >= 1e7 else 1
        detail = f"{self._done / 1e6:,.{decimals}f} MB, {rate / 1e6:,.{decimals}f} MB/s"
        self._on_progress(ProgressEvent(self._stage, self._done, self._total, detail))


class RateMeter:
    """Tokens, or whatever is counted, per second since the first call, for `ProgressEvent.detail`."""

    def __init__(self, unit: str = "tokens") -> None:
        self._unit, self._start = unit, time.monotonic()
        self.count = 0

    def add(self, count: int) -> str:
        """Count more of them; the text to show: '12,000 tokens, 3,000/s'."""
        self.count += count
        rate = self.count / max(time.monotonic() - self._start, 1e-9)
        return f"{self.count:,} {self._unit}, {rate:,.{0 if rate >= 10 else 1}f}/s"
