"""Question answering as a task: reading, scores, formats, search in documents.

tasks.data.questions, tasks.answers.network, tasks.answers.scores  ->  tasks.answers.task  ->  tasks.table
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.tasks.answers.documents import AnswerSearch
from polyseme.tasks.answers.example import AnswerPrediction, AnswersExample, join_sentences
from polyseme.tasks.answers.network import AnswersNetwork
from polyseme.tasks.answers.page import render_answer
from polyseme.tasks.answers.scores import score_answers
from polyseme.tasks.answers.settings import AnswersSettings
from polyseme.tasks.data.questions import read_questions
from polyseme.tasks.data.sources import Source
from polyseme.tasks.examples import Segmenter, TokenizedText, name_source, tokenize_text
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import TaskSettings

Segmented = tuple[TokenizedText, tuple[int, ...]]  # a text, and the first tokens of its sentences


@dataclass(frozen=True)
class Answers:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "answers"
    settings_type: ClassVar[type[TaskSettings]] = AnswersSettings
    texts_per_question: ClassVar[int] = 2
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '("Where did he sit?", "He sat on the river bank.")'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl", "text", "html")
    decode_batch: ClassVar[int] = 16
    labels: ClassVar[tuple[str, ...]] = ()

    settings: AnswersSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[AnswersExample]:
        """SQuAD 1.1 and 2.0, JSON lines, or records."""
        data, segmented = self.settings.data, dict[str, Segmented]()
        examples = []
        for record in read_questions(source, data.format, labelled=labelled):
            if labelled and record.answers == () and not self.settings.head.allow_no_answer:
                raise DataError(
                    f"{record.location}: no answer. Set head.allow_no_answer=true to train with such "
                    "questions, or remove them."
                )
            if record.text not in segmented:  # many questions share a text
                segmented[record.text] = self._segment(record.text, segmenter, record.location)
            text, starts = segmented[record.text]
            question = tokenize_text(record.question, segmenter, record.location, data.max_tokens)
            examples.append(
                AnswersExample(
                    record.location, record.id, question, text, starts, record.answers, record.article
                )
            )
        return examples

    def _segment(self, text: Any, segmenter: Segmenter, location: str) -> Segmented:
        """The tokens of a text, sentence by sentence; a list of tokens is one sentence."""
        size = self.settings.data.max_tokens
        if isinstance(text, str):
            return join_sentences(text, segmenter.sentences(text), size)
        tokenized = tokenize_text(text, segmenter, location)
        return tokenized, tuple(range(0, len(tokenized.tokens), size))

    def learn(self, examples: Sequence[AnswersExample]) -> Answers:
        """Nothing is learned but weights; there must be answers to learn from."""
        if not any(example.answers for example in examples):
            raise DataError(f"{name_source(examples)}: no question has an answer. There is nothing to learn.")
        return self

    def check(self, examples: Sequence[AnswersExample]) -> None:
        """Any answers may occur."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> AnswersExample:
        """A question and a text, each raw or as tokens."""
        parts = question if isinstance(question, list | tuple) else ()
        if len(parts) != 2 or not all(isinstance(part, str | list | tuple) for part in parts):
            raise UsageError(f"{location}: a tuple of a question and a text, not {question!r:.60}.")
        asked = tokenize_text(parts[0], segmenter, location, self.settings.data.max_tokens)
        text, starts = self._segment(parts[1], segmenter, location)
        return AnswersExample(location, location, asked, text, starts)

    def open_documents(
        self, documents: Sequence[tuple[str, str]], segmenter: Segmenter, elmo: Elmo | None
    ) -> AnswerSearch:
        """Search documents, each with its name and text; implements `protocol.DocumentTask`."""
        settings = self.settings
        return AnswerSearch(documents, segmenter, elmo, settings.head.passages, settings.data.max_tokens)

    def count_labels(self, example: AnswersExample) -> Mapping[str, int]:
        """Nothing: an answer is no label, so any question may be held out."""
        return {}

    def build_network(self, featurizer: Featurizer, examples: Sequence[AnswersExample]) -> AnswersNetwork:
        """The untrained network."""
        return AnswersNetwork(featurizer, self.settings, examples)

    def score(self, examples: Sequence[AnswersExample], predictions: Sequence[AnswerPrediction]) -> Scores:
        """F1 and exact match."""
        return score_answers(
            [prediction.question for prediction in predictions],
            [[answer.text for answer in example.answers or ()] for example in examples],
            [prediction.answer for prediction in predictions],
        )

    def format(self, prediction: AnswerPrediction, output_format: str) -> str:
        """Lines to read, or a part of an HTML page: the question, the answer, and where it stands."""
        if output_format == "html":
            return render_answer(prediction)
        source = f" · {prediction.source}" if prediction.source else ""
        answer = "no answer" if prediction.answer is None else " ".join(prediction.answer.split())
        lines = [prediction.question, f"  {answer} ({prediction.probability:.0%}){source}"]
        return "\n".join([*lines, *([f"  {prediction.marked}"] if prediction.marked else []), ""])
