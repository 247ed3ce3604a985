"""Examples and predictions of relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyseme.io.html import Cell
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.examples import Offsets, TokenizedText, Tokens
from polyseme.tasks.labels import round_probabilities
from polyseme.tasks.predictions import format_prediction, render_prediction


@dataclass(frozen=True)
class RelationExample:
    """A sentence with two entities, and the relation between them; None if that is not known."""

    location: str
    text: TokenizedText
    entities: tuple[Span, Span]
    label: str | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed."""
        return (self.text.tokens,)


@dataclass(frozen=True)
class RelationPrediction:
    """The most probable relation between two entities."""

    tokens: Tokens
    entities: tuple[str, str]  # their texts
    label: str
    probability: float
    probabilities: dict[str, float]  # of all labels, most probable first
    offsets: tuple[Offsets | None, Offsets | None] = (None, None)  # of the entities in the text without marks

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "tokens": list(self.tokens),
            "label": self.label,
            "probability": round(self.probability, 6),
            "probabilities": round_probabilities(self.probabilities),
            "entities": [
                {"text": text} | ({} if offsets is None else {"offsets": list(offsets)})
                for text, offsets in zip(self.entities, self.offsets, strict=True)
            ],
        }

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        first, second = self.entities
        return {"e1": first, "e2": second, "label": self.label, "probability": self.probability}

    __repr__ = format_prediction
    _repr_html_ = render_prediction
