"""The only training loop: step, clip, schedule, evaluate, save, resume, several processes.

    training.pretrain, tasks  ->  training.loop  ->  a trained module, metrics.jsonl, checkpoints/

It trains any `Trainable`. Everything random in a step follows from the seed, the step and the rank, and the
order of the data from the seed and the epoch: a run that was killed and resumed equals one that was not.
Schedules count tokens. SIGTERM and Ctrl-C finish the step, save and stop.
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
from torch.profiler import record_function

from polyseme.errors import FormatError, PolysemeError, UsageError
from polyseme.io.atomic import new_file
from polyseme.io.checked import read_json_lines, refuse_damaged
from polyseme.model.fast.fp32_products import use_quickest_fp32_products
from polyseme.model.fast.kernels.updates import clip_and_step
from polyseme.model.fast.parallel import keep_torch_on_one_core
from polyseme.training import checkpoint
from polyseme.training.checkpoint import Position
from polyseme.training.distributed import Ranks
from polyseme.training.settings import TrainSettings
from polyseme.training.steady_process import steady_process

logger = logging.getLogger(__name__)
Metrics = dict[str, float]
OnMetrics = Callable[[Position, Metrics], None]  # receives numbers; see io.progress for text
CHECKPOINTS, METRICS = "checkpoints", "metrics.jsonl"
LOG_INTERVAL = 20  # steps between two lines of metrics.jsonl


class DivergedError(PolysemeError):
    """The loss or the gradient is no longer finite."""


class StoppedError(PolysemeError):
    """A signal ended the run after it was saved."""

    exit_code = 130


class Trainable(Protocol):
    """What the loop trains: a module, its batches, its validation."""

    @property
    def module(self) -> nn.Module:
        """All parameters that are trained and saved."""

    @property
    def runs_in_c(self) -> bool:
        """Whether the C library does most of a step on all cores, so that torch functions need one only."""

    def count_batches(self, epoch: int) -> int:
        """The number of batches of an epoch."""

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        """Compute the loss of a batch; also return its size over all processes, in tokens or examples."""

    def no_sync(self) -> AbstractContextManager[None]:
        """Keep gradients in this process while more batches of the same step follow."""

    def evaluate(self, *, final: bool) -> Metrics:
        """Validate; `score` is the metric to minimise."""

    def begin_epoch(self) -> None:
        """Reset what is carried from batch to batch."""

    def carried_state(self) -> dict[str, Tensor]:
        """The state carried from batch to batch, by name."""

    def restore_carried_state(self, parts: list[dict[str, Tensor]]) -> None:
        """Restore the carried state of all processes; their number may have changed."""


@dataclass
class Loop:
    """A run.

    Attributes:
        trainable: What is trained.
        settings: Optimiser, schedule and the like.
        folder: Where metrics.jsonl and checkpoints/ are written.
        total: Tokens (or examples) to train on.
        ranks: This process among all processes of the run.
        on_metrics: Called after every step and every validation.
        rate_shares: Share of the learning rate for parameters, by prefix of their name.

    """

    trainable: Trainable
    settings: TrainSettings
    folder: Path
    total: int
    ranks: Ranks = field(default_factory=Ranks)
    on_metrics: OnMetrics | None = None  # called after every step and every validation
    rate_shares: Mapping[str, float] = field(default_factory=dict)  # share of the rate, by begin of a name

    def __post_init__(self) -> None:
        self.position = Position()
        self.optimizer = make_optimizer(self.settings, self.trainable.module, self.rate_shares)
        self._signalled = False
        self._saved = time.monotonic()
        self._saved_step = -1

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.folder / CHECKPOINTS

    def resume(self) -> bool:
        """Continue from the last checkpoint; False if there is none."""
        checkpoints = checkpoint.list_checkpoints(self.checkpoints)
        if checkpoints:
            self.position, carried = checkpoint.restore(
                checkpoints[-1], self.trainable.module, self.optimizer
            )
            self._saved_step = self.position.step
            with refuse_damaged(checkpoints[-1], "an intact checkpoint", checkpoint.ADVICE):
                self.trainable.restore_carried_state(carried)
        if self.ranks.is_first:
            _drop_later_lines(self.folder / METRICS, self.position.step)
        return bool(checkpoints)

    def run(self) -> Metrics:
        """Train to the end, load the best weights, and return the metrics of the last validation."""
        with self._catch_signals(), steady_process():
            self.trainable.module.train()
            started = time.monotonic() - self.position.seconds
            while self.position.tokens < self.total and not self.is_out_of_patience:
                with self.keep_on_its_cores():
                    self._run_steps(started)
                if self._is_evaluation_due():
                    self._evaluate()
                    started = time.monotonic() - self.position.seconds  # validation is not training time
                    self._save_if_due()
        if self.position.step > self._saved_step:
            self.save()  # so that resuming a run that has ended repeats no step
        self.ranks.wait()
        checkpoint.load_best(self.checkpoints, self.trainable.module)
        final = self.trainable.evaluate(final=True)
        self._log({"event": "end", **final})
        return final

    def _run_steps(self, started: float) -> None:
        """Do steps until a validation is due, or the end."""
        while self.position.tokens < self.total:
            metrics = self.step()
            self.position.seconds = time.monotonic() - started
            self._report(metrics)
            if self._is_evaluation_due():
                return
            self._save_if_due()

    def keep_on_its_cores(self) -> AbstractContextManager[None]:
        """Leave the cores to the C library inside the block, if it does most of a step: around many steps."""
        return keep_torch_on_one_core() if self.trainable.runs_in_c else nullcontext()

    def step(self) -> Metrics:
        """Do one step of the optimiser, over `accumulate` batches."""
        with self.keep_on_its_cores():
            return self._do_step()

    def _do_step(self) -> Metrics:
        self._seed_generators()
        rate = self._set_rate()
        total = 0.0
        for left in reversed(range(self.settings.accumulate)):
            with use_quickest_fp32_products(), self.trainable.no_sync() if left else nullcontext():
                loss, tokens = self.trainable.loss(
                    self.position.epoch, self.position.number, self.position.step
                )
                (loss / self.settings.accumulate).backward()
            total += loss.item() / self.settings.accumulate
            self._advance(tokens)
        with record_function("polyseme: step"):
            norm = self._clip_and_step() if math.isfinite(total) else math.nan
        if not (math.isfinite(total) and math.isfinite(norm)):
            raise DivergedError(
                f"Training diverged at step {self.position.step}: loss {total:g}, gradient {norm:g}. "
                f"The last checkpoint is intact. Lower train.rate (now {self.settings.rate:g}) or train.clip "
                f"({self.settings.clip:g}), or set train.warmup, and start again."
            )
        self.optimizer.zero_grad(set_to_none=True)
        self.position.step += 1
        return {"loss": total, "rate": rate, "gradient": norm}

    def _clip_and_step(self) -> float:
        """Clip the gradients and step, unless they are not finite; return their norm before that."""
        norm = clip_and_step(self.optimizer, self.settings.clip)
        if norm is not None:
            return norm
        parameters = self.trainable.module.parameters()
        norm = nn.utils.clip_grad_norm_(parameters, self.settings.clip).item()
        if math.isfinite(norm):
            self.optimizer.step()
        return norm

    def _advance(self, tokens: int) -> None:
        """Count a batch; begin the next epoch after the last batch."""
        position = self.position
        position.tokens += tokens
        position.number += 1
        if position.number >= self.trainable.count_batches(position.epoch):
            position.epoch, position.number = position.epoch + 1, 0
            self.trainable.begin_epoch()

    def _seed_generators(self) -> None:
        """Seed torch with a number of this step, different for every rank."""
        seed = (self.settings.seed * 1_000_003 + self.position.step) * 65_537 + self.ranks.rank
        if next(self.trainable.module.parameters()).device.type == "cpu":
            torch.default_generator.manual_seed(seed)  # without telling devices that are not used
        else:
            torch.manual_seed(seed)

    def _set_rate(self) -> float:
        rate = self.settings.rate * compute_rate_share(self.settings, self.position.tokens / self.total)
        rate *= 0.5**self.position.halvings
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        return rate

    def _is_evaluation_due(self) -> bool:
        done = self.position.tokens * self.settings.evaluations // self.total
        return done > self.position.evaluations

    def _evaluate(self) -> None:
        """Validate, save the best weights, count validations without improvement."""
        position = self.position
        position.evaluations = position.tokens * self.settings.evaluations // self.total
        metrics = self.trainable.evaluate(final=False)
        if position.best is None or metrics["score"] < position.best:
            position.best, position.since_best = metrics["score"], 0
            if self.ranks.is_first:
                checkpoint.save_best(self.checkpoints, self.trainable.module, metrics)
        elif position.step >= self.settings.min_steps:
            position.since_best += 1
            if self.settings.schedule == "plateau" and position.since_best % self.settings.plateau == 0:
                position.halvings += 1
        self._log({"event": "validation", **metrics})
        self._report(metrics)

    @property
    def is_out_of_patience(self) -> bool:
        """Whether so many validations brought no improvement that training stops before its end."""
        patience = self.settings.patience
        return patience is not None and self.position.since_best >= patience

    def _save_if_due(self) -> None:
        """Save at intervals, and when a signal asks to stop; all processes at the same step."""
        stop = self.ranks.any(self._signalled)
        if not stop and not self.ranks.any(time.monotonic() - self._saved >= self.settings.save_seconds):
            return
        self.save()
        if stop:
            raise StoppedError(
                f"Stopped at step {self.position.step}; the run is saved. Continue with `resume=True`."
            )

    def save(self) -> None:
        """Write a checkpoint; all processes wait for it."""
        carried = self.ranks.gather(self.trainable.carried_state())
        if self.ranks.is_first:
            checkpoint.save(self.checkpoints, self.position, self.trainable.module, self.optimizer, carried)
        self.ranks.wait()
        self._saved, self._saved_step = time.monotonic(), self.position.step

    def _report(self, metrics: Metrics) -> None:
        if self.on_metrics is not None and self.ranks.is_first:
            self.on_metrics(self.position, metrics)
        if "loss" in metrics and self.position.step % LOG_INTERVAL == 0:
            self._log({"event": "step", **metrics})

    def _log(self, metrics: dict[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        if not self.ranks.is_first:
            return
        position = self.position
        line = {"step": position.step, "tokens": position.tokens, "seconds": round(position.seconds, 2)}
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | metrics) + "\n")

    @contextmanager
    def _catch_signals(self) -> Iterator[None]:
        """Record SIGTERM and Ctrl-C while training, so that the current step is finished first."""

        def note(number: int, frame: object) -> None:
            self._signalled = True

        try:
            before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
        except ValueError:  # not the main thread, which alone may handle signals
            yield
            return
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def make_optimizer(
    settings: TrainSettings, module: nn.Module, rate_shares: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Make the optimiser that the settings name; `rate_shares` lower the rate of some parameters."""
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            shares = [share for prefix, share in (rate_shares or {}).items() if name.startswith(prefix)]
            groups.setdefault(shares[0] if shares else 1.0, []).append(parameter)
    if not groups:
        raise UsageError("All parameters of this model are frozen, so there is nothing to train.")
    parameters = [{"params": group, "share": share} for share, group in groups.items()]
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


def compute_rate_share(settings: TrainSettings, done: float) -> float:
    """The share of the full learning rate after the share `done` of all tokens."""
    share = min(1.0, (done + 1e-9) / settings.warmup) if settings.warmup else 1.0
    if settings.schedule == "cosine":
        share *= 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    return share


def _drop_later_lines(path: Path, step: int) -> None:
    """Drop the lines of metrics.jsonl after the checkpoint at `step`, and the line of the end."""
    if not path.exists():
        return
    lines = [
        line
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if _read_step(line) <= step and '"event": "end"' not in line
    ]
    with new_file(path, force=True) as new:
        new.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of metrics.jsonl.

    Raises:
        FormatError: A line is not a record.

    """
    lines = read_json_lines(path, "the metrics of a run", checkpoint.ADVICE)
    if not all(isinstance(line, dict) for line in lines):
        raise FormatError(f"{path}: a line is not a record. {checkpoint.ADVICE}")
    return lines


def _read_step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError):  # a line that a kill truncated
        return math.inf
