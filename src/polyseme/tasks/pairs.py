"""Two sentences to a label or a number: entailment, paraphrase, the right answer, similarity.

    tasks.nn.encoder  ->  tasks.pairs

The model is of the kind of ESIM (Chen et al. 2017): both are read, each token looks for what stands for it in
the other sentence, what is found is compared and read again. B pairs, T tokens, E values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.errors import DataError, UsageError
from polyseme.model.dropout import Dropout
from polyseme.tasks.classification import labels_of
from polyseme.tasks.data.tables import TableRow, kind_of, read_rows
from polyseme.tasks.examples import Cut, Example, check_labels, checked, label_set
from polyseme.tasks.metrics import Scores, classes, numbers, ranking
from polyseme.tasks.nn.encoder import Encoder, TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures
from polyseme.tasks.nn.pooling import LOW, maximum, mean
from polyseme.tasks.protocol import Answer, Dense, class_weights, most_probable
from polyseme.tasks.settings import TaskConfig

RIGHT = (
    "1",
    "true",
    "yes",
    "y",
    "right",
    "correct",
    "positive",
    "pos",
    "relevant",
    "match",
    "answer",
    "same",
)


class Pairs:
    """Implements `task.Task`."""

    def __init__(self, config: TaskConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self.number = config.head.answer == "number"
        self._ids = {label: number for number, label in enumerate(labels)}

    @staticmethod
    def read(path: str, config: TaskConfig, cut: Cut, *, gold: bool = True) -> list[Example]:
        """CSV, TSV or JSON lines with two texts and a label or a number."""
        data = config.data
        kind = kind_of(path, data.format)
        if kind in ("lines", "folder"):
            kind = "tsv"  # SICK's .txt
        found = []
        for row in read_rows(path, kind, data.first, data.label):
            wanted = _gold(row, config) if gold else None
            if isinstance(wanted, str) and wanted in data.skip:
                continue
            both = (
                checked(cut(row.text(name)), row.place, data.max_tokens) for name in (data.first, data.second)
            )
            found.append(Example(row.place, tuple(both), wanted))
        return found

    @staticmethod
    def learn(examples: Sequence[Example], config: TaskConfig) -> tuple[str, ...]:
        """All labels; for numbers there are none, but they must differ."""
        golds = {example.gold for example in examples}
        if len(golds) < 2:
            raise DataError(
                f"{examples[0].place if examples else 'The training file'}: all answers are the same. "
                "There is nothing to learn."
            )
        if config.head.answer == "number":
            return ()
        labels, positive = label_set(golds), config.data.positive
        if positive is not None and positive not in labels:
            raise UsageError(f"data.positive is {positive!r}, the labels are {', '.join(labels[:8])}.")
        return labels

    def check(self, examples: Sequence[Example]) -> None:
        """Refuse a label that training never saw."""
        if not self.number:
            check_labels(examples, self.labels, lambda gold: (gold,))

    def ask(self, given: Any, cut: Cut) -> Example:
        """Two texts, or the tokens of both."""
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise UsageError(f"A pair is two texts, not {given!r:.60}.")
        cuts = [cut(text) if isinstance(text, str) else list(text) for text in given]
        most = self.config.data.max_tokens
        return Example("the pair", tuple(checked(tokens, "the pair", most) for tokens in cuts))

    def network(self, inputs: Featurizer, examples: Sequence[Example]) -> nn.Module:
        """Read, align, compare, read again, answer."""
        golds = [example.gold for example in examples]
        if self.number:
            values = torch.tensor(golds or [0.0, 1.0], dtype=torch.float32)
            scale = torch.stack([values.mean(), values.std(correction=0).clamp(min=1e-6)])
            return Matcher(inputs, self.config, torch.ones(1), scale)
        weights = class_weights(self.config, self.labels, golds)
        return Matcher(inputs, self.config, weights, torch.tensor([0.0, 1.0]))

    def loss(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> Tensor:
        """Cross entropy; of numbers the squared error in units of their deviation."""
        matcher = cast(Matcher, network)
        golds = [example.gold for example in examples]
        if self.number:
            wanted = torch.tensor(golds, device=outputs.device)
            return F.mse_loss(outputs[:, 0], (wanted - matcher.scale[0]) / matcher.scale[1])
        targets = torch.tensor([self._ids[gold] for gold in golds], device=outputs.device)
        return F.cross_entropy(outputs, targets, matcher.weights)

    def answers(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> list[Answer]:
        """The most probable label, or the number."""
        if self.number:
            scale = cast(Matcher, network).scale
            values = (outputs[:, 0] * scale[1] + scale[0]).tolist()
            return [Answer(example.sentences, value) for example, value in zip(examples, values, strict=True)]
        return most_probable(outputs, examples, self.labels)

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """Accuracy, with the ranks of right answers where first sentences repeat; or correlations.

        Ranks need to know which label is that of a right answer (`data.positive`).
        """
        gold, guess = [example.gold for example in examples], [answer.answer for answer in answers]
        if self.number:
            return numbers(gold, guess)
        found = classes(gold, guess, self.labels)
        yes = self._positive()
        if yes is not None:
            groups = [example.sentences[0] for example in examples]
            chances = [answer.probabilities[yes] for answer in answers]
            found.figures.update(ranking(groups, [one == yes for one in gold], chances))
        return found

    def _positive(self) -> str | None:
        """The label of a right answer: as set, or the one of two that says so by its name."""
        if self.config.data.positive is not None:
            return self.config.data.positive
        found = [label for label in self.labels if label.lower() in RIGHT]
        return found[0] if len(self.labels) == 2 and len(found) == 1 else None


def _gold(row: TableRow, config: TaskConfig) -> str | float:
    """The label, or the number, of a row."""
    if config.head.answer == "label":
        return labels_of(row, config)[0]
    text = row.text(config.data.label)
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{row.place}: {config.data.label} is {text!r:.40}, expected a number.") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise DataError(f"{row.place}: {config.data.label} is {text!r:.40}, expected a finite number.")
    return value


class Matcher(nn.Module):
    """Both sentences to K outputs."""

    weights: Tensor
    scale: Tensor  # of numbers: their mean and deviation in training

    def __init__(self, inputs: Featurizer, config: TaskConfig, weights: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.stack = TokenStack(inputs, config.encoder)
        size = config.encoder.size
        self.compare = nn.Linear(4 * self.stack.size, size)
        self.again = Encoder(size, size, 1, 2, config.encoder.dropout, config.encoder.recurrent_dropout)
        self.dropout = Dropout(config.head.dropout)
        self.dense = Dense(4 * self.again.size, config.head.hidden, len(weights), config.head.dropout)
        self.register_buffer("weights", weights)
        self.register_buffer("scale", scale)

    def forward(self, sides: Sequence[TokenFeatures], examples: Sequence[Example]) -> Tensor:
        """A batch to (B, K)."""
        one, other = sides
        a, b = self.stack(one), self.stack(other)
        alike = torch.bmm(a, b.transpose(1, 2))  # (B, T of one, T of the other)
        seen_by_a = torch.bmm(alike.masked_fill(~other.mask[:, None], LOW).softmax(dim=2), b)
        seen_by_b = torch.bmm(alike.transpose(1, 2).masked_fill(~one.mask[:, None], LOW).softmax(dim=2), a)
        pooled = [
            *self._composed(a, seen_by_a, one.lengths, one.mask),
            *self._composed(b, seen_by_b, other.lengths, other.mask),
        ]
        return self.dense(torch.cat(pooled, dim=1))  # type: ignore[no-any-return]

    def _composed(self, own: Tensor, seen: Tensor, lengths: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """A sentence beside what it found in the other: compared, read again, its mean and maximum."""
        joined = torch.cat([own, seen, own - seen, own * seen], dim=2)
        read = self.again(self.dropout(torch.relu(self.compare(joined))), lengths)
        return mean(read, mask), maximum(read, mask)
