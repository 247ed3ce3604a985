"""The course of a run for TensorBoard: OUT/tensorboard/.

    training.loop  ->  training.tensorboard_log  ->  event files

Written with tensorboardX (extra `tensorboard`), which needs neither TensorBoard nor its server; looking at
them does: `tensorboard --logdir OUT/tensorboard`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from polyseme.errors import require
from polyseme.training.checkpoint import Position
from polyseme.training.loop import LOGGED, Metrics

BOARD = "tensorboard"
NAMES = {
    "loss": "train/loss",
    "rate": "train/rate",
    "gradient": "train/gradient",
    "forward": "perplexity/forward",
    "backward": "perplexity/backward",
    "mean": "perplexity/mean",
}


class TensorBoardLog:
    """Watches a run and notes its figures; a resumed run goes on where it was."""

    def __init__(self, folder: Path) -> None:
        self._library = require("tensorboardX", "tensorboard", "TensorBoard logging")
        self._folder = folder / BOARD
        self._writer: Any = None
        self._tokens, self._seconds = 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def log(self, position: Position, figures: Metrics) -> None:
        """Note the figures of a validation, or of every so many steps."""
        if self._writer is None:  # only now is the step known; what an earlier run noted after it goes
            self._writer = self._library.SummaryWriter(str(self._folder), purge_step=position.step)
            self._tokens, self._seconds = position.tokens, position.seconds
        if "loss" in figures and position.step % LOGGED:
            return
        for name, tag in NAMES.items():
            if name in figures:
                self._writer.add_scalar(tag, figures[name], position.step)
        seconds = position.seconds - self._seconds
        if "loss" in figures and seconds > 0:
            speed = (position.tokens - self._tokens) / seconds
            self._writer.add_scalar("train/tokens_per_second", speed, position.step)
            self._tokens, self._seconds = position.tokens, position.seconds
