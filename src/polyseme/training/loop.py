"""The only training loop: step, clip, schedule, evaluate, save, resume, distributed.

    training.pretrain, tasks  ->  training.loop  ->  a trained module, metrics.jsonl, checkpoints/

What is trained comes as `Trainable`. All that is random in a step follows from the seed, the step and the
rank, the order of the data from the seed and the epoch: a run that was killed and resumed equals one that
was not. Schedules count tokens. SIGTERM and Ctrl-C finish the step, save and leave.
"""

from __future__ import annotations

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from polyseme.errors import PolysemeError, UsageError
from polyseme.model.fast.fp32_products import use_quickest_fp32_products
from polyseme.training import checkpoint
from polyseme.training.checkpoint import Position
from polyseme.training.distributed import Ranks
from polyseme.training.settings import TrainSettings

logger = logging.getLogger(__name__)
Metrics = dict[str, float]
OnMetrics = Callable[[Position, Metrics], None]  # receives numbers; see io.progress for text
CHECKPOINTS, METRICS = "checkpoints", "metrics.jsonl"
LOGGED = 20  # steps from one that is noted to the next


class DivergedError(PolysemeError):
    """The loss or the gradient is no finite number any more."""


class StoppedError(PolysemeError):
    """A signal ended the run; the checkpoint is written."""

    exit_code = 130


class Trainable(Protocol):
    """What the loop trains: a module, its batches, its validation."""

    @property
    def module(self) -> nn.Module:
        """All that is trained and saved."""

    def count(self, epoch: int) -> int:
        """How many batches the epoch has."""

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        """The loss of a batch and its tokens (of all processes)."""

    def apart(self) -> AbstractContextManager[None]:
        """Where losses and their gradients stay with this process: more batches of the step follow."""

    def evaluate(self, *, final: bool) -> Metrics:
        """The validation's figures; `score` is the one to make small."""

    def begin_epoch(self) -> None:
        """Forget what is carried from batch to batch."""

    def carried(self) -> dict[str, Tensor]:
        """What is carried from batch to batch, by name."""

    def carry(self, parts: list[dict[str, Tensor]]) -> None:
        """Go on from what `carried` gave in all processes, of which there may have been another number."""


@dataclass
class Loop:
    """A run in `folder` over `total` tokens."""

    work: Trainable
    settings: TrainSettings
    folder: Path
    total: int
    ranks: Ranks = field(default_factory=Ranks)
    on_metrics: OnMetrics | None = None  # called after every step and every validation
    slower: Mapping[str, float] = field(default_factory=dict)  # share of the rate, by begin of a name

    def __post_init__(self) -> None:
        self.position = Position()
        self.optimizer = make_optimizer(self.settings, self.work.module, self.slower)
        self._signalled = False
        self._saved = time.monotonic()

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints lie."""
        return self.folder / CHECKPOINTS

    def resume(self) -> bool:
        """Go on from the last checkpoint, if there is one."""
        found = checkpoint.checkpoints(self.checkpoints)
        if found:
            self.position, carried = checkpoint.restore(found[-1], self.work.module, self.optimizer)
            self.work.carry(carried)
        if self.ranks.is_first:
            _forget_later(self.folder / METRICS, self.position.step)
        return bool(found)

    def run(self) -> Metrics:
        """Train to the end; give the last validation's figures. The best weights are in the module then."""
        with self._watching_signals():
            self.work.module.train()
            started = time.monotonic() - self.position.seconds
            while self.position.tokens < self.total and not self._out_of_patience():
                figures = self.step()
                self.position.seconds = time.monotonic() - started
                self._tell(figures)
                if self._evaluation_due():
                    self._evaluate()
                    started = time.monotonic() - self.position.seconds  # validation is not training time
                self._save_if_due()
        self.ranks.wait()
        checkpoint.load_best(self.checkpoints, self.work.module)
        final = self.work.evaluate(final=True)
        self._log({"event": "end", **final})
        return final

    def step(self) -> Metrics:
        """One step of the optimiser, over `accumulate` batches."""
        torch.manual_seed(self._step_seed())
        rate = self._set_rate()
        total = 0.0
        for left in reversed(range(self.settings.accumulate)):
            with use_quickest_fp32_products(), self.work.apart() if left else nullcontext():
                loss, tokens = self.work.loss(self.position.epoch, self.position.number, self.position.step)
                (loss / self.settings.accumulate).backward()
            total += loss.item() / self.settings.accumulate
            self._advance(tokens)
        norm = nn.utils.clip_grad_norm_(self.work.module.parameters(), self.settings.clip).item()
        if not (math.isfinite(total) and math.isfinite(norm)):
            raise DivergedError(
                f"Training diverged at step {self.position.step}: loss {total:g}, gradient {norm:g}. "
                f"The last checkpoint is intact. Lower train.rate (now {self.settings.rate:g}) or train.clip "
                f"({self.settings.clip:g}), or set a train.warmup, and start anew."
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.position.step += 1
        return {"loss": total, "rate": rate, "gradient": norm}

    def _advance(self, tokens: int) -> None:
        """Count a batch; begin the next epoch after the last one."""
        position = self.position
        position.tokens += tokens
        position.number += 1
        if position.number >= self.work.count(position.epoch):
            position.epoch, position.number = position.epoch + 1, 0
            self.work.begin_epoch()

    def _step_seed(self) -> int:
        """A seed for all that is random in this step, different for every rank."""
        return (self.settings.seed * 1_000_003 + self.position.step) * 65_537 + self.ranks.rank

    def _set_rate(self) -> float:
        rate = self.settings.rate * rate_share(self.settings, self.position.tokens / self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        return rate

    def _evaluation_due(self) -> bool:
        done = self.position.tokens * self.settings.evaluations // self.total
        return done > self.position.evaluations

    def _evaluate(self) -> None:
        """Validate, keep the best weights, count the validations without a better one."""
        position = self.position
        position.evaluations = position.tokens * self.settings.evaluations // self.total
        figures = self.work.evaluate(final=False)
        if position.best is None or figures["score"] < position.best:
            position.best, position.since_best = figures["score"], 0
            if self.ranks.is_first:
                checkpoint.save_best(self.checkpoints, self.work.module, figures)
        else:
            position.since_best += 1
        self._log({"event": "validation", **figures})
        self._tell(figures)

    def _out_of_patience(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.position.since_best >= patience

    def _save_if_due(self) -> None:
        """Save now and then, and when a signal asks to stop; all processes at the same step."""
        stop = self.ranks.any(self._signalled)
        if not stop and not self.ranks.any(time.monotonic() - self._saved >= self.settings.save_seconds):
            return
        self.save()
        if stop:
            raise StoppedError(f"Stopped at step {self.position.step}, all is saved: go on with --resume.")

    def save(self) -> None:
        """Write a checkpoint; all processes wait for it."""
        carried = self.ranks.gather(self.work.carried())
        if self.ranks.is_first:
            checkpoint.save(self.checkpoints, self.position, self.work.module, self.optimizer, carried)
        self.ranks.wait()
        self._saved = time.monotonic()

    def _tell(self, figures: Metrics) -> None:
        if self.on_metrics is not None and self.ranks.is_first:
            self.on_metrics(self.position, figures)
        if "loss" in figures and self.position.step % LOGGED == 0:
            self._log({"event": "step", **figures})

    def _log(self, figures: dict[str, Any]) -> None:
        """A line of metrics.jsonl."""
        if not self.ranks.is_first:
            return
        position = self.position
        line = {"step": position.step, "tokens": position.tokens, "seconds": round(position.seconds, 2)}
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | figures) + "\n")

    @contextmanager
    def _watching_signals(self) -> Iterator[None]:
        """Note SIGTERM and Ctrl-C while training; the step at hand is finished first."""

        def note(number: int, frame: object) -> None:
            self._signalled = True

        try:
            before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
        except ValueError:  # not the main thread: signals are another's business
            yield
            return
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def make_optimizer(
    settings: TrainSettings, module: nn.Module, slower: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """The optimiser that the settings name, over all that is trained, some of it at a share of the rate."""
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            found = [share for start, share in (slower or {}).items() if name.startswith(start)]
            groups.setdefault(found[0] if found else 1.0, []).append(parameter)
    if not groups:
        raise UsageError("Nothing in this model is to be trained.")
    parameters = [{"params": some, "share": share} for share, some in groups.items()]
    if settings.optimizer == "adagrad":
        return torch.optim.Adagrad(
            parameters,
            settings.rate,
            weight_decay=settings.weight_decay,
            initial_accumulator_value=1.0,
            fused=True,
        )
    if settings.optimizer == "sgd":
        return torch.optim.SGD(parameters, settings.rate, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(parameters, settings.rate, weight_decay=settings.weight_decay, fused=True)


def rate_share(settings: TrainSettings, done: float) -> float:
    """What part of the full rate applies when the share `done` of all tokens has been read."""
    share = min(1.0, (done + 1e-9) / settings.warmup) if settings.warmup else 1.0
    if settings.schedule == "cosine":
        share *= 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    return share


def _forget_later(path: Path, step: int) -> None:
    """Drop the lines of metrics.jsonl that came after the checkpoint at `step`."""
    if not path.exists():
        return
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if _step_of(line) <= step]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # a line cut off by the kill
        return math.inf
