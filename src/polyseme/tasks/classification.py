"""Texts to labels: sentiment, topics, spam, intents; one label, or several.

tasks.nn.encoder, tasks.nn.pooling  ->  tasks.classification
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.tables import TableRow, kind_of, read_rows
from polyseme.tasks.examples import Cut, Example, check_labels, checked, label_set
from polyseme.tasks.metrics import Scores, classes, several
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures
from polyseme.tasks.nn.pooling import Attention, Biattention, maximum, mean
from polyseme.tasks.protocol import Answer, Dense, class_weights, most_probable, ranked
from polyseme.tasks.settings import TaskConfig

logger = logging.getLogger(__name__)
HALF = 0.5  # from which probability on one of several labels is given


class Classification:
    """Implements `task.Task`."""

    def __init__(self, config: TaskConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self._ids = {label: number for number, label in enumerate(labels)}

    @staticmethod
    def read(path: str, config: TaskConfig, cut: Cut, *, gold: bool = True) -> list[Example]:
        """CSV, TSV, JSON lines, lines that begin with a label, or a folder of texts for each label."""
        data = config.data
        rows = read_rows(path, kind_of(path, data.format), data.text, data.label, labelled=gold)
        found, long = [], 0
        for row in rows:
            labels = labels_of(row, config) if gold else None
            if labels is not None and not set(labels).isdisjoint(data.skip):
                continue
            words = cut(row.text(data.text))
            long += len(words) > data.max_tokens
            tokens = checked(words, row.place, data.max_tokens, cut=True)
            answer = labels if data.multi or labels is None else labels[0]
            found.append(Example(row.place, (tokens,), answer))
        if long:
            logger.warning(
                f"{path}: {long} of {len(found)} texts are longer than data.max_tokens ({data.max_tokens:,}) "
                "and were cut."
            )
        return found

    @staticmethod
    def learn(examples: Sequence[Example], config: TaskConfig) -> tuple[str, ...]:
        """All labels; one alone cannot be learned."""
        labels = label_set(label for example in examples for label in _several(example.gold))
        if len(labels) < (1 if config.data.multi else 2):
            raise DataError(
                f"{examples[0].place.rpartition(':')[0] if examples else 'The training file'}: "
                f"only one label, {', '.join(labels) or 'none'}. There is nothing to tell apart."
            )
        return labels

    def check(self, examples: Sequence[Example]) -> None:
        """Refuse a label that training never saw."""
        check_labels(examples, self.labels, _several)

    def ask(self, given: Any, cut: Cut) -> Example:
        """A text, or its tokens."""
        if not isinstance(given, str | list | tuple):
            raise UsageError(f"A text to classify is a string or a list of tokens, not {given!r:.60}.")
        tokens = cut(given) if isinstance(given, str) else list(given)
        return Example("the text", (checked(tokens, "the text", self.config.data.max_tokens, cut=True),))

    def network(self, inputs: Featurizer, examples: Sequence[Example]) -> nn.Module:
        """Tokens, encoder, pooling, dense layers."""
        golds = [label for example in examples for label in _several(example.gold)]
        weights = class_weights(self.config, self.labels, golds)
        return Classifier(inputs, self.config, weights)

    def loss(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> Tensor:
        """Cross entropy, of each label alone where there may be several."""
        weights = cast(Tensor, network.weights)
        if self.config.data.multi:
            wanted = torch.zeros_like(outputs)
            for row, example in enumerate(examples):
                for label in example.gold:
                    wanted[row, self._ids[label]] = 1.0
            return F.binary_cross_entropy_with_logits(outputs, wanted, pos_weight=weights)
        targets = torch.tensor([self._ids[example.gold] for example in examples], device=outputs.device)
        return F.cross_entropy(outputs, targets, weights)

    def answers(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> list[Answer]:
        """The most probable label, or all that are more probable than not."""
        if not self.config.data.multi:
            return most_probable(outputs, examples, self.labels)
        found = []
        for example, row in zip(examples, outputs.sigmoid().cpu(), strict=True):
            probabilities = ranked(self.labels, row)
            chosen = tuple(label for label in self.labels if probabilities[label] > HALF)
            found.append(Answer(example.sentences, chosen, None, probabilities))
        return found

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """Accuracy and macro F1; for several labels micro F1."""
        gold, guess = [example.gold for example in examples], [answer.answer for answer in answers]
        return (several if self.config.data.multi else classes)(gold, guess, self.labels)


def labels_of(row: TableRow, config: TaskConfig) -> tuple[str, ...]:
    """The labels of a row: a text, with separators where there may be several, or a list."""
    data = config.data
    value = row.fields.get(data.label)
    if isinstance(value, list):
        found = tuple(str(label).strip() for label in value)
    else:
        text = row.text(data.label).strip()
        parts = text.split(data.separator) if data.multi and text else [text] if text else []
        found = tuple(part.strip() for part in parts)
    if data.multi and not all(found):
        raise DataError(f"{row.place}: an empty label in {value!r:.40}. Is a {data.separator!r} too many?")
    if not data.multi and len(found) != 1:
        hint = "set data.multi=true" if found else "every example needs one"
        raise DataError(f"{row.place}: {len(found)} labels ({data.label}), expected one: {hint}.")
    return found


def _several(gold: Any) -> tuple[str, ...]:
    return (gold,) if isinstance(gold, str) else tuple(gold)


class Classifier(nn.Module):
    """Tokens to one vector to K outputs."""

    weights: Tensor

    def __init__(self, inputs: Featurizer, config: TaskConfig, weights: Tensor) -> None:
        super().__init__()
        self.stack = TokenStack(inputs, config.encoder)
        self.pool = config.head.pool
        size = self.stack.size
        self.attention: Attention | Biattention | None = None
        if self.pool in ("attention", "biattention"):
            self.attention = (Attention if self.pool == "attention" else Biattention)(size)
            size = self.attention.size
        self.dense = Dense(size, config.head.hidden, len(weights), config.head.dropout)
        self.register_buffer("weights", weights)

    def forward(self, sides: Sequence[TokenFeatures], examples: Sequence[Example]) -> Tensor:
        """A batch to (B, K)."""
        (side,) = sides
        outputs, mask = self.stack(side), side.mask
        if self.attention is not None:
            pooled = self.attention(outputs, mask)
        elif self.pool == "last":
            pooled = self._last(outputs, side.lengths)
        else:
            pooled = (mean if self.pool == "mean" else maximum)(outputs, mask)
        return self.dense(pooled)  # type: ignore[no-any-return]

    def _last(self, outputs: Tensor, lengths: Tensor) -> Tensor:
        """The encoder's last outputs; of ELMo behind it, the mean."""
        encoder = self.stack.encoder
        if encoder is None:
            raise UsageError("head.pool last needs an encoder.")
        last = encoder.last(outputs[..., : encoder.size], lengths)
        late = outputs[..., encoder.size :]
        width = torch.arange(outputs.shape[1], device=lengths.device)
        return torch.cat([last, mean(late, width < lengths[:, None])], dim=1)
