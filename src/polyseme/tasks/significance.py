"""How sure a difference between two groups of runs is: by their seeds, and by their test examples.

    tasks.experiment (results of runs)  ->  tasks.significance  ->  tasks.report, benchmarks

Two questions: would other seeds say the same (Welch's t-test over the runs), and would other test examples
say the same (paired bootstrap: all runs are scored on the same random draws of the examples)? Both are
deterministic. The draws follow from the number of examples alone, so runs made at any time can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lgamma, pi, sqrt
from statistics import mean, variance
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.tasks.protocol import AnyTask, Example

RESAMPLES = 300  # draws of the test examples
MIN_EXAMPLES = 30  # fewer cannot stand for others
SURE, LIKELY = 0.05, 0.2  # the chance of an error below which a difference is called so
DIGITS = 5  # of a score that is kept


def draw_resamples(examples: int, count: int = RESAMPLES) -> Iterator[NDArray[np.int64]]:
    """Draw `count` times as many numbers of examples as there are, with replacement; always the same."""
    chance = np.random.default_rng(examples)
    for _ in range(count):
        yield chance.integers(0, examples, examples)


def score_resamples(
    task: AnyTask, examples: Sequence[Example], predictions: Sequence[Any], count: int = RESAMPLES
) -> list[float]:
    """Score predictions on draws of the examples.

    Args:
        task: Whose main metric is computed.
        examples: With their labels.
        predictions: One for each example.
        count: The number of draws.

    Returns:
        The main metric on each draw. Those of two models on the same examples are paired. Empty if there are
        too few examples to stand for others.

    """
    if len(examples) < MIN_EXAMPLES:
        return []
    values = []
    for numbers in draw_resamples(len(examples), count):
        chosen = numbers.tolist()
        score = task.score([examples[n] for n in chosen], [predictions[n] for n in chosen])
        values.append(round(score.value, DIGITS))
    return values


@dataclass(frozen=True)
class Difference:
    """The difference between two groups of runs: after minus before.

    Attributes:
        gain: Of the means.
        error_reduction: The share of the error (1 - metric) that is gone.
        runs: The number of runs of the smaller group.
        seeds_p: Chance of so large a difference if only the seeds differed; None with fewer than two runs.
        low, high: 95% of the draws of the examples have a difference between these; None without draws.
        examples_p: Chance of so large a difference if only the examples differed; None without draws.

    """

    gain: float
    error_reduction: float
    runs: int
    seeds_p: float | None
    low: float | None
    high: float | None
    examples_p: float | None

    @property
    def verdict(self) -> str:
        """In words: "sure", "likely", "not shown", or "one run"."""
        tests = [p for p in (self.seeds_p, self.examples_p) if p is not None]
        if not tests or min(tests) >= SURE or max(tests) >= LIKELY:
            return "not shown"
        if self.seeds_p is None:
            return "one run"
        return "sure" if len(tests) == 2 and max(tests) < SURE else "likely"


def compare_runs(
    before: Sequence[float],
    after: Sequence[float],
    before_draws: Sequence[Sequence[float]] = (),
    after_draws: Sequence[Sequence[float]] = (),
) -> Difference:
    """Compare two groups of runs.

    Args:
        before: The metric of each run.
        after: The metric of each run of the other group.
        before_draws: What `score_resamples` gave for each run.
        after_draws: The same for the other group.

    """
    bare, gain = mean(before), mean(after) - mean(before)
    draws = [values for values in (*before_draws, *after_draws) if values]
    low = high = examples_p = None
    if draws and len(draws) == len(before) + len(after):
        count = min(map(len, draws))
        differences = np.mean([values[:count] for values in after_draws], axis=0)
        differences = differences - np.mean([values[:count] for values in before_draws], axis=0)
        low, high = (float(value) for value in np.quantile(differences, (0.025, 0.975)))
        wrong = np.sum(differences <= 0) if gain > 0 else np.sum(differences >= 0)
        examples_p = min(1.0, 2 * float(wrong + 1) / (count + 1))  # two sides; never 0
    return Difference(
        gain=gain,
        error_reduction=gain / (1 - bare) if bare < 1 else 0.0,
        runs=min(len(before), len(after)),
        seeds_p=compute_welch_p(before, after),
        low=low,
        high=high,
        examples_p=examples_p,
    )


def compute_welch_p(before: Sequence[float], after: Sequence[float]) -> float | None:
    """The two-sided p-value of Welch's t-test; None if a group has fewer than two values."""
    if min(len(before), len(after)) < 2:
        return None
    parts = [variance(values) / len(values) for values in (before, after)]
    gain = abs(mean(after) - mean(before))
    if not sum(parts):
        return 1.0 if gain == 0 else 0.0
    degrees = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (before, after), strict=True)
    )
    return _compute_t_tails(gain / sqrt(sum(parts)), degrees)


def _compute_t_tails(t: float, degrees: float) -> float:
    """The chance of more than |t| in Student's distribution, by an integral over the angle.

    With t = √degrees · tan(angle) the density is proportional to cos(angle) ** (degrees - 1).
    """
    angle = np.arctan(abs(t) / sqrt(degrees))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    angles = 0.5 * angle * (nodes + 1)  # from 0 to the angle of t
    inside = 0.5 * angle * float(weights @ np.cos(angles) ** (degrees - 1))
    scale = np.exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(pi)
    return float(min(1.0, max(0.0, 1 - 2 * scale * inside)))
