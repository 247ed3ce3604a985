"""Classification as a task: reading, labels, scores.

tasks.data.tables, tasks.classification.network  ->  tasks.classification.task  ->  tasks.table
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

from polyseme.errors import DataError, UsageError
from polyseme.tasks.classification.example import (
    ClassificationExample,
    ClassificationPrediction,
    MultiLabelPrediction,
)
from polyseme.tasks.classification.network import Classifier
from polyseme.tasks.classification.settings import ClassificationSettings
from polyseme.tasks.data.sources import Source
from polyseme.tasks.data.tables import TableRow, find_table_format, read_rows, remove_labels
from polyseme.tasks.examples import Segmenter, name_source, tokenize_text
from polyseme.tasks.labels import (
    check_labels,
    compute_class_weights,
    read_label,
    require_labels,
    sort_labels,
    split_labels,
)
from polyseme.tasks.metrics import Scores, score_classes, score_label_sets
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import TaskSettings
from polyseme.text.reading import read_lines

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Classification:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "classification"
    settings_type: ClassVar[type[TaskSettings]] = ClassificationSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"a text"'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl",)
    decode_batch: ClassVar[int] = 64

    settings: ClassificationSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the training examples."""
        return tuple(self.learned.get("labels", ()))

    def read(
        self, source: Source, segmenter: Segmenter, *, labelled: bool = True
    ) -> list[ClassificationExample]:
        """CSV, TSV, JSON lines, lines that begin with a label, a folder per label, or records.

        Without labels, lines are texts, unless all of them begin with a label of the task.
        """
        data = self.settings.data
        file_format = find_table_format(source, data.format)
        if file_format == "lines" and not labelled:
            lines = remove_labels(list(read_lines(cast(str, source))), self.labels)
            return [self.parse(line.text, segmenter, line.location) for line in lines]
        columns = {"data.text": data.text, "data.label": data.label}
        examples, long = [], 0
        for row in read_rows(source, file_format, columns, labelled=labelled):
            text = tokenize_text(row.text(data.text), segmenter, row.location)
            labels = self._read_labels(row) if labelled and text.tokens else None
            if labels is None or set(labels).isdisjoint(data.skip):
                long += len(text.tokens) > data.max_tokens
                examples.append(ClassificationExample(row.location, text.truncate(data.max_tokens), labels))
        if long:
            logger.warning(
                f"{source}: {long} of {len(examples)} texts are longer than data.max_tokens "
                f"({data.max_tokens:,}) and were truncated."
            )
        return examples

    def _read_labels(self, row: TableRow) -> tuple[str, ...]:
        """The label of a row, or its labels."""
        data = self.settings.data
        if not data.multi:
            return (read_label(row, data.label),)
        labels = split_labels(row, data.label, data.separator)
        if not all(labels):
            raise DataError(
                f"{row.location}: an empty label in {row.fields[data.label]!r:.40}. "
                f"Is there a {data.separator!r} too many?"
            )
        return labels

    def learn(self, examples: Sequence[ClassificationExample]) -> Classification:
        """The task with the labels of the training examples."""
        labels = sort_labels(label for example in examples for label in example.labels or ())
        require_labels(labels, name_source(examples), least=1 if self.settings.data.multi else 2)
        return replace(self, learned={"labels": list(labels)})

    def check(self, examples: Sequence[ClassificationExample]) -> None:
        """Raise `DataError` for a label that is not in the training data."""
        labels = ((example.location, label) for example in examples for label in example.labels or ())
        check_labels(labels, self.labels)

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> ClassificationExample:
        """A text, or its tokens."""
        if not isinstance(question, str | list | tuple):
            raise UsageError(
                f"{location}: a text to classify is a string or a list of tokens, not {question!r:.60}."
            )
        text = tokenize_text(question, segmenter, location)
        return ClassificationExample(location, text.truncate(self.settings.data.max_tokens))

    def count_labels(self, example: ClassificationExample) -> Mapping[str, int]:
        """How often each label occurs."""
        return Counter(example.labels or ())

    def build_network(self, featurizer: Featurizer, examples: Sequence[ClassificationExample]) -> Classifier:
        """The untrained network."""
        observed = [label for example in examples for label in example.labels or ()]
        weights = compute_class_weights(self.settings.train.class_weights, self.labels, observed)
        return Classifier(featurizer, self.settings, self.labels, weights)

    def score(
        self,
        examples: Sequence[ClassificationExample],
        predictions: Sequence[ClassificationPrediction | MultiLabelPrediction],
    ) -> Scores:
        """Accuracy and macro F1; micro F1 if there may be several labels."""
        labels = [example.labels or () for example in examples]
        predicted = [prediction.labels for prediction in predictions]
        if self.settings.data.multi:
            return score_label_sets(labels, predicted, self.labels)
        return score_classes([label for (label,) in labels], [label for (label,) in predicted], self.labels)

    def predict_from(
        self, example: ClassificationExample, probabilities: Mapping[str, float]
    ) -> ClassificationPrediction | None:
        """The prediction with these probabilities, most probable first; None with several labels."""
        if self.settings.data.multi:
            return None
        label, probability = next(iter(probabilities.items()))
        return ClassificationPrediction(example.text.tokens, label, probability, dict(probabilities))

    def format(self, prediction: ClassificationPrediction | MultiLabelPrediction, output_format: str) -> str:
        """There is no format but JSON lines."""
        raise UsageError(f"{self.name} has no output format {output_format!r}.")
