"""Examples and predictions of classification."""

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
class ClassificationExample:
    """A text and its labels; `labels` is None if they are not known."""

    location: str
    text: TokenizedText
    labels: tuple[str, ...] | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed."""
        return (self.text.tokens,)


@dataclass(frozen=True)
class ClassificationPrediction:
    """The most probable label of a text."""

    tokens: Tokens
    label: str
    probability: float
    probabilities: dict[str, float]  # of all labels, most probable first

    @property
    def labels(self) -> tuple[str, ...]:
        """The label, as a tuple."""
        return (self.label,)

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "tokens": list(self.tokens),
            "label": self.label,
            "probability": round(self.probability, 6),
            "probabilities": round_probabilities(self.probabilities),
        }

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        return {"text": join_tokens(self.tokens), "label": self.label, "probability": self.probability}

    __repr__ = format_prediction
    _repr_html_ = render_prediction


@dataclass(frozen=True)
class MultiLabelPrediction:
    """All labels of a text that are more probable than not."""

    tokens: Tokens
    labels: tuple[str, ...]
    probabilities: dict[str, float]  # of all labels, most probable first; they do not sum to 1

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "tokens": list(self.tokens),
            "labels": list(self.labels),
            "probabilities": round_probabilities(self.probabilities),
        }

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        return {"text": join_tokens(self.tokens), "labels": ", ".join(self.labels)}

    __repr__ = format_prediction
    _repr_html_ = render_prediction
