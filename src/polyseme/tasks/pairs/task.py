"""Pairs as a task: reading, labels or numbers, scores.

tasks.data.tables, tasks.pairs.network  ->  tasks.pairs.task  ->  tasks.table
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.sources import Source
from polyseme.tasks.data.tables import TableRow, find_table_format, read_rows
from polyseme.tasks.examples import Segmenter, name_source, tokenize_text
from polyseme.tasks.labels import check_labels, compute_class_weights, read_label, sort_labels
from polyseme.tasks.metrics import Scores, score_classes, score_numbers, score_ranking
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.pairs.example import NumberPrediction, PairExample, PairPrediction
from polyseme.tasks.pairs.network import Matcher
from polyseme.tasks.pairs.settings import PairsSettings
from polyseme.tasks.settings import TaskSettings

POSITIVE_NAMES = (
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


@dataclass(frozen=True)
class Pairs:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "pairs"
    settings_type: ClassVar[type[TaskSettings]] = PairsSettings
    texts_per_question: ClassVar[int] = 2
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '("a text", "another text")'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl",)
    decode_batch: ClassVar[int] = 64

    settings: PairsSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the training examples; none if numbers are predicted."""
        return tuple(self.learned.get("labels", ()))

    @property
    def predicts_numbers(self) -> bool:
        """Whether a pair has a number instead of a label."""
        return self.settings.head.answer == "number"

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[PairExample]:
        """CSV, TSV, JSON lines or records with two texts and a label or a number."""
        data = self.settings.data
        file_format = find_table_format(source, data.format)
        if file_format in ("lines", "folder"):
            file_format = "tsv"  # SICK's .txt
        columns = {"data.first": data.first, "data.second": data.second, "data.label": data.label}
        examples = []
        for row in read_rows(source, file_format, columns, labelled=labelled):
            first, second = (
                tokenize_text(row.text(name), segmenter, row.location, data.max_tokens)
                for name in (data.first, data.second)
            )
            label = self._label_of(row) if labelled and first.tokens and second.tokens else None
            if not (isinstance(label, str) and label in data.skip):
                examples.append(PairExample(row.location, first, second, label))
        return examples

    def _label_of(self, row: TableRow) -> str | float:
        """The label, or the number, of a row."""
        column = self.settings.data.label
        if not self.predicts_numbers:
            return read_label(row, column)
        text = row.text(column)
        try:
            value = float(text)
        except ValueError:
            raise DataError(f"{row.location}: {column} is {text!r:.40}, expected a number.") from None
        if value != value or value in (float("inf"), float("-inf")):
            raise DataError(f"{row.location}: {column} is {text!r:.40}, expected a finite number.")
        return value

    def learn(self, examples: Sequence[PairExample]) -> Pairs:
        """The task with the labels of the training examples."""
        values = {example.label for example in examples}
        if len(values) < 2:
            raise DataError(f"{name_source(examples)}: all labels are the same. There is nothing to learn.")
        if self.predicts_numbers:
            return replace(self, learned={"labels": []})
        labels, positive = sort_labels(map(str, values)), self.settings.data.positive
        if positive is not None and positive not in labels:
            raise UsageError(f"data.positive is {positive!r}, the labels are {', '.join(labels[:8])}.")
        return replace(self, learned={"labels": list(labels)})

    def check(self, examples: Sequence[PairExample]) -> None:
        """Raise `DataError` for a label that is not in the training data."""
        if not self.predicts_numbers:
            check_labels(((example.location, str(example.label)) for example in examples), self.labels)

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> PairExample:
        """Two texts, or the tokens of both."""
        if not isinstance(question, list | tuple) or len(question) != 2:
            raise UsageError(f"{location}: a pair is a tuple of two texts, not {question!r:.60}.")
        first, second = (
            tokenize_text(text, segmenter, location, self.settings.data.max_tokens) for text in question
        )
        return PairExample(location, first, second)

    def count_labels(self, example: PairExample) -> Mapping[str, int]:
        """The label; nothing for a number."""
        return {example.label: 1} if isinstance(example.label, str) else {}

    def build_network(self, featurizer: Featurizer, examples: Sequence[PairExample]) -> Matcher:
        """The untrained network."""
        if self.predicts_numbers:
            numbers = [float(example.label or 0.0) for example in examples] or [0.0, 1.0]
            values = torch.tensor(numbers, dtype=torch.float32)
            scale = torch.stack([values.mean(), values.std(correction=0).clamp(min=1e-6)])
            return Matcher(featurizer, self.settings, (), torch.ones(1), scale)
        observed = [str(example.label) for example in examples]
        weights = compute_class_weights(self.settings.train.class_weights, self.labels, observed)
        return Matcher(featurizer, self.settings, self.labels, weights, torch.tensor([0.0, 1.0]))

    def score(
        self, examples: Sequence[PairExample], predictions: Sequence[PairPrediction | NumberPrediction]
    ) -> Scores:
        """Accuracy, with the ranks of right candidates if first texts repeat; or correlations of numbers.

        Ranks need a label that means "right": see `data.positive`.
        """
        if self.predicts_numbers:
            return score_numbers(
                [float(example.label or 0.0) for example in examples],
                [prediction.number for prediction in predictions if isinstance(prediction, NumberPrediction)],
            )
        labelled = [prediction for prediction in predictions if isinstance(prediction, PairPrediction)]
        labels = [str(example.label) for example in examples]
        scores = score_classes(labels, [prediction.label for prediction in labelled], self.labels)
        positive = self._find_positive_label()
        if positive is not None:
            groups = [example.first.tokens for example in examples]
            chances = [prediction.probabilities[positive] for prediction in labelled]
            scores.metrics.update(score_ranking(groups, [label == positive for label in labels], chances))
        return scores

    def _find_positive_label(self) -> str | None:
        """The label of right candidates: as set, or the only one of two with such a name."""
        if self.settings.data.positive is not None:
            return self.settings.data.positive
        candidates = [label for label in self.labels if label.lower() in POSITIVE_NAMES]
        return candidates[0] if len(self.labels) == 2 and len(candidates) == 1 else None

    def predict_from(self, example: PairExample, probabilities: Mapping[str, float]) -> PairPrediction | None:
        """The prediction with these probabilities, most probable first; None if numbers are predicted."""
        if self.predicts_numbers:
            return None
        label, probability = next(iter(probabilities.items()))
        tokens = (example.first.tokens, example.second.tokens)
        return PairPrediction(tokens, label, probability, dict(probabilities))

    def format(self, prediction: PairPrediction | NumberPrediction, output_format: str) -> str:
        """There is no format but JSON lines."""
        raise UsageError(f"{self.name} has no output format {output_format!r}.")
