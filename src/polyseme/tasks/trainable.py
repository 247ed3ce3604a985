"""A task as work for the one training loop: batches of examples, loss, validation.

    tasks.protocol, tasks.nn.featurizer  ->  tasks.trainable  ->  training.loop

The loop counts examples. Batches are drawn anew each epoch, of examples of like length.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.tasks.examples import Example
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import TokenReader
from polyseme.tasks.protocol import Answer, Task
from polyseme.text.length_batches import batch_by_length
from polyseme.training.loop import Metrics

WINDOW = 20  # batches whose examples are sorted by length together
VALID_BATCH = 64


class TaskTrainable:
    """Implements `loop.Work` for a task."""

    def __init__(
        self,
        task: Task,
        network: nn.Module,
        reader: TokenReader,
        train: Sequence[Example],
        dev: Sequence[Example],
        device: torch.device,
    ) -> None:
        self.module = network.to(device)
        self._task, self._reader, self._device = task, reader, device
        self._train, self._dev = train, dev
        settings = task.config.train
        self._batch, self._seed = settings.batch, settings.seed
        self._order: tuple[int, list[list[int]]] = (-1, [])
        self.scores: Scores  # of the last validation

    def count(self, epoch: int) -> int:
        """How many batches the epoch has."""
        return len(self._batches(epoch))

    def _batches(self, epoch: int) -> list[list[int]]:
        """Numbers of examples, batch by batch: shuffled, sorted by length within windows, shuffled again."""
        if self._order[0] != epoch:
            chance = random.Random(self._seed * 1_000_003 + epoch)  # noqa: S311
            numbers = list(range(len(self._train)))
            chance.shuffle(numbers)
            window = WINDOW * self._batch
            batches: list[list[int]] = []
            for start in range(0, len(numbers), window):
                some = sorted(numbers[start : start + window], key=self._length)
                batches += [some[first : first + self._batch] for first in range(0, len(some), self._batch)]
            chance.shuffle(batches)
            self._order = epoch, batches
        return self._order[1]

    def _length(self, number: int) -> int:
        return sum(map(len, self._train[number].sentences))

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        """The loss of a batch with the L2 term of the mixes, and how many examples it has."""
        examples = [self._train[place] for place in self._batches(epoch)[number]]
        outputs = run(self.module, self._reader, examples, self._device)
        penalty = self._inputs().penalty()
        return self._task.loss(outputs, examples, self.module) + penalty.to(outputs.device), len(examples)

    def _inputs(self) -> Any:
        return self.module.stack.inputs  # type: ignore[union-attr]

    def apart(self) -> AbstractContextManager[None]:
        """Nothing is shared with other processes."""
        return nullcontext()

    def evaluate(self, *, final: bool) -> Metrics:
        """The dev file's figures; the loop makes `score` small."""
        answers = answer(self._task, self.module, self._reader, self._dev, self._device)
        self.scores = self._task.score(self._dev, answers)
        return {"score": -self.scores.value, **self.scores.figures}

    def begin_epoch(self) -> None:
        """Nothing is carried from batch to batch."""

    def carried(self) -> dict[str, Tensor]:
        """Nothing is carried from batch to batch."""
        return {}

    def carry(self, parts: list[dict[str, Tensor]]) -> None:
        """Nothing is carried from batch to batch."""


def run(network: nn.Module, reader: TokenReader, examples: Sequence[Example], device: torch.device) -> Tensor:
    """The outputs for a batch of examples."""
    sides = [
        reader.read([example.sentences[number] for example in examples], device)
        for number in range(len(examples[0].sentences))
    ]
    return network(sides, examples)  # type: ignore[no-any-return]


@torch.no_grad()
def answer(
    task: Task, network: nn.Module, reader: TokenReader, examples: Sequence[Example], device: torch.device
) -> list[Answer]:
    """What the model says of each example, in their order; they are read longest first."""
    training = network.training
    network.eval()
    found: list[Answer | None] = [None] * len(examples)
    lengths = [len(example.sentences[0]) for example in examples]
    for numbers in batch_by_length(lengths, max_sentences=VALID_BATCH):
        batch = [examples[number] for number in numbers]
        answers = task.answers(run(network, reader, batch, device), batch, network)
        for number, one in zip(numbers, answers, strict=True):
            found[number] = one
    network.train(training)
    return [one for one in found if one is not None]
