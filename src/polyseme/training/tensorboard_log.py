"""Log the metrics of a run for TensorBoard, to OUT/tensorboard/.

    training.loop  ->  training.tensorboard_log  ->  event files

Needs tensorboardX (extra `tensorboard`); TensorBoard itself is only needed to view them:
`tensorboard --logdir OUT/tensorboard`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from polyseme.errors import require
from polyseme.training.checkpoint import Position
from polyseme.training.loop import LOG_INTERVAL, Metrics

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
    """Logs the metrics of a run; a resumed run continues its log.

    Args:
        folder: The model folder.

    Raises:
        MissingExtraError: tensorboardX is not installed.

    """

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

    def log(self, position: Position, metrics: Metrics) -> None:
        """Log the metrics of a validation, or of a step at every `LOG_INTERVAL`."""
        if self._writer is None:  # only now is the step known: later entries of an earlier run are purged
            self._writer = self._library.SummaryWriter(str(self._folder), purge_step=position.step)
            self._tokens, self._seconds = position.tokens, position.seconds
        if "loss" in metrics and position.step % LOG_INTERVAL:
            return
        for name, tag in NAMES.items():
            if name in metrics:
                self._writer.add_scalar(tag, metrics[name], position.step)
        seconds = position.seconds - self._seconds
        if "loss" in metrics and seconds > 0:
            rate = (position.tokens - self._tokens) / seconds
            self._writer.add_scalar("train/tokens_per_second", rate, position.step)
            self._tokens, self._seconds = position.tokens, position.seconds
