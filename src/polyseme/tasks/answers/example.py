"""Examples and predictions of question answering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from polyseme.io.html import Cell
from polyseme.tasks.data.questions import LabelledAnswer
from polyseme.tasks.examples import Offsets, TokenizedText, Tokens
from polyseme.tasks.predictions import format_prediction, render_prediction
from polyseme.text.segment import Token

CONTEXT = 60  # tokens on each side of an answer that are shown around it


@dataclass(frozen=True)
class AnswersExample:
    """A question about a text.

    Attributes:
        location: `file: question ID`.
        id: The id of the question.
        question: The question.
        text: The text.
        starts: The first token of each sentence of the text.
        answers: The labels; empty if the text has no answer, None if they are not known.
        group: What the text belongs to, such as an article: held out for dev as a whole.

    """

    location: str
    id: str
    question: TokenizedText
    text: TokenizedText
    starts: tuple[int, ...]
    answers: tuple[LabelledAnswer, ...] | None = None
    group: str = ""

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed: the question, and each sentence of the text."""
        tokens = self.text.tokens
        parts = [tokens[start:stop] for start, stop in pairwise([*self.starts, len(tokens)])]
        return (self.question.tokens, *(parts or [()]))


def join_sentences(
    text: str, sentences: Sequence[Sequence[Token]], max_tokens: int
) -> tuple[TokenizedText, tuple[int, ...]]:
    """The tokens of sentences of a text, and the first one of each; longer sentences are split."""
    tokens = [token for sentence in sentences for token in sentence]
    offsets = tuple((token.start, token.end) for token in tokens)
    starts, first = list[int](), 0
    for sentence in sentences:
        starts += range(first, first + len(sentence), max_tokens)
        first += len(sentence)
    return TokenizedText(tuple(token.text for token in tokens), text, offsets), tuple(starts)


class BestSpan(NamedTuple):
    """The best span of a text, in tokens.

    Attributes:
        margin: By how much its score exceeds that of "no answer".
        probability: Of its start times that of its stop, within its window.
        none_probability: That the window has no answer.
        start: Its first token.
        stop: The token after its last one.

    """

    margin: float
    probability: float
    none_probability: float
    start: int
    stop: int


@dataclass(frozen=True)
class AnswerPrediction:
    """The answer to a question.

    Attributes:
        id: The id of the question.
        question: The question.
        best: The best span of the text, even if it is no answer.
        answer: A part of the text; None if the text has no answer.
        offsets: Its start and stop in characters of the text; None without an answer or a raw text.
        passage: Its sentence: the text before it, the answer, the text after it; empty without an answer.
        source: The file that the text is from, if documents were searched.

    """

    id: str
    question: str
    best: BestSpan
    answer: str | None = None
    offsets: Offsets | None = None
    passage: tuple[str, str, str] = ("", "", "")
    source: str | None = None

    @property
    def probability(self) -> float:
        """Of the answer, or of having none."""
        return self.best.none_probability if self.answer is None else self.best.probability

    @property
    def marked(self) -> str:
        """The answer in [brackets] within its sentence; empty without an answer."""
        before, answer, after = self.passage
        return " ".join(f"{before}[{answer}]{after}".split()) if self.answer is not None else ""

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values: dict[str, Any] = {
            "id": self.id,
            "question": self.question,
            "answer": self.answer,
            "offsets": None if self.offsets is None else list(self.offsets),
            "probability": round(self.probability, 6),
            "marked": self.marked,
        }
        return values if self.source is None else values | {"source": self.source}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        row: dict[str, Cell] = {"question": self.question, "answer": self.answer or "no answer"}
        row |= {"probability": self.probability, "text": self.marked}
        return row if self.source is None else row | {"source": self.source}

    __repr__ = format_prediction
    _repr_html_ = render_prediction


def make_prediction(example: AnswersExample, best: BestSpan, *, has_answer: bool) -> AnswerPrediction:
    """The prediction with this span as its answer, or with no answer."""
    question = example.question.span_text(0, len(example.question.tokens))
    if not has_answer:
        return AnswerPrediction(example.id, question, best)
    span = (best.start, best.stop)
    text = example.text
    answer, offsets = text.span_text(*span), text.span_offsets(*span)
    return AnswerPrediction(example.id, question, best, answer, offsets, find_passage(example, *span))


def find_passage(example: AnswersExample, start: int, stop: int) -> tuple[str, str, str]:
    """The sentences of an answer, shortened if they are long: before it, the answer, after it."""
    text = example.text
    first = max((n for n in example.starts if n <= start), default=0)
    last = min((n for n in example.starts if n >= stop), default=len(text.tokens))
    left, right = max(first, start - CONTEXT), min(last, stop + CONTEXT)
    before = text.span_text(left, start) + text.gap_before(start) if start > left else ""
    after = text.gap_before(stop) + text.span_text(stop, right) if right > stop else ""
    return (
        ("… " if left > first else "") + before,
        text.span_text(start, stop),
        after + (" …" if right < last else ""),
    )
