"""How much the meaning of words differs between two corpora, and whether the difference is significant.

    search.index (two of one model), search.change_screening  ->  search.change
        ->  search.change_search, api

For each word:

    prototype   effect size: cosine distance of the mean vectors, 0 to 2, corrected for the noise of small
                samples (the mean cosine of pairs across the corpora against that of pairs within them), with
                a bootstrap confidence interval; p from a permutation test, q corrected for all words compared
    usual       the median prototype distance of words of similar frequency, and the percentile of this word
    distance    mean cosine distance of pairs across the corpora minus that within them     distance_p
    shift       Jensen-Shannon divergence of the shares of the groups of usages, 0 to 1     shift_p
    groups      groups of usages that only one corpus has (gained, lost), with quotations

N usages, H values, P permutations, K groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError, require
from polyseme.io import plots
from polyseme.io.atomic import new_file
from polyseme.io.html import Cell
from polyseme.search.change_screening import (
    MIN_USAGES,
    ChangeScreening,
    read_directions,
    sample_numbers,
)
from polyseme.search.change_statistics import (
    PERMUTATIONS,
    estimate_p,
    measure_distances,
    measure_interval,
)
from polyseme.search.clusters import cluster
from polyseme.search.index import Index, Usage
from polyseme.search.senses import average_groups

Array = NDArray[np.float64]
SIGNIFICANCE = 0.05
DRAWN_WORDS = 12  # in a plot
ABSENT, PRESENT = 0.05, 0.15  # shares of a group in one corpus and the other that make it gained or lost
GROUP_NEIGHBOURS, GROUP_EXAMPLES = 4, 2

GroupState = Literal["gained", "lost", "kept"]


@dataclass(frozen=True)
class GroupChange:
    """A group of usages of a word in two corpora.

    Attributes:
        state: "gained" if hardly any usage of the first corpus is in it, "lost" if hardly any of the second.
        shares: Its share of the usages in both corpora.
        neighbours: The words of the first corpus nearest to its centre.
        examples: Its most central usages in the corpus in which it is more frequent.

    """

    state: GroupState
    shares: tuple[float, float]
    neighbours: list[str]
    examples: list[Usage]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        examples = [usage.marked() for usage in self.examples]
        return {
            "state": self.state,
            "shares": list(self.shares),
            "neighbours": self.neighbours,
            "examples": examples,
        }


@dataclass(frozen=True)
class Change:
    """How the usages of a word differ between two corpora.

    Attributes:
        word: The word.
        counts: How many usages it has in each corpus.
        distance: Mean cosine distance across the corpora minus that within them.
        prototype: Cosine distance of the mean vectors, corrected for the noise of small samples.
        interval: 95% confidence interval of `prototype`.
        shift: How much the shares of the groups of usages differ, 0 to 1.
        shares: The share of each group in both corpora.
        p: p-value of `prototype`.
        q: `p` corrected for the number of words compared.
        usual: The median `prototype` of words of similar frequency.
        percentile: The share of words of similar frequency that changed less; None if it is not known.
        shift_p: p-value of `shift`.
        distance_p: p-value of `distance`.
        groups: The groups of usages, with examples.
        centres: (K, H) the directions of the groups.

    """

    word: str
    counts: tuple[int, int]
    distance: float
    prototype: float
    interval: tuple[float, float]
    shift: float
    shares: list[tuple[float, float]]
    p: float
    q: float
    usual: float
    percentile: float | None
    shift_p: float
    distance_p: float
    groups: list[GroupChange] = field(repr=False, compare=False)
    centres: NDArray[np.float32] = field(repr=False, compare=False)

    @property
    def changed(self) -> bool:
        """Whether the word changed by more than chance, and by more than is usual for its frequency."""
        return self.q < SIGNIFICANCE and self.interval[0] > self.usual

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the vectors."""
        hidden = ("centres", "groups")
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in hidden}
        values["interval"] = list(self.interval)
        return values | {"groups": [group.as_dict() for group in self.groups], "changed": self.changed}

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "word": self.word,
            "change": self.prototype,
            "95% interval": f"{self.interval[0]:.2f} to {self.interval[1]:.2f}",
            "q": self.q,
            "usual": self.usual,
            "percentile": "" if self.percentile is None else f"{self.percentile:.0%}",
            "changed": "yes" if self.changed else "no",
            "usages": f"{self.counts[0]:,} / {self.counts[1]:,}",
        }


def judge_changes(
    changes: Sequence[Change], screening: ChangeScreening, compared: Iterable[str]
) -> list[Change]:
    """Return the changes with q-values and what is usual for words of similar frequency."""
    judged = screening.judge([change.word for change in changes], compared)
    return [
        replace(change, q=known.q, usual=known.usual, percentile=known.percentile)
        for change, known in ((change, judged[change.word]) for change in changes)
    ]


def check_comparable(first: Index, second: Index) -> None:
    """Refuse indexes of different models, layers or views."""
    for name in ("model", "layer", "view"):
        if first.head[name] != second.head[name]:
            raise UsageError(f"The indexes differ in their {name}, so their vectors cannot be compared.")


def sort_changes(changes: Iterable[Change]) -> list[Change]:
    """Sort by the prototype distance, which agrees best with human judgement (benchmarks/RESULTS.md)."""
    return sorted(changes, key=lambda change: -change.prototype)


def check_usages(index: Index, words: Iterable[str]) -> None:
    """Refuse words with too few usages to compare them."""
    for word in words:
        if (count := index.count(word)) < MIN_USAGES:
            raise UsageError(f"{word!r} has {count} usages in {index.label}, {MIN_USAGES} are needed.")


def find_change(first: Index, second: Index, word: str, seed: int = 0) -> Change:
    """Compare the usages of a single word in two indexes: q equals p, and what is usual is not known."""
    counts = (first.count(word), second.count(word))
    numbers = sample_numbers(first, second, word, seed)
    samples = read_directions(first, second, numbers)
    labels = cluster(np.concatenate(samples), seed=seed).labels
    change = compare_usages(word, *samples, counts, seed, labels)
    neighbours = first.nearest_words(change.centres, GROUP_NEIGHBOURS, without=word)
    groups = []
    for group, shares in enumerate(change.shares):
        corpus = int(shares[1] > shares[0])
        index, start = (first, second)[corpus], corpus * len(samples[0])
        members = np.flatnonzero(labels[start : start + len(samples[corpus])] == group)
        cosines = samples[corpus][members] @ change.centres[group]
        best = np.argsort(-cosines, kind="stable")[:GROUP_EXAMPLES]
        examples = [index.usage(int(numbers[corpus][members[row]]), float(cosines[row])) for row in best]
        groups.append(GroupChange(_group_state(shares), shares, neighbours[group], examples))
    return replace(change, groups=groups)


def _group_state(shares: tuple[float, float]) -> GroupState:
    """Whether a group of usages appeared, disappeared, or neither."""
    if min(shares) >= ABSENT or max(shares) < PRESENT:
        return "kept"
    return "gained" if shares[1] > shares[0] else "lost"


def compare_usages(
    word: str,
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    counts: tuple[int, int],
    seed: int = 0,
    labels: NDArray[np.int64] | None = None,
) -> Change:
    """Compare the usages of a word in two corpora: directions (N, H) each, and their groups if known."""
    both = np.concatenate([first, second])
    if labels is None:
        labels = cluster(both, seed=seed).labels
    shares = _group_shares(labels, len(first))
    distances, prototypes = measure_distances(first, second, PERMUTATIONS, seed)
    rng = np.random.default_rng(seed)
    shift = _measure_divergence(*shares)
    shifts = [
        _measure_divergence(*_group_shares(rng.permutation(labels), len(first))) for _ in range(PERMUTATIONS)
    ]
    p = estimate_p(prototypes)
    return Change(
        word=word,
        counts=counts,
        distance=float(distances[0]),
        prototype=float(prototypes[0]),
        interval=measure_interval(first, second, seed),
        shift=shift,
        shares=[(float(x), float(y)) for x, y in zip(*shares, strict=True)],
        p=p,
        q=p,
        usual=0.0,
        percentile=None,
        shift_p=estimate_p(np.array([shift, *shifts])),
        distance_p=estimate_p(distances),
        groups=[],
        centres=average_groups(both, labels),
    )


def _group_shares(labels: NDArray[np.int64], count: int) -> tuple[Array, Array]:
    """The share of each group among the first `count` usages, and among the rest."""
    groups = int(labels.max()) + 1
    first, second = labels[:count], labels[count:]
    return np.bincount(first, minlength=groups) / len(first), np.bincount(second, minlength=groups) / len(
        second
    )


def _measure_divergence(p: Array, q: Array) -> float:
    """The Jensen-Shannon divergence in bits: 0 for the same shares, 1 for shares that do not overlap."""
    mean = (p + q) / 2

    def measure_entropy(x: Array) -> float:
        used = x > 0
        return float((x[used] * np.log2(x[used] / mean[used])).sum())

    return (measure_entropy(p) + measure_entropy(q)) / 2


def draw_sense_shares(
    changes: Sequence[Change], names: tuple[str, str], path: str | Path, *, force: bool
) -> None:
    """Draw the shares of the senses of the first words in both corpora.

    Args:
        changes: The changes.
        names: The names of the two corpora.
        path: A .png file.
        force: Replace a file that exists.

    Raises:
        UsageError: `path` is not a .png file, or exists and `force` is False.
        MissingExtraError: matplotlib is not installed.

    """
    file = Path(path).expanduser()
    if file.suffix != ".png":
        raise UsageError(f"{file}: a plot of sense shares must be a .png file.")
    require("matplotlib", "plot", f"Drawing {file.name}")
    with new_file(file, force=force) as new:
        plots.draw_sense_shares({change.word: change.shares for change in changes[:DRAWN_WORDS]}, names, new)
