"""What every task is: how it reads, what it trains, how it answers and is judged.

    classification, tagging, pairs, relations  ->  tasks.protocol  ->  tasks.trainable, tasks.task_model

A task is a class with these methods, and knows its settings and its labels; it knows no training and no files
of models. B examples, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from polyseme.model.dropout import Dropout
from polyseme.tasks.examples import Cut, Example, Tokens
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import TaskConfig


@dataclass(frozen=True)
class Answer:
    """What a task model says of one example."""

    tokens: tuple[Tokens, ...]
    answer: Any  # a label, several labels, a tag a token, or a number
    probability: float | None = None  # of the answer; of tags the least probable one's
    probabilities: dict[str, float] = field(default_factory=dict)  # of every label
    spans: tuple[dict[str, Any], ...] = ()  # of tagging: label, start, stop, text, probability
    by_token: tuple[float, ...] = ()  # of tagging: how probable the tag of each token is

    def as_dict(self) -> dict[str, Any]:
        """For JSON lines."""
        tokens = [list(sentence) for sentence in self.tokens]
        values: dict[str, Any] = {"tokens": tokens[0] if len(tokens) == 1 else tokens, "answer": self.answer}
        if self.probability is not None:
            values["probability"] = round(self.probability, 6)
        if self.probabilities:
            values["probabilities"] = {name: round(share, 6) for name, share in self.probabilities.items()}
        if self.by_token:
            values["by_token"] = [round(share, 6) for share in self.by_token]
        if self.spans:
            values["spans"] = list(self.spans)
        return values


class Task(Protocol):
    """One task with its settings and its labels."""

    config: TaskConfig
    labels: tuple[str, ...]

    def __init__(self, config: TaskConfig, labels: tuple[str, ...]) -> None: ...

    @staticmethod
    def read(path: str, config: TaskConfig, cut: Cut, *, gold: bool = True) -> list[Example]:
        """The examples of a file; without `gold` what is right need not be in it."""

    @staticmethod
    def learn(examples: Sequence[Example], config: TaskConfig) -> tuple[str, ...]:
        """The labels of the training examples; refused where they are too few to learn from."""

    def check(self, examples: Sequence[Example]) -> None:
        """Refuse examples whose labels training never saw."""

    def ask(self, given: Any, cut: Cut) -> Example:
        """An example of what a program gives to `predict`."""

    def network(self, inputs: Featurizer, examples: Sequence[Example]) -> nn.Module:
        """What is trained: called with the sides and the examples of a batch; `examples`: of training."""

    def loss(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> Tensor:
        """The mean loss of a batch."""

    def answers(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> list[Answer]:
        """What the outputs say."""

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """How good that is."""


class Dense(nn.Module):
    """Dropout, a hidden layer if asked, the last layer."""

    def __init__(self, inputs: int, hidden: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.hidden = nn.Linear(inputs, hidden) if hidden else None
        self.last = nn.Linear(hidden or inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) -> (…, outputs)."""
        x = self.dropout(x)
        if self.hidden is not None:
            x = self.dropout(torch.relu(self.hidden(x)))
        return self.last(x)  # type: ignore[no-any-return]


def class_weights(config: TaskConfig, labels: Sequence[str], golds: Sequence[str]) -> Tensor:
    """What an example of each label counts (K,): one, or more for rare labels, so that all weigh alike."""
    if config.train.class_weights == "none":
        return torch.ones(len(labels))
    counts = torch.tensor([max(1, sum(gold == label for gold in golds)) for label in labels])
    return len(golds) / (len(labels) * counts.float())


def ranked(labels: Sequence[str], shares: Tensor) -> dict[str, float]:
    """Labels with their probabilities, most probable first."""
    order = shares.argsort(descending=True, stable=True).tolist()
    return {labels[number]: float(shares[number]) for number in order}


def most_probable(outputs: Tensor, examples: Sequence[Example], labels: Sequence[str]) -> list[Answer]:
    """Of outputs (B, K) the most probable label each, and the probabilities of all."""
    found = []
    for example, row in zip(examples, outputs.softmax(dim=1).cpu(), strict=True):
        probabilities = ranked(labels, row)
        best = next(iter(probabilities))
        found.append(Answer(example.sentences, best, probabilities[best], probabilities))
    return found
