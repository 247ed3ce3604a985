"""How much the meaning of words differs between two corpora, and whether that may be chance.

    search.index (two of one model), search.clusters  ->  search.change  ->  search.change_search, api

For each word, with a p-value from a permutation test each:

    prototype   cosine distance of the mean vectors, 0 to 2, corrected for the noise of small samples: the
                mean cosine of pairs across the corpora against that of pairs within them   p
    distance    mean cosine distance of pairs across the corpora minus that within them     distance_p
    shift       Jensen-Shannon divergence of the shares of the senses, 0 to 1               shift_p

N usages, H values, P permutations, K senses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError, require
from polyseme.io import plots
from polyseme.io.atomic import new_file
from polyseme.io.html import Cell
from polyseme.search.clusters import cluster
from polyseme.search.index import Index
from polyseme.search.space import normalize

Array = NDArray[np.float64]
MAX_USAGES = 500  # of a word in each corpus; of more a sample is drawn
MIN_USAGES = 5  # of a word in each corpus
MIN_COUNT = 20  # usages in both corpora of words that are compared unless words are named
PERMUTATIONS = 200
SIGNIFICANCE = 0.05
DRAWN_WORDS = 12  # in a plot
TOLERANCE = 1e-12  # values that differ by less are equal
MIN_COSINE = 1e-3  # mean cosine within a corpus; usages in all directions have no prototype


@dataclass(frozen=True)
class Change:
    """How the usages of a word differ between two corpora.

    Attributes:
        word: The word.
        counts: How many usages it has in each corpus.
        distance: Mean cosine distance across the corpora minus that within them.
        prototype: Cosine distance of the mean vectors, corrected for the noise of small samples.
        shift: How much the shares of the senses differ, 0 to 1.
        shares: The share of each sense in both corpora.
        p: p-value of `prototype`.
        shift_p: p-value of `shift`.
        distance_p: p-value of `distance`.
        centres: (K, H) the directions of the senses.

    """

    word: str
    counts: tuple[int, int]
    distance: float
    prototype: float
    shift: float
    shares: list[tuple[float, float]]
    p: float
    shift_p: float
    distance_p: float
    centres: NDArray[np.float32] = field(repr=False, compare=False)

    @property
    def changed(self) -> bool:
        """Whether the shares of the senses differ by more than chance."""
        return self.shift_p < SIGNIFICANCE

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the vectors."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "centres"}
        return values | {"changed": self.changed}

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "word": self.word,
            "prototype": self.prototype,
            "p": self.p,
            "distance": self.distance,
            "distance p": self.distance_p,
            "shift": self.shift,
            "shift p": self.shift_p,
            "changed": "yes" if self.changed else "no",
            "usages": f"{self.counts[0]:,} / {self.counts[1]:,}",
        }


def check_comparable(first: Index, second: Index) -> None:
    """Refuse indexes of different models, layers or views."""
    for name in ("model", "layer", "view"):
        if first.head[name] != second.head[name]:
            raise UsageError(f"The indexes differ in their {name}, so their vectors cannot be compared.")


def find_common_words(first: Index, second: Index, min_count: int) -> dict[str, int]:
    """Return the words with `min_count` usages in both indexes, with the smaller count; no punctuation."""
    others = second.counts()
    both = (
        (word, min(count, others[word]))
        for word, count in first.counts().items()
        if word in others and any(map(str.isalnum, word))
    )
    return {word: count for word, count in both if count >= min_count}


def sort_changes(changes: Iterable[Change]) -> list[Change]:
    """Sort by the prototype distance, which agrees best with human judgement (benchmarks/RESULTS.md)."""
    return sorted(changes, key=lambda change: -change.prototype)


def check_usages(index: Index, words: Iterable[str]) -> None:
    """Refuse words with too few usages to compare them."""
    for word in words:
        if (count := index.count(word)) < MIN_USAGES:
            raise UsageError(f"{word!r} has {count} usages in {index.label}, {MIN_USAGES} are needed.")


def find_change(first: Index, second: Index, word: str, seed: int = 0) -> Change:
    """Compare the usages of a word in two indexes."""
    counts = (first.count(word), second.count(word))
    return compare_usages(word, *sample_usages(first, second, word, seed), counts, seed)


def sample_usages(
    first: Index, second: Index, word: str, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the directions (N, H) of at most MAX_USAGES usages of a word in each index, in one space."""
    rng = np.random.default_rng(seed)
    samples = []
    for index in (first, second):
        numbers = index.usage_numbers(word)
        if len(numbers) > MAX_USAGES:
            numbers = np.sort(rng.choice(numbers, MAX_USAGES, replace=False))
        # Both in the space of the first: with two spaces, the difference of the spaces would count as change.
        samples.append(first.space.to_directions(index.raw_vectors(numbers)))
    return samples[0], samples[1]


def compare_usages(
    word: str,
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    counts: tuple[int, int],
    seed: int = 0,
) -> Change:
    """Compare the usages of a word in two corpora: directions (N, H) each."""
    rng = np.random.default_rng(seed)
    both = np.concatenate([first, second])
    labels = cluster(both, seed=seed).labels
    shares = _sense_shares(labels, len(first))
    in_first = np.arange(len(both)) < len(first)
    assignments = np.stack([in_first, *(rng.permutation(in_first) for _ in range(PERMUTATIONS))])
    distances, prototypes = _distances(both, assignments)
    shifts = [_divergence(*_sense_shares(rng.permutation(labels), len(first))) for _ in range(PERMUTATIONS)]
    shift = _divergence(*shares)
    return Change(
        word,
        counts,
        float(distances[0]),
        float(prototypes[0]),
        shift,
        [(float(x), float(y)) for x, y in zip(*shares, strict=True)],
        _p_value(prototypes[0], prototypes[1:]),
        _p_value(shift, np.array(shifts)),
        _p_value(distances[0], distances[1:]),
        _sense_centres(both, labels),
    )


def measure_prototype_distance(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the prototype distance alone of two sets of directions (N, H), without a test: fast."""
    in_first = np.arange(len(first) + len(second)) < len(first)
    _, prototypes = _distances(np.concatenate([first, second]), in_first[None])
    return float(prototypes[0])


def _sense_centres(vectors: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """The direction (K, H) of each sense."""
    return normalize(np.stack([vectors[labels == sense].mean(axis=0) for sense in range(labels.max() + 1)]))


def _sense_shares(labels: NDArray[np.int64], count: int) -> tuple[Array, Array]:
    """The share of each sense among the first `count` usages, and among the rest."""
    senses = int(labels.max()) + 1
    first, second = labels[:count], labels[count:]
    return np.bincount(first, minlength=senses) / len(first), np.bincount(second, minlength=senses) / len(
        second
    )


def _distances(both: NDArray[np.float32], assignments: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The distance and the prototype distance of usages (N, H), per assignment (P, N) to the first corpus.

    The mean cosine of all pairs is a product of sums; a vector and itself are no pair. This way means of few
    usages do not seem farther apart than means of many.
    """
    wide = both.astype(np.float64)
    first_sums = assignments @ wide  # (P, H)
    second_sums = wide.sum(axis=0) - first_sums
    first_count, second_count = int(assignments[0].sum()), int((~assignments[0]).sum())
    squares = (wide * wide).sum(axis=1)
    across = (first_sums * second_sums).sum(axis=1) / (first_count * second_count)
    within = [
        ((sums * sums).sum(axis=1) - members @ squares) / max(1, count * (count - 1))
        for sums, members, count in (
            (first_sums, assignments, first_count),
            (second_sums, ~assignments, second_count),
        )
    ]
    distances = (within[0] + within[1]) / 2 - across
    lengths = np.sqrt(np.maximum(within[0], MIN_COSINE) * np.maximum(within[1], MIN_COSINE))
    no_prototype = np.maximum(within[0], within[1]) < MIN_COSINE  # in neither corpus: nothing can have moved
    return distances, np.where(no_prototype, 0, 1 - np.clip(across / lengths, -1, 1))


def _divergence(p: Array, q: Array) -> float:
    """The Jensen-Shannon divergence in bits: 0 for the same shares, 1 for shares that do not overlap."""
    mean = (p + q) / 2

    def relative_entropy(x: Array) -> float:
        used = x > 0
        return float((x[used] * np.log2(x[used] / mean[used])).sum())

    return (relative_entropy(p) + relative_entropy(q)) / 2


def _p_value(observed: float, permuted: Array) -> float:
    """How often a random assignment of usages to the corpora gives at least the observed value."""
    return (int((permuted >= observed - TOLERANCE).sum()) + 1) / (len(permuted) + 1)


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
