"""How good answers are: accuracy, precision, recall, F1, spans, correlations, ranks.

    gold and guess  ->  tasks.metrics  ->  tasks, tasks.report

K labels. Shares are from 0 to 1. Tests compare them with scikit-learn, seqeval and scipy.
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

from polyseme.tasks.data.tag_schemes import Span


@dataclass(frozen=True)
class LabelScore:
    """What is said of one label."""

    label: str
    precision: float
    recall: float
    f1: float
    count: int  # how often it is right


@dataclass(frozen=True)
class Scores:
    """The figures of a task on a file; `main` is the name of the one to make large."""

    main: str
    figures: dict[str, float]
    rows: list[LabelScore] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)  # gold down, guess across; empty where none
    labels: tuple[str, ...] = ()  # of the confusion

    @property
    def value(self) -> float:
        """The main figure."""
        return self.figures[self.main]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "main": self.main,
            "figures": self.figures,
            "labels": [vars(row) for row in self.rows],
            "confusion": {"labels": list(self.labels), "counts": self.confusion},
        }


def prf(right: int, guessed: int, gold: int) -> tuple[float, float, float]:
    """Precision, recall and F1 from counts; 0 where there is nothing to divide by."""
    precision = right / guessed if guessed else 0.0
    recall = right / gold if gold else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def classes(gold: Sequence[str], guess: Sequence[str], labels: Sequence[str]) -> Scores:
    """One label each: accuracy, macro F1, a row a label, the confusion."""
    place = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for one, other in zip(gold, guess, strict=True):
        counts[place[one], place[other]] += 1
    rows = [
        LabelScore(
            label,
            *prf(int(counts[n, n]), int(counts[:, n].sum()), int(counts[n].sum())),
            int(counts[n].sum()),
        )
        for n, label in enumerate(labels)
    ]
    seen = [row for n, row in enumerate(rows) if counts[n].sum() or counts[:, n].sum()]
    figures = {
        "accuracy": float(np.trace(counts) / max(1, counts.sum())),
        "macro F1": sum(row.f1 for row in seen) / max(1, len(seen)),
    }
    return Scores("accuracy", figures, rows, counts.tolist(), tuple(labels))


def several(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]], labels: Sequence[str]) -> Scores:
    """Several labels each: micro and macro F1, and how often all are right."""
    right, guessed, wanted = Counter[str](), Counter[str](), Counter[str]()
    for one, other in zip(gold, guess, strict=True):
        right.update(set(one) & set(other))
        guessed.update(set(other))
        wanted.update(set(one))
    rows = [LabelScore(name, *prf(right[name], guessed[name], wanted[name]), wanted[name]) for name in labels]
    exact = sum(set(one) == set(other) for one, other in zip(gold, guess, strict=True))
    figures = {
        "micro F1": prf(right.total(), guessed.total(), wanted.total())[2],
        "macro F1": sum(row.f1 for row in rows) / max(1, len(rows)),
        "all right": exact / max(1, len(gold)),
    }
    return Scores("micro F1", figures, rows)


def span_scores(gold: Sequence[Sequence[Span]], guess: Sequence[Sequence[Span]]) -> Scores:
    """Spans with their types, as conlleval counts them."""
    right, guessed, wanted = Counter[str](), Counter[str](), Counter[str]()
    for one, other in zip(gold, guess, strict=True):
        right.update(span.label for span in set(one) & set(other))
        guessed.update(span.label for span in other)
        wanted.update(span.label for span in one)
    labels = sorted(guessed.keys() | wanted.keys())
    rows = [LabelScore(name, *prf(right[name], guessed[name], wanted[name]), wanted[name]) for name in labels]
    precision, recall, f1 = prf(right.total(), guessed.total(), wanted.total())
    return Scores("F1", {"F1": f1, "precision": precision, "recall": recall}, rows)


def directed(gold: Sequence[str], guess: Sequence[str], other: str = "Other") -> Scores:
    """SemEval-2010 Task 8: macro F1 over the relations without `Other`; a wrong direction is wrong.

    A label is Relation(e1,e2) or Relation(e2,e1); precision and recall count both directions of a relation.
    """
    right, guessed, wanted = Counter[str](), Counter[str](), Counter[str]()
    for one, two in zip(gold, guess, strict=True):
        wanted[one.partition("(")[0]] += 1
        guessed[two.partition("(")[0]] += 1
        right[one.partition("(")[0]] += one == two
    names = sorted((wanted.keys() | guessed.keys()) - {other})
    rows = [LabelScore(name, *prf(right[name], guessed[name], wanted[name]), wanted[name]) for name in names]
    figures = {
        "macro F1": sum(row.f1 for row in rows) / max(1, len(rows)),
        "accuracy": sum(one == two for one, two in zip(gold, guess, strict=True)) / max(1, len(gold)),
    }
    return Scores("macro F1", figures, rows)


def numbers(gold: Sequence[float], guess: Sequence[float]) -> Scores:
    """Numbers: Pearson and Spearman correlation, mean squared error."""
    one, other = np.asarray(gold, np.float64), np.asarray(guess, np.float64)
    figures = {
        "Pearson": pearson(one, other),
        "Spearman": pearson(ranks(one), ranks(other)),
        "squared error": float(((one - other) ** 2).mean()) if len(one) else 0.0,
    }
    return Scores("Pearson", figures)


def pearson(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Correlation; 0 where one of the two does not vary."""
    if len(one) < 2:
        return 0.0
    a, b = one - one.mean(), other - other.mean()
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
    found = np.empty(len(values))
    found[order] = means
    return found


def ranking(groups: Sequence[Hashable], right: Sequence[bool], score: Sequence[float]) -> dict[str, float]:
    """Groups of several candidates: how often a right one is first, and the mean of 1 / its rank."""
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        members[group].append(number)
    places = []
    for numbers_ in members.values():
        if len(numbers_) > 1 and any(right[n] for n in numbers_):
            order = sorted(numbers_, key=lambda n: -score[n])
            places.append(1 + next(place for place, n in enumerate(order) if right[n]))
    if not places:
        return {}
    return {
        "first is right": sum(place == 1 for place in places) / len(places),
        "mean 1/rank": sum(1 / place for place in places) / len(places),
    }
