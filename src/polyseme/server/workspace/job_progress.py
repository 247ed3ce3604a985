"""How far a job is: progress.json, which the job writes and the server reads.

    server.workspace.job  ->  server.workspace.job_progress  ->  server.workspace.routes, the page

The file is replaced whole, a few times a second at most. It survives the job, so that a page shows how far a
paused run is after the server was started again.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from polyseme.io.progress import ProgressEvent
from polyseme.json_text import parse_json
from polyseme.server.workspace.failures import Failure
from polyseme.training.checkpoint import Position
from polyseme.training.loop import METRICS, Metrics

FILE = "progress.json"
WRITE_SECONDS = 0.4  # between two writes
RATE_SECONDS = 60.0  # over which the time left is estimated
SMOOTHING = 0.05  # weight of the last step in the loss that is shown
MAX_POINTS = 240  # of a curve; more would not be seen
MAX_METRICS = 1 << 24  # bytes of metrics.jsonl that are read
Point = dict[str, float]  # of a curve
Stage = Literal["starting", "preparing", "training", "indexing"]


class JobProgress(BaseModel):
    """What progress.json contains."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    stage: Stage = "starting"
    done: float = 0.0
    total: float | None = None
    loss: float | None = None  # smoothed
    perplexity: float | None = None  # best of the held-out text so far
    rate: float | None = None  # tokens per second, in training
    seconds_left: float | None = None  # of the stage
    tokens: int | None = None  # of the text
    words: int | None = None  # of the vocabulary
    has_model: bool = False  # it is trained
    has_index: bool = False  # all is done
    failure: Failure | None = None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the file in the folder of a corpus; the default if there is none."""
        try:
            return cls.model_validate(parse_json((folder / FILE).read_bytes()))
        except (OSError, ValueError, RecursionError, ValidationError):
            return cls()

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove the file."""
        (folder / FILE).unlink(missing_ok=True)

    def write(self, folder: Path) -> None:
        """Replace the file; it need not survive a crash of the machine, so it is not synced."""
        temporary = folder / f".{FILE}"
        temporary.write_text(self.model_dump_json(), encoding="utf-8")
        temporary.replace(folder / FILE)


class ProgressRecorder:
    """Turns the events of `api.pretrain` and `api.index` into progress.json.

    Args:
        folder: The folder of the corpus.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.progress = JobProgress.read(folder).model_copy(update={"stage": "starting", "failure": None})
        self._written = -math.inf
        self._times: deque[tuple[float, float]] = deque()  # when, and how much was done
        self.write()

    def begin(self, stage: Stage) -> None:
        """Begin a stage."""
        self._times.clear()
        self.progress.stage = stage
        self.progress.done, self.progress.total = 0.0, None
        self.progress.rate = self.progress.seconds_left = None
        self.write()

    def fail(self, failure: Failure) -> None:
        """Note why the job failed."""
        self.progress.failure = failure

    def on_progress(self, event: ProgressEvent) -> None:
        """Receive an event of the library."""
        progress = self.progress
        if event.message is not None:
            return
        if progress.stage == "preparing" and event.stage == "training":
            self.begin("training")
        if event.total != progress.total:  # another part of the stage
            self._times.clear()
        progress.done, progress.total = event.done, event.total
        self._estimate()
        self._write_if_due()

    def on_metrics(self, position: Position, metrics: Metrics) -> None:
        """Receive the numbers of a step or a validation."""
        progress = self.progress
        loss = metrics.get("loss")
        if loss is not None:
            before = loss if progress.loss is None else progress.loss
            progress.loss = before + SMOOTHING * (loss - before)
        if position.best is not None:
            progress.perplexity = position.best

    def _estimate(self) -> None:
        """Estimate the rate and the time left from the last minute."""
        progress, now = self.progress, time.monotonic()
        self._times.append((now, progress.done))
        while now - self._times[0][0] > RATE_SECONDS:
            self._times.popleft()
        seconds, done = now - self._times[0][0], progress.done - self._times[0][1]
        if seconds <= 0 or done <= 0:
            return
        rate = done / seconds
        progress.rate = rate if progress.stage == "training" else None
        if progress.total is not None:
            progress.seconds_left = max(0.0, (progress.total - progress.done) / rate)

    def _write_if_due(self) -> None:
        if time.monotonic() - self._written >= WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the file now."""
        self._written = time.monotonic()
        self.progress.write(self._folder)


def read_curves(model: Path) -> tuple[list[Point], list[Point]]:
    """The losses and the validations of a run, from its metrics.jsonl, which another process may be writing.

    Returns:
        Points of `tokens` and `loss`, at most MAX_POINTS; and of `tokens`, `forward`, `backward`, `mean`.

    """
    try:
        with (model / METRICS).open(encoding="utf-8", errors="replace") as stream:
            lines = stream.read(MAX_METRICS).splitlines()
    except OSError:
        return [], []
    losses, validations = list[Point | None](), list[Point | None]()
    for line in lines:
        if '"validation"' in line:
            validations.append(_read_point(line, ("tokens", "forward", "backward", "mean")))
        elif '"loss"' in line:
            losses.append(_read_point(line, ("tokens", "loss")))
    return _thin_out(list(filter(None, losses))), list(filter(None, validations))


def _read_point(line: str, names: tuple[str, ...]) -> Point | None:
    """The named numbers of a line; None if it has not all of them or is damaged."""
    try:
        values: Any = json.loads(line)
        point = {name: float(values[name]) for name in names}
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
    return point if all(map(math.isfinite, point.values())) else None


def _thin_out(points: list[Point]) -> list[Point]:
    """Means of neighbouring points, so that there are at most MAX_POINTS."""
    width = -(-len(points) // MAX_POINTS) or 1
    groups = [points[start : start + width] for start in range(0, len(points), width)]
    return [
        {"tokens": group[-1]["tokens"], "loss": sum(point["loss"] for point in group) / len(group)}
        for group in groups
    ]
