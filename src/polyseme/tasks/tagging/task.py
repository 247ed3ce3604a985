"""Tagging as a task: reading, tag schemes, scores.

    tasks.data.columns, tasks.data.tag_schemes, tasks.tagging.network  ->  tasks.tagging.task  ->  tasks.table

Tags that spell spans become BIOES for the network, and again the scheme of the file in predictions.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.columns import (
    TaggedSentence,
    check_columns,
    count_columns,
    find_tagged_format,
    read_tagged,
    read_tagged_records,
)
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.data.tag_schemes import (
    find_fault,
    guess_scheme,
    mend_tags,
    read_spans,
    split_tag,
    write_spans,
)
from polyseme.tasks.examples import Segmenter, TokenizedText, check_tokens, name_source, tokenize_text
from polyseme.tasks.labels import compute_class_weights, require_labels, sort_labels
from polyseme.tasks.metrics import Scores, score_classes, score_spans
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import TaskSettings, replace_in
from polyseme.tasks.tagging.example import TaggingExample, TaggingPrediction
from polyseme.tasks.tagging.network import Tagger
from polyseme.tasks.tagging.settings import TaggingSettings
from polyseme.text.reading import read_lines
from polyseme.text.segment.token import HAN

logger = logging.getLogger(__name__)
MAX_SLIPS = 0.01  # of the sentences of a file may break its scheme; they are mended
HAN_TOKEN = re.compile(f"[{HAN}]+")
SINGLE_SHARE = 0.98  # of the Chinese tokens of a file that is segmented into characters


@dataclass(frozen=True)
class Tagging:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "tagging"
    settings_type: ClassVar[type[TaskSettings]] = TaggingSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"a text"'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl", "columns")
    decode_batch: ClassVar[int] = 64

    settings: TaggingSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """All tags; of spans, all BIOES tags of each type."""
        return tuple(self.learned.get("labels", ()))

    @property
    def has_spans(self) -> bool:
        """Whether tags spell spans."""
        return self.settings.data.scheme != "none"

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[TaggingExample]:
        """Columns, CoNLL-U, word/tag lines, or records."""
        sentences, columns = self._read_sentences(source, labelled=labelled)
        data = self.settings.data
        scheme: str = data.scheme
        if labelled and scheme == "auto":
            scheme = guess_scheme([sentence.tags for sentence in sentences])
        if labelled and scheme != "none":
            sentences = _mend_slips(sentences, scheme, str(source))
        examples = []
        for tokens, tags, locations in sentences:
            check_tokens(tokens, locations[0], data.max_tokens)
            lines = tuple(int(location.rpartition(":")[2]) for location in locations[: len(tokens)])
            labels = _to_bioes(tags, scheme) if labelled else None
            text = TokenizedText(tuple(tokens))
            examples.append(TaggingExample(locations[0], text, labels, scheme, lines, columns))
        return examples

    def _read_sentences(self, source: Source, *, labelled: bool) -> tuple[list[TaggedSentence], int | None]:
        """The sentences of a source, and the number of columns of a file."""
        data = self.settings.data
        if isinstance(source, Records):
            return list(read_tagged_records(source, data.word, data.tag, tags=labelled)), None
        lines = list(read_lines(source))
        file_format = find_tagged_format(source, lines, data.format)
        if not labelled and file_format == "columns" and data.columns == 0:
            file_format = "slashed"  # as in training, here without the tags
        columns = count_columns(lines, file_format)
        if not labelled and file_format == "columns":
            check_columns(source, columns, data.columns)
        return list(read_tagged(lines, file_format, data.word, data.tag, tags=labelled)), columns

    def learn(self, examples: Sequence[TaggingExample]) -> Tagging:
        """The task with all tags, and the scheme, columns and segmentation of the training file."""
        observed = sort_labels(tag for example in examples for tag in example.tags or ())
        require_labels(observed, name_source(examples), "tag")
        first = examples[0]
        values: dict[str, Any] = {"scheme": first.scheme, "columns": first.columns}
        if self.settings.data.segment is None and is_per_character(examples):
            values["segment"] = "zh-char"
        labels = list(observed)
        if first.scheme != "none":
            types = sorted({split_tag(tag)[1] for tag in observed} - {""})
            labels = ["O", *(f"{letter}-{kind}" for kind in types for letter in "BIES")]
        return replace(self, settings=replace_in(self.settings, "data", **values), learned={"labels": labels})

    def check(self, examples: Sequence[TaggingExample]) -> None:
        """Raise `DataError` for a tag that is not in the training data."""
        known = set(self.labels)
        for example in examples:
            for tag, line in zip(example.tags or (), example.lines, strict=True):
                if tag not in known:
                    unknown = f"type {split_tag(tag)[1]!r}" if self.has_spans else f"tag {tag!r}"
                    raise DataError(
                        f"{name_source([example])}:{line}: the {unknown} is not in the training data. "
                        "Is it misspelt, or is this the file of another task?"
                    )

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> TaggingExample:
        """A text, or its tokens."""
        if not isinstance(question, str | list | tuple):
            raise UsageError(
                f"{location}: a sentence to tag is a string or a list of tokens, not {question!r:.60}."
            )
        text = tokenize_text(question, segmenter, location, self.settings.data.max_tokens)
        return TaggingExample(location, text)

    def count_labels(self, example: TaggingExample) -> Mapping[str, int]:
        """How often each tag occurs; of spans, each type."""
        tags = example.tags or ()
        return Counter(tags if example.scheme == "none" else (span.label for span in read_spans(tags)))

    def build_network(self, featurizer: Featurizer, examples: Sequence[TaggingExample]) -> Tagger:
        """The untrained network."""
        observed = [tag for example in examples for tag in example.tags or ()]
        weights = compute_class_weights(self.settings.train.class_weights, self.labels, observed)
        return Tagger(featurizer, self.settings, self.labels, weights)

    def score(self, examples: Sequence[TaggingExample], predictions: Sequence[TaggingPrediction]) -> Scores:
        """Span F1 as conlleval counts it, or accuracy."""
        tags = [example.tags or () for example in examples]
        predicted = [prediction.tags for prediction in predictions]
        if self.has_spans:
            return score_spans([read_spans(row) for row in tags], [read_spans(row) for row in predicted])
        return score_classes(_flatten(tags), _flatten(predicted), self.labels)

    def format(self, prediction: TaggingPrediction, output_format: str) -> str:
        """Columns: a token and its tag per line, and an empty line after the sentence."""
        rows = zip(prediction.tokens, prediction.tags, strict=True)
        return "\n".join([*(f"{token}\t{tag}" for token, tag in rows), ""])


def is_per_character(examples: Sequence[TaggingExample]) -> bool:
    """Whether sentences are mostly Chinese and have a token per character."""
    tokens = [token for example in examples for token in example.text.tokens]
    chinese = [token for token in tokens if HAN_TOKEN.fullmatch(token)]
    single = sum(len(token) == 1 for token in chinese)
    return 2 * len(chinese) > len(tokens) and single >= SINGLE_SHARE * len(chinese)


def _mend_slips(sentences: list[TaggedSentence], scheme: str, source: str) -> list[TaggedSentence]:
    """The sentences with legal tags: a few that break the scheme are mended and counted in one warning.

    Raises:
        DataError: If more than a few break it, which says that the scheme is another one.

    """
    faults = {n: fault for n, s in enumerate(sentences) if (fault := find_fault(s.tags, scheme)) is not None}
    if not faults:
        return sentences
    number, (position, problem) = next(iter(faults.items()))
    locations = sentences[number].locations
    first = f"{locations[min(position, len(locations) - 1)]}: {problem} in {scheme.upper()}"
    if len(faults) > MAX_SLIPS * len(sentences):
        alternative = "iob1 (spans may begin with I) or to none" if scheme == "iob2" else "none"
        raise DataError(
            f"{first}. Correct the line; or set data.scheme to {alternative} (tags are not spans)."
        )
    logger.warning(
        f"{source}: {len(faults):,} of {len(sentences):,} sentences have tags that break {scheme.upper()} "
        f"and were read as the nearest spans; the first is {first}."
    )
    return [s._replace(tags=mend_tags(s.tags, scheme)) if n in faults else s for n, s in enumerate(sentences)]


def _to_bioes(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Tags in BIOES, if they spell spans."""
    return tuple(tags if scheme == "none" else write_spans(read_spans(tags), len(tags), "bioes"))


def _flatten(rows: Iterable[Iterable[str]]) -> list[str]:
    return [value for row in rows for value in row]
