"""TF-IDF with logistic regression: the baseline that a classifier has to beat.

    tasks.examples, a task's scores  ->  tasks.tfidf  ->  tasks.experiment, tasks.report

Features are words and pairs of neighbouring words, in lower case, with a logarithmic count and the inverse
document frequency, scaled to length 1; for several texts, those of each text and the words they share. A
multinomial logistic regression with an L2 penalty is fitted by L-BFGS, its penalty chosen on dev. For tasks
that give an example one label. N examples, F features, K labels.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from polyseme.tasks.metrics import Scores
from polyseme.tasks.protocol import AnyTask, Example

NAME = "TF-IDF + logistic regression"
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # C of scikit-learn, tried on dev
MAX_ITERATIONS = 200
MAX_FEATURES = 500_000  # the most frequent ones


@runtime_checkable
class OneLabelTask(Protocol):
    """A task that may give an example one label."""

    def predict_from(self, example: Any, probabilities: Mapping[str, float]) -> Any | None:
        """The prediction with these probabilities; None if the settings ask for something else."""


@dataclass(frozen=True)
class Baseline:
    """The scores of TF-IDF with logistic regression."""

    dev: dict[str, float]
    test: dict[str, float]  # empty if there is no test set
    main: str  # the metric that is compared
    examples: int  # of training
    sizes: dict[str, int]  # examples of dev and test
    strength: float  # the C that is best on dev
    seconds: float


class TfidfVectors:
    """Turns texts into sparse vectors; the words and their frequencies come from the training examples."""

    def __init__(self, examples: Sequence[Example], max_features: int = MAX_FEATURES) -> None:
        frequencies: Counter[str] = Counter()
        for example in examples:
            frequencies.update(set(list_features(example)))
        self._columns = {
            name: column for column, (name, _) in enumerate(frequencies.most_common(max_features))
        }
        count = len(examples)
        self._weights = [math.log((1 + count) / (1 + frequencies[name])) + 1 for name in self._columns]

    def encode(self, examples: Sequence[Example]) -> Tensor:
        """The vectors (N, F) of length 1, as a sparse tensor."""
        rows, columns, values = list[int](), list[int](), list[float]()
        for row, example in enumerate(examples):
            counts = Counter(name for name in list_features(example) if name in self._columns)
            weights = [(1 + math.log(n)) * self._weights[self._columns[name]] for name, n in counts.items()]
            length = math.sqrt(sum(weight * weight for weight in weights)) or 1.0
            rows += [row] * len(counts)
            columns += [self._columns[name] for name in counts]
            values += [weight / length for weight in weights]
        shape = (len(examples), len(self._columns))
        indices, numbers = torch.tensor([rows, columns]), torch.tensor(values)
        return torch.sparse_coo_tensor(indices, numbers, shape, check_invariants=True).coalesce()


def list_features(example: Example) -> list[str]:
    """The words and pairs of words of an example; of several texts with their number, and shared words."""
    texts = [[token.lower() for token in tokens] for tokens in example.sentences]
    features: list[str] = []
    for number, words in enumerate(texts):
        mark = f"{number}\t" if len(texts) > 1 else ""
        features += [mark + word for word in words]
        features += [f"{mark}{first} {second}" for first, second in pairwise(words)]
    if len(texts) > 1:
        distinct = [set(words) for words in texts]
        shared = set.intersection(*distinct)
        features += [f"shared\t{word}" for word in sorted(shared)]
        features += [f"unshared\t{word}" for word in sorted(set.union(*distinct) - shared)]
    return features


def fit_regression(vectors: Tensor, labels: Tensor, classes: int, strength: float) -> tuple[Tensor, Tensor]:
    """Fit a multinomial logistic regression with an L2 penalty, as scikit-learn's with `C=strength`.

    Args:
        vectors: (N, F), sparse.
        labels: (N,) the class of each.
        classes: K.
        strength: The inverse of the penalty.

    Returns:
        The weights (F, K) and the biases (K,), which are not penalised.

    """
    weights = torch.zeros(vectors.shape[1], classes, requires_grad=True)
    biases = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights, biases], max_iter=MAX_ITERATIONS, tolerance_grad=1e-5, line_search_fn="strong_wolfe"
    )
    penalty = 1 / (2 * strength * max(len(labels), 1))

    def closure() -> Tensor:
        optimizer.zero_grad()
        scores = torch.sparse.mm(vectors, weights) + biases
        loss = torch.nn.functional.cross_entropy(scores, labels) + penalty * weights.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weights.detach(), biases.detach()


def train_baseline(
    task: AnyTask, train: Sequence[Example], dev: Sequence[Example], test: Sequence[Example] | None
) -> Baseline | None:
    """Train and score the baseline; None if the task does not give an example one label.

    Args:
        task: The task, which has learned its labels.
        train: Training examples.
        dev: Examples that choose the penalty.
        test: Examples to score, if any.

    """
    labels = task.labels
    if not isinstance(task, OneLabelTask) or len(labels) < 2:
        return None
    if task.predict_from(train[0], dict.fromkeys(labels, 1 / len(labels))) is None:
        return None
    start = time.perf_counter()
    numbers = {label: number for number, label in enumerate(labels)}
    vectors = TfidfVectors(train)
    targets = torch.tensor([numbers[next(iter(task.count_labels(example)))] for example in train])
    encoded = {name: vectors.encode(part) for name, part in (("train", train), ("dev", dev))}

    def score(part: Sequence[Example], matrix: Tensor, fitted: tuple[Tensor, Tensor]) -> Scores:
        chances = (torch.sparse.mm(matrix, fitted[0]) + fitted[1]).softmax(dim=1).tolist()
        predictions = []
        for example, row in zip(part, chances, strict=True):
            ranked = sorted(zip(labels, row, strict=True), key=lambda item: -item[1])
            predictions.append(task.predict_from(example, dict(ranked)))
        return task.score(part, predictions)

    best: tuple[float, float, tuple[Tensor, Tensor], Scores] | None = None
    for strength in STRENGTHS:
        fitted = fit_regression(encoded["train"], targets, len(labels), strength)
        scores = score(dev, encoded["dev"], fitted)
        value = scores.metrics[scores.main]
        if best is None or value > best[0]:
            best = value, strength, fitted, scores
    assert best is not None  # noqa: S101  # for mypy: there is a strength
    _, strength, fitted, dev_scores = best
    test_metrics = {} if test is None else score(test, vectors.encode(test), fitted).metrics
    seconds = time.perf_counter() - start
    return Baseline(
        dev_scores.metrics,
        test_metrics,
        dev_scores.main,
        len(train),
        {"dev": len(dev), "test": len(test or ())},
        strength,
        seconds,
    )
