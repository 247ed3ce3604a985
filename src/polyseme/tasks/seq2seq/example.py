"""Examples and predictions of translations and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyseme.io.html import Cell
from polyseme.tasks.examples import TokenizedText, Tokens
from polyseme.tasks.predictions import format_prediction, render_prediction


@dataclass(frozen=True)
class TextPair:
    """A source and its target.

    Attributes:
        location: `file:line`.
        source: The text to read.
        target: The text to write; None if it is not known.

    """

    location: str
    source: TokenizedText
    target: str | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed: ELMo reads the source only."""
        return (self.source.tokens,)


@dataclass(frozen=True)
class WrittenText:
    """A generated text.

    Attributes:
        source: What was read.
        text: What was written.
        log_probability: Of the text, given the source; the natural logarithm.
        alternatives: Other texts that the search found, the best one first.

    """

    source: TokenizedText
    text: str
    log_probability: float
    alternatives: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "tokens": list(self.source.tokens),
            "text": self.text,
            "log_probability": round(self.log_probability, 4),
            "alternatives": list(self.alternatives),
        }

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        source = self.source
        return {"source": source.span_text(0, len(source.tokens)), "text": self.text}

    __repr__ = format_prediction
    _repr_html_ = render_prediction
