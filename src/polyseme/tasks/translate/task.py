"""Translation as a task: reading, units, BLEU.

tasks.data.parallel, tasks.seq2seq  ->  tasks.translate.task  ->  tasks.table
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from polyseme.tasks.data.parallel import PairColumns, read_text_pairs
from polyseme.tasks.data.sources import Source
from polyseme.tasks.examples import Segmenter
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.seq2seq.example import TextPair, WrittenText
from polyseme.tasks.seq2seq.network import Seq2SeqNetwork
from polyseme.tasks.seq2seq.text_pairs import build_seq2seq, learn_units, make_pairs, parse_source
from polyseme.tasks.settings import TaskSettings
from polyseme.tasks.translate.scores import choose_tokenizer, load_sacrebleu, score_translations
from polyseme.tasks.translate.settings import TranslateSettings


@dataclass(frozen=True)
class Translate:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "translate"
    settings_type: ClassVar[type[TaskSettings]] = TranslateSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"A man sits on a bank ."'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl", "text")
    decode_batch: ClassVar[int] = 32
    labels: ClassVar[tuple[str, ...]] = ()

    settings: TranslateSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[TextPair]:
        """Parallel files, lines with tabs, CSV, TSV, JSON lines, or records."""
        data = self.settings.data
        columns = PairColumns(("data.source", "data.target"), data.source, data.target)
        rows = read_text_pairs(source, data.format, columns, data.target_ending, labelled=labelled)
        return make_pairs(rows, segmenter, data.max_tokens, str(source))

    def learn(self, examples: Sequence[TextPair]) -> Translate:
        """The task with the units of the training targets."""
        load_sacrebleu()  # is missing before hours of training, not after them
        segment = self.settings.data.target_segment
        return replace(self, learned=learn_units(examples, self.settings.head, segment))

    def check(self, examples: Sequence[TextPair]) -> None:
        """Any target may occur."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> TextPair:
        """A text, or its tokens."""
        return parse_source(question, segmenter, location, self.settings.data.max_tokens)

    def count_labels(self, example: TextPair) -> Mapping[str, int]:
        """Nothing: targets are no labels, so any example may be held out."""
        return {}

    def build_network(self, featurizer: Featurizer, examples: Sequence[TextPair]) -> Seq2SeqNetwork:
        """The untrained network."""
        settings = self.settings
        precision = settings.train.precision
        return build_seq2seq(featurizer, settings.encoder, settings.head, precision, self.learned)

    def score(self, examples: Sequence[TextPair], predictions: Sequence[WrittenText]) -> Scores:
        """BLEU and chrF."""
        targets = [example.target or "" for example in examples]
        data = self.settings.data
        tokenizer = choose_tokenizer(data.bleu, targets, data.target_segment)
        return score_translations(targets, [prediction.text for prediction in predictions], tokenizer)

    def format(self, prediction: WrittenText, output_format: str) -> str:
        """The translation, as one line."""
        return prediction.text
