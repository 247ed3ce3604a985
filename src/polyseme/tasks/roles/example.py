"""Examples and predictions of semantic roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.io.html import Cell
from polyseme.language.detokenize import join_tokens
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.examples import Offsets, TokenizedText, Tokens
from polyseme.tasks.predictions import format_prediction, render_prediction

PREDICATE = "V"  # the label of the predicate itself, in PropBank's files


@dataclass(frozen=True)
class Frame:
    """A predicate and its labelled spans; the predicate is one of them, labelled V."""

    predicate: int  # position of a token
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class RolesExample:
    """A sentence with its frames, one per predicate.

    Attributes:
        location: `file:line`.
        text: The sentence.
        frames: The labels; None if they are not known.
        predicates: Positions of the predicates, if they are given; None if the model has to find them.

    """

    location: str
    text: TokenizedText
    frames: tuple[Frame, ...] | None = None
    predicates: tuple[int, ...] | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed; all frames of a sentence share its vectors."""
        return (self.text.tokens,)


@dataclass(frozen=True)
class RoleSpan:
    """A span of tokens that plays a role.

    Attributes:
        label: The role, such as ARG0 or ARGM-LOC; V for the predicate.
        start: Its first token.
        stop: The token after its last one.
        text: Its text: as in the raw text, or tokens joined as people write.
        probability: Of its least probable tag.
        offsets: Start and stop in characters of the raw text; None if only tokens are known.

    """

    label: str
    start: int
    stop: int
    text: str
    probability: float
    offsets: Offsets | None = None

    def as_span(self) -> Span:
        """Its label, start and stop."""
        return Span(self.label, self.start, self.stop)

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values = {**vars(self), "probability": round(self.probability, 6)}
        offsets = values.pop("offsets")
        return values if offsets is None else values | {"offsets": list(offsets)}


@dataclass(frozen=True)
class PredictedFrame:
    """A predicate and the roles around it.

    Attributes:
        predicate: The position of its token.
        probability: That the token is a predicate; None if the predicate was given.
        roles: All spans, the predicate's among them, in the order of the sentence.
        text: The sentence with its roles in brackets: `[ARG0 He] [V sat] [ARGM-LOC on the bank] .`

    """

    predicate: int
    probability: float | None
    roles: tuple[RoleSpan, ...]
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values: dict[str, Any] = {"predicate": self.predicate}
        if self.probability is not None:
            values["probability"] = round(self.probability, 6)
        return values | {"roles": [role.as_dict() for role in self.roles], "text": self.text}


@dataclass(frozen=True)
class RolesPrediction:
    """The frames of a sentence, in the order of their predicates."""

    tokens: Tokens
    frames: tuple[PredictedFrame, ...]

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"tokens": list(self.tokens), "frames": [frame.as_dict() for frame in self.frames]}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        frames = "; ".join(frame.text for frame in self.frames)
        return {"text": join_tokens(self.tokens), "frames": frames}

    __repr__ = format_prediction
    _repr_html_ = render_prediction


def bracket_spans(text: TokenizedText, spans: Sequence[Span]) -> str:
    """The text with its spans in brackets; white space is that of the raw text, or one space per token."""
    labels = {span.start: span for span in spans}
    pieces: list[str] = []
    position = 0
    while position < len(text.tokens):
        span = labels.get(position)
        stop = position + 1 if span is None else span.stop
        pieces.append(text.gap_before(position))
        words = (
            text.span_text(position, stop) if text.text is not None else " ".join(text.tokens[position:stop])
        )
        pieces.append(words if span is None else f"[{span.label} {words}]")
        position = stop
    return "".join(pieces)
