"""A toy task in the real training loop: find the span of a text that answers a question."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import torch
import torch.nn.functional as F
from pydantic import PositiveInt
from torch import Tensor, nn

import polyseme
from polyseme.config import Settings
from polyseme.elmo import Elmo
from polyseme.errors import FormatError
from polyseme.io.html import Cell
from polyseme.tasks.data.sources import Source
from polyseme.tasks.data.tables import find_table_format, read_rows
from polyseme.tasks.examples import Offsets, Segmenter, TokenizedText, Tokens, tokenize_text
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.nn.pooling import LOW, mean
from polyseme.tasks.settings import EncoderSettings, TaskSettings

NAMES, CITIES, OTHER = (
    ("Anna", "Bert", "Carl"),
    ("New York", "Paris", "Rio"),
    ("flew", "to", "and", "ate", "there"),
)


class SpanHead(Settings):
    """Settings of the search for answers."""

    max_answer_tokens: PositiveInt = 4


class SpanSettings(TaskSettings):
    """Settings of the toy."""

    encoder: EncoderSettings = EncoderSettings(size=16)
    head: SpanHead = SpanHead()


@dataclass(frozen=True)
class SpanExample:
    """A question about a text; `answer` is a span of tokens."""

    location: str
    question: TokenizedText
    text: TokenizedText
    answer: tuple[int, int] | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed."""
        return (self.question.tokens, self.text.tokens)


@dataclass(frozen=True)
class SpanPrediction:
    """The best span of a text."""

    text: str
    offsets: Offsets
    span: tuple[int, int]

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"text": self.text, "offsets": list(self.offsets)}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        return {"answer": self.text}


class SpanNetwork(nn.Module):
    """Scores the first and the last token of an answer, given the question."""

    def __init__(self, featurizer: Featurizer, settings: SpanSettings) -> None:
        super().__init__()
        self.stack = TokenStack(featurizer, settings.encoder)
        self.ends = nn.ModuleList(nn.Bilinear(self.stack.size, self.stack.size, 1) for _ in range(2))
        self._max = settings.head.max_answer_tokens

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, batch: Sequence[SpanExample]) -> tuple[Tensor, Tensor]:
        """Scores of the first and of the last token, each (B, T)."""
        questions = self.stack.read([example.question.tokens for example in batch])
        texts = self.stack.read([example.text.tokens for example in batch])
        question = mean(self.stack(questions), questions.mask)  # (B, E)
        text = self.stack(texts)  # (B, T, E)
        question = question[:, None].expand_as(text).contiguous()  # (B, T, E)
        start, stop = (end(text, question)[..., 0].masked_fill(~texts.mask, LOW) for end in self.ends)
        return start, stop

    def loss(self, batch: Sequence[SpanExample]) -> tuple[Tensor, int]:
        """Mean negative log likelihood of both ends."""
        start, stop = self(batch)
        targets = torch.tensor([example.answer for example in batch])
        return F.cross_entropy(start, targets[:, 0]) + F.cross_entropy(stop, targets[:, 1] - 1), len(batch)

    def decode(self, batch: Sequence[SpanExample]) -> list[SpanPrediction]:
        """The best legal span of each text."""
        start, stop = self(batch)
        scores = start[:, :, None] + stop[:, None, :]  # (B, T, T)
        legal = torch.ones_like(scores[0]).triu() * torch.ones_like(scores[0]).tril(self._max - 1)
        best = scores.masked_fill(legal == 0, 2 * LOW).flatten(1).argmax(dim=1).tolist()
        predictions = []
        for example, number in zip(batch, best, strict=True):
            first, last = divmod(number, scores.shape[2])
            offsets = example.text.span_offsets(first, last + 1)
            assert offsets is not None
            text = example.text.span_text(first, last + 1)
            predictions.append(SpanPrediction(text, offsets, (first, last + 1)))
        return predictions


@dataclass(frozen=True)
class SpanExtraction:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "toy-spans"
    settings_type: ClassVar[type[TaskSettings]] = SpanSettings
    texts_per_question: ClassVar[int] = 2
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '("who ?", "Anna flew to Rio")'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl",)
    decode_batch: ClassVar[int] = 8

    settings: SpanSettings
    learned: Mapping[str, Any] = field(default_factory=dict)
    labels: ClassVar[tuple[str, ...]] = ()

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[SpanExample]:
        """Rows of question, context and answer, which is a part of the context."""
        columns = {"question": "question", "context": "context", "answer": "answer"}
        examples = []
        for row in read_rows(source, find_table_format(source, "auto"), columns, labelled=labelled):
            question = (row.text("question"), row.text("context"))
            example = self.parse(question, segmenter, row.location)
            answer = self._find(example.text, row.text("answer")) if labelled else None
            examples.append(SpanExample(row.location, example.question, example.text, answer))
        return examples

    def _find(self, text: TokenizedText, answer: str) -> tuple[int, int]:
        """The span of tokens of an answer, from its offsets in the raw text."""
        start = str(text.text).index(answer)
        stop = start + len(answer)
        inside = [n for n, (first, last) in enumerate(text.offsets) if first < stop and last > start]
        return inside[0], inside[-1] + 1

    def learn(self, examples: Sequence[SpanExample]) -> SpanExtraction:
        """Nothing is learned but weights."""
        return self

    def check(self, examples: Sequence[SpanExample]) -> None:
        """Any answer may occur."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> SpanExample:
        """A question and a text."""
        question_tokens, text_tokens = (tokenize_text(part, segmenter, location) for part in question)
        return SpanExample(location, question_tokens, text_tokens)

    def count_labels(self, example: SpanExample) -> Mapping[str, int]:
        """There are no labels."""
        return {}

    def build_network(self, featurizer: Featurizer, examples: Sequence[SpanExample]) -> SpanNetwork:
        """The untrained network."""
        return SpanNetwork(featurizer, self.settings)

    def score(self, examples: Sequence[SpanExample], predictions: Sequence[SpanPrediction]) -> Scores:
        """Exact matches."""
        correct = sum(e.answer == p.span for e, p in zip(examples, predictions, strict=True))
        return Scores("exact", {"exact": correct / len(examples)})

    def format(self, prediction: SpanPrediction, output_format: str) -> str:
        """There is no format but JSON lines."""
        raise NotImplementedError


def make_rows(count: int) -> list[dict[str, str]]:
    rng = random.Random(count)
    rows = []
    for number in range(count):
        name, city = rng.choice(NAMES), rng.choice(CITIES)
        words = [name, *rng.sample(OTHER, 2), city, *rng.sample(OTHER, rng.randint(0, 2))]
        question, answer = ("who flew ?", name) if number % 2 else ("which city ?", city)
        rows.append({"question": question, "context": "  ".join(words), "answer": answer})
    return rows


def test_spans_are_predicted_with_their_offsets_in_the_raw_text(elmo: Elmo, tmp_path: Path):
    settings = ["train.epochs=12", "train.rate=0.02", "train.batch=8", "input.words=16", "input.dropout=0"]
    model = polyseme.train(
        SpanExtraction, elmo, train=make_rows(80), dev=make_rows(20), out=tmp_path / "task", settings=settings
    )
    assert model.results[0].dev["exact"] > 0.9
    text = "Carl  flew to   New York"
    with pytest.raises(
        FormatError, match=r"task: a model of the task 'toy-spans', .* Pass its class as `poly"
    ):
        polyseme.load_task(tmp_path / "task")
    loaded = polyseme.load_task(tmp_path / "task", task=SpanExtraction)
    for question, answer in (("which city ?", "New York"), ("who flew ?", "Carl")):
        prediction = loaded.predict((question, text))
        start, stop = prediction.offsets
        assert prediction.text == text[start:stop] == answer
        assert prediction == model.predict((question, text))
