"""A task for the training loop: batches of examples, loss, validation.

    tasks.protocol  ->  tasks.trainable  ->  training.loop

The loop counts examples. Each epoch draws new batches of examples of similar length.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn

from polyseme.tasks.metrics import Scores
from polyseme.tasks.protocol import AnyNetwork, AnyTask, Example, TunedNetwork
from polyseme.text.length_batches import batch_by_length
from polyseme.training.loop import Metrics
from polyseme.training.steady_process import release_free_memory

WINDOW = 20  # batches whose examples are sorted by length together
RELEASE_INTERVAL = 50  # steps


class TaskTrainable:
    """Implements `training.loop.Trainable` for a task."""

    def __init__(
        self,
        task: AnyTask,
        network: AnyNetwork,
        train: Sequence[Example],
        dev: Sequence[Example],
        device: torch.device,
    ) -> None:
        self.module = as_module(network).to(device)
        self._task, self._network = task, network
        self._train, self._dev = train, dev
        settings = task.settings.train
        self._batch, self._seed = settings.batch, settings.seed
        self._batches_of: tuple[int, list[list[int]]] = (-1, [])  # an epoch and its batches
        self.scores: Scores  # of the last validation

    def count_batches(self, epoch: int) -> int:
        """The number of batches of an epoch."""
        return len(self._plan_batches(epoch))

    def _plan_batches(self, epoch: int) -> list[list[int]]:
        """Numbers of examples, batch by batch: shuffled, sorted by length within windows, shuffled again."""
        if self._batches_of[0] != epoch:
            chance = random.Random(self._seed * 1_000_003 + epoch)  # noqa: S311
            numbers = list(range(len(self._train)))
            chance.shuffle(numbers)
            window = WINDOW * self._batch
            batches: list[list[int]] = []
            for start in range(0, len(numbers), window):
                chosen = sorted(
                    numbers[start : start + window], key=lambda n: _measure_length(self._train[n])
                )
                batches += [
                    chosen[first : first + self._batch] for first in range(0, len(chosen), self._batch)
                ]
            chance.shuffle(batches)
            self._batches_of = epoch, batches
        return self._batches_of[1]

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        """The loss of a batch with the L2 term of the mixes, and the number of its examples."""
        if step % RELEASE_INTERVAL == 0:  # batches differ in length, so memory fills with holes
            release_free_memory()
        loss, count = self._network.loss([self._train[n] for n in self._plan_batches(epoch)[number]])
        return loss + self._network.featurizer.penalty().to(loss.device), count

    def no_sync(self) -> AbstractContextManager[None]:
        """Nothing is shared with other processes."""
        return nullcontext()

    def evaluate(self, *, final: bool) -> Metrics:
        """The metrics of the dev set; the loop minimises `score`."""
        predictions = decode_examples(self._task, self._network, self._dev)
        if isinstance(self._network, TunedNetwork):
            predictions = self._network.tune(self._dev, predictions)
        self.scores = self._task.score(self._dev, predictions)
        return {"score": -self.scores.value, **self.scores.metrics}

    @property
    def runs_in_c(self) -> bool:
        """False: torch does most of a step."""
        return False

    def begin_epoch(self) -> None:
        """Nothing is carried from batch to batch."""

    def carried_state(self) -> dict[str, Tensor]:
        """Nothing is carried from batch to batch."""
        return {}

    def restore_carried_state(self, parts: list[dict[str, Tensor]]) -> None:
        """Nothing is carried from batch to batch."""


def as_module(network: AnyNetwork) -> nn.Module:
    """The network of a task as the `nn.Module` that it is."""
    return cast(nn.Module, network)


@torch.no_grad()
def decode_examples(task: AnyTask, network: AnyNetwork, examples: Sequence[Example]) -> list[Any]:
    """The predictions for examples, in their order; batches hold examples of similar length."""
    module = as_module(network)
    training = module.training
    module.eval()
    predictions: list[Any] = [None] * len(examples)
    for numbers in batch_by_length([_measure_length(e) for e in examples], max_sentences=task.decode_batch):
        batch = network.decode([examples[number] for number in numbers])
        for number, prediction in zip(numbers, batch, strict=True):
            predictions[number] = prediction
    module.train(training)
    return predictions


def _measure_length(example: Example) -> int:
    return sum(map(len, example.sentences))
