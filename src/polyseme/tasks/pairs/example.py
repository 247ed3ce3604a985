"""Examples and predictions of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyseme.io.html import Cell
from polyseme.language.detokenize import join_tokens
from polyseme.tasks.examples import TokenizedText, Tokens
from polyseme.tasks.labels import round_probabilities
from polyseme.tasks.predictions import format_prediction, render_prediction


@dataclass(frozen=True)
class PairExample:
    """Two texts, and their label or number; None if that is not known."""

    location: str
    first: TokenizedText
    second: TokenizedText
    label: str | float | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed."""
        return (self.first.tokens, self.second.tokens)


@dataclass(frozen=True)
class PairPrediction:
    """The most probable label of a pair."""

    tokens: tuple[Tokens, Tokens]
    label: str
    probability: float
    probabilities: dict[str, float]  # of all labels, most probable first

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "tokens": [list(tokens) for tokens in self.tokens],
            "label": self.label,
            "probability": round(self.probability, 6),
            "probabilities": round_probabilities(self.probabilities),
        }

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        first, second = map(join_tokens, self.tokens)
        return {"first": first, "second": second, "label": self.label, "probability": self.probability}

    __repr__ = format_prediction
    _repr_html_ = render_prediction


@dataclass(frozen=True)
class NumberPrediction:
    """The number of a pair, such as a similarity."""

    tokens: tuple[Tokens, Tokens]
    number: float

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"tokens": [list(tokens) for tokens in self.tokens], "number": self.number}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        first, second = map(join_tokens, self.tokens)
        return {"first": first, "second": second, "number": self.number}

    __repr__ = format_prediction
    _repr_html_ = render_prediction
