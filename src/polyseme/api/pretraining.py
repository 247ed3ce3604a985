"""The verb pretrain."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from polyseme.formats.models.open import open_pretrained
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.training import pretrain as training
from polyseme.training.checkpoint import Position
from polyseme.training.loop import Metrics, OnMetrics
from polyseme.training.pretrain import Pretraining
from polyseme.training.report import write_report
from polyseme.training.settings import adapt_settings, read_pretrain_settings
from polyseme.training.tensorboard_log import TensorBoardLog


def pretrain(
    texts: Sequence[str | Path],
    out: str | Path,
    config: str = "novel",
    *,
    settings: Sequence[str] = (),
    valid: Sequence[str | Path] = (),
    base: str | Path | None = None,
    options: str | Path | None = None,
    new_vocabulary: bool = False,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    tensorboard: bool = False,
    progress: ProgressOption = None,
    on_metrics: OnMetrics | None = None,
) -> Pretraining:
    """Train a model on `texts` and write it to the folder `out`.

    config: a preset's name or a .toml file; settings: overrides such as "train.seed=7"; base: a model to
    fine-tune, which then decides the model's own settings; tensorboard: note the course of the run in
    out/tensorboard, too. See `training.pretrain.pretrain`.
    """
    place = Path(out).expanduser()
    chosen = read_pretrain_settings(config, settings)
    old = open_pretrained(base, options) if base is not None else None
    if old is not None:
        chosen = adapt_settings(chosen, old.config, settings)
    with (
        TensorBoardLog(place) if tensorboard else nullcontext() as board,
        open_progress(progress) as on_progress,
    ):
        result = training.pretrain(
            texts,
            place,
            chosen,
            valid=valid,
            base=old,
            new_vocabulary=new_vocabulary,
            resume=resume,
            force=force,
            workers=workers,
            on_progress=on_progress,
            on_metrics=_call_all(on_metrics, board.log if board else None),
        )
    if result.is_first:
        write_report(result)
    return result


def _call_all(*callbacks: OnMetrics | None) -> OnMetrics:
    """Make one callback that calls all that are not None."""

    def call(position: Position, metrics: Metrics) -> None:
        for callback in callbacks:
            if callback is not None:
                callback(position, metrics)

    return call
