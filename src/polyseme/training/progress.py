"""How a training run shows itself.

    training.loop  ->  training.progress  ->  bar; the result to standard output

Loss, tokens a second, time left and the best perplexity so far.
"""

from __future__ import annotations

import time
from typing import Self

from polyseme.io.progress_bar import ProgressBar
from polyseme.text.corpus.prepared import Corpus
from polyseme.training.checkpoint import Position
from polyseme.training.loop import Metrics
from polyseme.training.pretrain import Pretraining


class TrainingProgress:
    """Watches a run."""

    def __init__(self) -> None:
        self._bar = ProgressBar("reading")
        self._total, self._from, self._loss = 0, 0, 0.0
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)

    def reading(self, done: int, total: int | None, tokens: int) -> None:
        """The text is being read."""
        self._bar.update(f"reading, {tokens:,} tokens", done, total)

    def prepared(self, corpus: Corpus, total: int) -> None:
        """The text is read: say what it is."""
        report = corpus.report
        self._total, self._start = total, time.monotonic()
        self._bar.say(
            f"{report.tokens:,} tokens in {report.sentences:,} sentences; {report.words:,} words in the "
            f"vocabulary, {report.unknown:.1%} of the tokens outside it"
        )
        self._bar.say(
            f"held out: {report.valid_tokens:,} tokens, {report.valid_unknown:.1%} of them outside the "
            f"vocabulary; {report.held_out}"
        )
        notes = {
            "longer than the model reads": report.cut_tokens,
            "repeated sentences": report.repeated_sentences,
        }
        self._bar.say(", ".join(f"{count:,} {what}" for what, count in notes.items()))

    def step(self, position: Position, figures: Metrics) -> None:
        """A step or a validation is done."""
        if "mean" in figures:
            self._bar.say(
                f"{position.tokens:,} tokens: perplexity {figures['mean']:.1f} "
                f"(forward {figures['forward']:.1f}, backward {figures['backward']:.1f})"
            )
            return
        self._from = self._from or position.tokens - 1
        self._loss += 0.05 * (figures["loss"] - self._loss) if self._loss else figures["loss"]
        rate = (position.tokens - self._from) / max(time.monotonic() - self._start, 1e-9)
        best = f", best perplexity {position.best:.1f}" if position.best is not None else ""
        text = f"loss {self._loss:.3f}, {rate:,.0f} tokens/s{best}"
        self._bar.update(text, position.tokens, self._total)

    def end(self, result: Pretraining) -> None:
        """Say what came out."""
        found = result.metrics
        if result.before is not None:
            print(f"before: perplexity {result.before['mean']:.1f} on the held-out text")
        print(
            f"held-out perplexity {found['mean']:.1f} (forward {found['forward']:.1f}, backward "
            f"{found['backward']:.1f}), {found['unknown']:.1%} of its words unknown"
        )
        print(f"{result.folder}: the model, its card README.md, report.html and metrics.jsonl")
