"""Scores of predictions: accuracy, precision, recall, F1, spans, correlations, ranks.

    labels and predictions  ->  tasks.metrics  ->  the tasks, tasks.report

K labels. Scores are between 0 and 1. Tests compare them with scikit-learn, seqeval and scipy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.io.html import render_table
from polyseme.tasks.data.tag_schemes import Span


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of one label."""

    label: str
    precision: float
    recall: float
    f1: float
    count: int  # how often it occurs


@dataclass(frozen=True)
class Scores:
    """The scores of a task on a set of examples.

    Attributes:
        main: The name of the metric that training maximises.
        metrics: All metrics by name.
        rows: The scores of each label.
        confusion: Counts, labels down and predictions across; empty if single labels are not predicted.
        labels: Those of the confusion.
        notes: Lines that say how the metrics were computed.

    """

    main: str
    metrics: dict[str, float]
    rows: list[LabelScore] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The main metric."""
        return self.metrics[self.main]

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{name}: {value:.4f}' for name, value in self.metrics.items())})"

    def _repr_html_(self) -> str:
        metrics = render_table(["metric", "value"], list(self.metrics.items()))
        rows = [(row.label, row.precision, row.recall, row.f1, row.count) for row in self.rows]
        return metrics + (render_table(["label", "precision", "recall", "F1", "count"], rows) if rows else "")

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "main": self.main,
            "metrics": self.metrics,
            "labels": [vars(row) for row in self.rows],
            "confusion": {"labels": list(self.labels), "counts": self.confusion},
        } | ({"notes": list(self.notes)} if self.notes else {})


def compute_precision_recall_f1(correct: int, predicted: int, actual: int) -> tuple[float, float, float]:
    """Precision, recall and F1 from counts; 0 if there is nothing to divide by."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / actual if actual else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def count_row(label: str, correct: Counter[str], predicted: Counter[str], actual: Counter[str]) -> LabelScore:
    """The scores of a label from counts of all labels."""
    scores = compute_precision_recall_f1(correct[label], predicted[label], actual[label])
    return LabelScore(label, *scores, actual[label])


def score_classes(labels: Sequence[str], predicted: Sequence[str], known: Sequence[str]) -> Scores:
    """Score single labels: accuracy, macro F1, each label, the confusion."""
    ids = {label: number for number, label in enumerate(known)}
    counts = np.zeros((len(known), len(known)), np.int64)
    for label, prediction in zip(labels, predicted, strict=True):
        counts[ids[label], ids[prediction]] += 1
    rows = [
        LabelScore(
            label,
            *compute_precision_recall_f1(int(counts[n, n]), int(counts[:, n].sum()), int(counts[n].sum())),
            int(counts[n].sum()),
        )
        for n, label in enumerate(known)
    ]
    occurring = [row for n, row in enumerate(rows) if counts[n].sum() or counts[:, n].sum()]
    metrics = {
        "accuracy": float(np.trace(counts) / max(1, counts.sum())),
        "macro F1": sum(row.f1 for row in occurring) / max(1, len(occurring)),
    }
    return Scores("accuracy", metrics, rows, counts.tolist(), tuple(known))


def score_label_sets(
    labels: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], known: Sequence[str]
) -> Scores:
    """Score several labels per example: micro and macro F1, and how often all are correct."""
    correct, guessed, actual = Counter[str](), Counter[str](), Counter[str]()
    for wanted, chosen in zip(labels, predicted, strict=True):
        correct.update(set(wanted) & set(chosen))
        guessed.update(set(chosen))
        actual.update(set(wanted))
    rows = [count_row(label, correct, guessed, actual) for label in known]
    exact = sum(set(wanted) == set(chosen) for wanted, chosen in zip(labels, predicted, strict=True))
    metrics = {
        "micro F1": compute_precision_recall_f1(correct.total(), guessed.total(), actual.total())[2],
        "macro F1": sum(row.f1 for row in rows) / max(1, len(rows)),
        "all right": exact / max(1, len(labels)),
    }
    return Scores("micro F1", metrics, rows)


def score_spans(labels: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]) -> Scores:
    """Score spans with their types, as conlleval counts them."""
    correct, guessed, actual = Counter[str](), Counter[str](), Counter[str]()
    for wanted, chosen in zip(labels, predicted, strict=True):
        correct.update(span.label for span in set(wanted) & set(chosen))
        guessed.update(span.label for span in chosen)
        actual.update(span.label for span in wanted)
    rows = [count_row(label, correct, guessed, actual) for label in sorted(guessed.keys() | actual.keys())]
    precision, recall, f1 = compute_precision_recall_f1(correct.total(), guessed.total(), actual.total())
    return Scores("F1", {"F1": f1, "precision": precision, "recall": recall}, rows)


def score_relations(labels: Sequence[str], predicted: Sequence[str], other: str = "Other") -> Scores:
    """Score as SemEval-2010 Task 8: macro F1 over relations without `Other`; a wrong direction is wrong.

    A label is Relation(e1,e2) or Relation(e2,e1); precision and recall count both directions of a relation.
    """
    correct, guessed, actual = Counter[str](), Counter[str](), Counter[str]()
    for label, prediction in zip(labels, predicted, strict=True):
        actual[label.partition("(")[0]] += 1
        guessed[prediction.partition("(")[0]] += 1
        correct[label.partition("(")[0]] += label == prediction
    names = sorted((actual.keys() | guessed.keys()) - {other})
    rows = [count_row(name, correct, guessed, actual) for name in names]
    exact = sum(label == prediction for label, prediction in zip(labels, predicted, strict=True))
    metrics = {
        "macro F1": sum(row.f1 for row in rows) / max(1, len(rows)),
        "accuracy": exact / max(1, len(labels)),
    }
    return Scores("macro F1", metrics, rows)


def score_numbers(labels: Sequence[float], predicted: Sequence[float]) -> Scores:
    """Score numbers: Pearson and Spearman correlation, mean squared error."""
    actual, guessed = np.asarray(labels, np.float64), np.asarray(predicted, np.float64)
    metrics = {
        "Pearson": compute_pearson(actual, guessed),
        "Spearman": compute_pearson(ranks(actual), ranks(guessed)),
        "squared error": float(((actual - guessed) ** 2).mean()) if len(actual) else 0.0,
    }
    return Scores("Pearson", metrics)


def compute_pearson(xs: NDArray[np.float64], ys: NDArray[np.float64]) -> float:
    """Correlation; 0 if one of the two does not vary."""
    if len(xs) < 2:
        return 0.0
    a, b = xs - xs.mean(), ys - ys.mean()
    size = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size else 0.0


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value from 1; equal ones share the mean of theirs."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    means = np.empty(len(values))
    for start, stop in pairwise([*starts.tolist(), len(values)]):
        means[start:stop] = (start + stop + 1) / 2
    in_order = np.empty(len(values))
    in_order[order] = means
    return in_order


def score_ranking(
    groups: Sequence[Hashable], correct: Sequence[bool], scores: Sequence[float]
) -> dict[str, float]:
    """Score groups of several candidates: how often a correct one is first, and the mean reciprocal rank."""
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        members[group].append(number)
    first_ranks = []
    for candidates in members.values():
        if len(candidates) > 1 and any(correct[n] for n in candidates):
            order = sorted(candidates, key=lambda n: -scores[n])
            first_ranks.append(next(rank for rank, n in enumerate(order, start=1) if correct[n]))
    if not first_ranks:
        return {}
    return {
        "first is right": sum(rank == 1 for rank in first_ranks) / len(first_ranks),
        "mean 1/rank": sum(1 / rank for rank in first_ranks) / len(first_ranks),
    }
