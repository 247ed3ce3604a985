"""Report pretraining as progress events: what the corpus holds, then loss, speed and perplexity.

training.pretrain  ->  training.progress  ->  io.progress (events)
"""

from __future__ import annotations

import time

from polyseme.io.progress import OnProgress, ProgressEvent
from polyseme.text.corpus.prepared import CorpusReport
from polyseme.training.checkpoint import Position
from polyseme.training.loop import Metrics, OnMetrics

STAGE = "training"
SMOOTHING = 0.05  # weight of the last step in the loss that is shown


def report_corpus(report: CorpusReport, on_progress: OnProgress) -> None:
    """Report what was counted in the text."""
    for message in (
        f"{report.tokens:,} tokens in {report.sentences:,} sentences; vocabulary of {report.words:,} words, "
        f"{report.unknown:.1%} of the tokens outside it",
        f"held out: {report.valid_tokens:,} tokens, {report.valid_unknown:.1%} outside the vocabulary; "
        f"{report.held_out}",
        f"{report.cut_tokens:,} tokens longer than the model reads, "
        f"{report.repeated_sentences:,} repeated sentences",
    ):
        on_progress(ProgressEvent(STAGE, message=message))


def make_step_reporter(total: int, on_progress: OnProgress, on_metrics: OnMetrics | None) -> OnMetrics:
    """A callback for the training loop that turns its numbers into progress events.

    Args:
        total: Tokens of the whole run.
        on_progress: Receives an event for every step and a message for every validation.
        on_metrics: Receives the numbers as they are, too.

    """
    start = time.monotonic()
    first_tokens: int | None = None  # of this process: a resumed run starts later
    smoothed_loss: float | None = None

    def report(position: Position, metrics: Metrics) -> None:
        nonlocal first_tokens, smoothed_loss
        if on_metrics is not None:
            on_metrics(position, metrics)
        if "mean" in metrics:
            on_progress(ProgressEvent(STAGE, message=_describe_validation(position, metrics)))
            return
        if first_tokens is None:
            first_tokens = position.tokens - 1
        if smoothed_loss is None:
            smoothed_loss = metrics["loss"]
        smoothed_loss += SMOOTHING * (metrics["loss"] - smoothed_loss)
        rate = (position.tokens - first_tokens) / max(time.monotonic() - start, 1e-9)
        best = f", best perplexity {position.best:.1f}" if position.best is not None else ""
        detail = f"loss {smoothed_loss:.3f}, {rate:,.0f} tokens/s{best}"
        on_progress(ProgressEvent(STAGE, position.tokens, total, detail))

    return report


def _describe_validation(position: Position, metrics: Metrics) -> str:
    return (
        f"{position.tokens:,} tokens: perplexity {metrics['mean']:.1f} "
        f"(forward {metrics['forward']:.1f}, backward {metrics['backward']:.1f})"
    )
