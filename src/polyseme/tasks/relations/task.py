"""Relations as a task: reading, labels, scores.

    tasks.data.semeval, tasks.data.tables, tasks.relations.network  ->  tasks.relations.task  ->  tasks.table

Entities are marked in the text: <e1>fire</e1> … <e2>fuel</e2>. Offsets count in the text without the marks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.semeval import read_semeval
from polyseme.tasks.data.sources import Source
from polyseme.tasks.data.tables import find_table_format, read_rows
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.examples import Offsets, Segmenter, TokenizedText, check_tokens, name_source
from polyseme.tasks.labels import check_labels, compute_class_weights, read_label, require_labels, sort_labels
from polyseme.tasks.metrics import Scores, score_classes, score_relations
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.relations.example import RelationExample, RelationPrediction
from polyseme.tasks.relations.network import RelationNetwork
from polyseme.tasks.relations.settings import RelationsSettings
from polyseme.tasks.settings import TaskSettings

MARKS = re.compile(r"<(/?)(e[12])>")


@dataclass(frozen=True)
class Relations:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "relations"
    settings_type: ClassVar[type[TaskSettings]] = RelationsSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"the <e1>fire</e1> was caused by <e2>fuel</e2>"'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl",)
    decode_batch: ClassVar[int] = 64

    settings: RelationsSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """All relations of the training examples."""
        return tuple(self.learned.get("labels", ()))

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[RelationExample]:
        """SemEval's format, or tables whose texts mark <e1> and <e2>."""
        data = self.settings.data
        file_format = find_table_format(source, data.format)
        if file_format in ("semeval", "lines"):
            rows = read_semeval(str(source), data.text, data.label, labelled=labelled)
        else:
            columns = {"data.text": data.text, "data.label": data.label}
            rows = read_rows(source, file_format, columns, labelled=labelled)
        examples = []
        for row in rows:
            example = self.parse(row.text(data.text), segmenter, row.location)
            label = read_label(row, data.label) if labelled and example.text.tokens else None
            if label not in data.skip:
                examples.append(replace(example, label=label))
        return examples

    def learn(self, examples: Sequence[RelationExample]) -> Relations:
        """The task with the labels of the training examples."""
        labels = sort_labels(str(example.label) for example in examples)
        require_labels(labels, name_source(examples), "relation")
        return replace(self, learned={"labels": list(labels)})

    def check(self, examples: Sequence[RelationExample]) -> None:
        """Raise `DataError` for a relation that is not in the training data."""
        check_labels(((example.location, str(example.label)) for example in examples), self.labels)

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> RelationExample:
        """A text with its marks."""
        if not isinstance(question, str):
            raise UsageError(
                f"{location}: expected a text with <e1>…</e1> and <e2>…</e2>, not {question!r:.60}."
            )
        if not question.strip():
            nothing = Span("e1", 0, 0)
            return RelationExample(location, TokenizedText(()), (nothing, nothing))
        text, entities = segment_marked(question, segmenter, location)
        check_tokens(text.tokens, location, self.settings.data.max_tokens)
        return RelationExample(location, text, entities)

    def count_labels(self, example: RelationExample) -> Mapping[str, int]:
        """The label."""
        return {} if example.label is None else {example.label: 1}

    def build_network(self, featurizer: Featurizer, examples: Sequence[RelationExample]) -> RelationNetwork:
        """The untrained network."""
        observed = [str(example.label) for example in examples]
        weights = compute_class_weights(self.settings.train.class_weights, self.labels, observed)
        return RelationNetwork(featurizer, self.settings, self.labels, weights)

    def score(self, examples: Sequence[RelationExample], predictions: Sequence[RelationPrediction]) -> Scores:
        """SemEval's macro F1 without Other, and the confusion."""
        labels = [str(example.label) for example in examples]
        predicted = [prediction.label for prediction in predictions]
        relations, plain = score_relations(labels, predicted), score_classes(labels, predicted, self.labels)
        return replace(relations, confusion=plain.confusion, labels=plain.labels)

    def format(self, prediction: RelationPrediction, output_format: str) -> str:
        """There is no format but JSON lines."""
        raise UsageError(f"{self.name} has no output format {output_format!r}.")


def segment_marked(text: str, segmenter: Segmenter, location: str) -> tuple[TokenizedText, tuple[Span, Span]]:
    """The tokens of a text with marks, and the spans of its two entities.

    The text is segmented piece by piece, so that a mark always ends a token.
    """
    plain = ""  # the text without marks
    tokens: list[str] = []
    offsets: list[Offsets] = []
    starts: dict[str, int] = {}
    spans: dict[str, Span] = {}
    end = 0
    for mark in [*MARKS.finditer(text), None]:
        piece = text[end : mark.start() if mark else len(text)]
        for token in segmenter.tokens(piece):
            tokens.append(token.text)
            offsets.append((len(plain) + token.start, len(plain) + token.end))
        plain += piece
        if mark is None:
            break
        end = mark.end()
        closing, name = mark.groups()
        if not closing:
            starts[name] = len(tokens)
        elif name in starts and len(tokens) > starts[name]:
            spans[name] = Span(name, starts[name], len(tokens))
    if set(spans) != {"e1", "e2"} or len(MARKS.findall(text)) != 4:
        raise DataError(f"{location}: expected one <e1>…</e1> and one <e2>…</e2>, each with a word in it.")
    return TokenizedText(tuple(tokens), plain, tuple(offsets)), (spans["e1"], spans["e2"])
