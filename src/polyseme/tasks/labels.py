"""Labels of classes: their order, their check, their weights, their probabilities.

    tasks.data.tables  ->  tasks.labels  ->  classification, tagging, pairs, relations

K labels.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import torch
from pydantic import BeforeValidator
from torch import Tensor

from polyseme.errors import DataError
from polyseme.tasks.data.columns import NUMBER
from polyseme.tasks.data.tables import TableRow

Label = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else json.dumps(value))]


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels: by value if all are numbers, else by letter."""
    distinct = set(labels)
    if all(NUMBER.fullmatch(label) for label in distinct):
        return tuple(sorted(distinct, key=lambda label: (int(label), label)))
    return tuple(sorted(distinct))


def require_labels(labels: Sequence[str], source: str, name: str = "label", least: int = 2) -> None:
    """Raise `DataError` if there are too few labels to learn anything."""
    if len(labels) < least:
        raise DataError(
            f"{source}: only one {name}, {', '.join(labels) or 'none'}. There is nothing to tell apart."
        )


def check_labels(labels: Iterable[tuple[str, str]], known: Sequence[str]) -> None:
    """Raise `DataError` for a label that is not known; `labels` are pairs of location and label."""
    names = set(known)
    for location, label in labels:
        if label not in names:
            shown = ", ".join(known[:8]) + (" …" if len(known) > 8 else "")
            raise DataError(
                f"{location}: the label {label!r} is not in the training data ({shown}). "
                "Is it misspelt, or is this the file of another task?"
            )


def read_label(row: TableRow, column: str) -> str:
    """The one label of a row."""
    labels = split_labels(row, column, separator=None)
    if len(labels) != 1:
        hint = "set data.multi=true" if labels else "every example needs one"
        raise DataError(f"{row.location}: {len(labels)} labels ({column}), expected one: {hint}.")
    return labels[0]


def split_labels(row: TableRow, column: str, separator: str | None) -> tuple[str, ...]:
    """The labels of a row: a list, or a text that holds one label or several with separators."""
    value = row.fields.get(column)
    if isinstance(value, list | tuple):
        return tuple(str(label).strip() for label in value)
    text = row.text(column).strip()
    parts = text.split(separator) if separator and text else [text] if text else []
    return tuple(part.strip() for part in parts)


def compute_class_weights(
    kind: Literal["none", "balanced"], labels: Sequence[str], observed: Sequence[str]
) -> Tensor:
    """The weight of each label in the loss (K,): ones, or more for rare labels so that all count alike."""
    if kind == "none":
        return torch.ones(len(labels))
    frequency = Counter(observed)
    counts = torch.tensor([max(1, frequency[label]) for label in labels])
    return len(observed) / (len(labels) * counts.float())


def rank_labels(labels: Sequence[str], probabilities: Tensor) -> dict[str, float]:
    """Labels with their probabilities (K,), most probable first."""
    order = probabilities.argsort(descending=True, stable=True).tolist()
    return {labels[number]: float(probabilities[number]) for number in order}


def round_probabilities(probabilities: dict[str, float]) -> dict[str, float]:
    """Probabilities as JSON shows them."""
    return {label: round(probability, 6) for label, probability in probabilities.items()}
