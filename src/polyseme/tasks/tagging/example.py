"""Examples and predictions of tagging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyseme.io.html import Cell
from polyseme.language.detokenize import join_tokens
from polyseme.tasks.examples import Offsets, TokenizedText, Tokens
from polyseme.tasks.predictions import format_prediction, render_prediction


@dataclass(frozen=True)
class TaggingExample:
    """A sentence and its tags; spans are spelled in BIOES, whatever the file has."""

    location: str
    text: TokenizedText
    tags: tuple[str, ...] | None = None  # None if they are not known
    scheme: str = "none"  # how the file spells spans
    lines: tuple[int, ...] = ()  # of each token in the file
    columns: int | None = None  # of the file; 0: word/tag lines

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed."""
        return (self.text.tokens,)


@dataclass(frozen=True)
class TaggedSpan:
    """A span of tokens with a label.

    Attributes:
        label: Its type, such as PER.
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

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values = {
            "label": self.label,
            "start": self.start,
            "stop": self.stop,
            "text": self.text,
            "probability": round(self.probability, 6),
        }
        return values if self.offsets is None else values | {"offsets": list(self.offsets)}


@dataclass(frozen=True)
class TaggingPrediction:
    """The best tags of a sentence.

    Attributes:
        tokens: The sentence.
        tags: One per token, in the scheme of the training file.
        probability: Of the least probable tag.
        token_probabilities: Of the tag of each token, over all sequences of tags.
        spans: What the tags spell; empty if they are not spans.

    """

    tokens: Tokens
    tags: tuple[str, ...]
    probability: float
    token_probabilities: tuple[float, ...]
    spans: tuple[TaggedSpan, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values: dict[str, Any] = {
            "tokens": list(self.tokens),
            "tags": list(self.tags),
            "probability": round(self.probability, 6),
            "token_probabilities": [round(share, 6) for share in self.token_probabilities],
        }
        return values | {"spans": [span.as_dict() for span in self.spans]} if self.spans else values

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        spans = ", ".join(f"{span.text} ({span.label})" for span in self.spans)
        shown = spans or " ".join(dict.fromkeys(tag for tag in self.tags if tag != "O"))
        return {"text": join_tokens(self.tokens), "tags": shown, "probability": self.probability}

    __repr__ = format_prediction
    _repr_html_ = render_prediction
