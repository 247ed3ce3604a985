"""The rate halves when validation stops improving, and a resumed run does the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from polyseme.training.checkpoint import Position
from polyseme.training.loop import Loop, Metrics
from polyseme.training.settings import TrainSettings

SCORES = (3.0, 2.0, 2.5, 2.5, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5)  # of the validations, lower is better


class ScriptedTrainable:
    """A line to fit, and validations whose scores are known beforehand."""

    def __init__(self, scores: Sequence[float]) -> None:
        torch.manual_seed(1)
        self.module = nn.Linear(3, 1)
        self.scores, self.count = scores, 0

    def count_batches(self, epoch: int) -> int:
        return 4

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        inputs = torch.randn(8, 3)
        loss: Tensor = ((self.module(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
        return loss, 1

    def no_sync(self) -> AbstractContextManager[None]:
        return nullcontext()

    def evaluate(self, *, final: bool) -> Metrics:
        self.count += not final
        return {"score": self.scores[self.count - 1]}

    @property
    def runs_in_c(self) -> bool:
        return False

    def begin_epoch(self) -> None: ...

    def carried_state(self) -> dict[str, Tensor]:
        return {}

    def restore_carried_state(self, parts: list[dict[str, Tensor]]) -> None: ...


def make_loop(folder: Path, rates: list[float], **settings: object) -> Loop:
    folder.mkdir(exist_ok=True)

    def note(position: Position, metrics: Metrics) -> None:
        if "rate" in metrics:
            rates.append(metrics["rate"])

    chosen: dict[str, object] = {"schedule": "plateau", "rate": 0.1, "optimizer": "adamw", "evaluations": 10}
    train = TrainSettings(**(chosen | settings))  # type: ignore[arg-type]
    return Loop(ScriptedTrainable(SCORES), train, folder, 40, on_metrics=note)


def test_the_rate_halves_after_every_two_validations_without_improvement(tmp_path: Path):
    rates: list[float] = []
    loop = make_loop(tmp_path / "run", rates)
    loop.run()
    assert rates[::4] == [0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.0125]
    assert not loop.is_out_of_patience


def test_patience_ends_training_before_its_cap(tmp_path: Path):
    loop = make_loop(tmp_path / "run", [], patience=3)
    loop.run()
    assert loop.is_out_of_patience
    assert loop.position.epoch == 8


def test_validations_before_min_steps_do_not_count(tmp_path: Path):
    rates: list[float] = []
    loop = make_loop(tmp_path / "run", rates, min_steps=32, patience=2)
    loop.run()
    assert set(rates) == {0.1}  # validations 8 and 9 count, and the second ends training
    assert loop.position.epoch == 9


def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path: Path):
    whole_rates: list[float] = []
    whole = make_loop(tmp_path / "whole", whole_rates)
    whole.run()
    rates: list[float] = []
    first = make_loop(tmp_path / "parts", rates, save_seconds=1e-9)
    while first.position.step < 22:
        first._report(first.step())
        if first._is_evaluation_due():
            first._evaluate()
    first.save()
    second = make_loop(tmp_path / "parts", rates)
    assert second.resume()
    assert isinstance(second.trainable, ScriptedTrainable)
    second.trainable.count = 5
    second.run()
    assert rates == whole_rates
    assert torch.equal(second.trainable.module.weight, whole.trainable.module.weight)  # type: ignore[arg-type]
