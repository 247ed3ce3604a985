"""What a word means in one corpus and in another: how far it moved, and whether that may be chance.

    search.index (two of them, of one model), search.clusters  ->  search.change  ->  api

prototype: the cosine distance of the means of the usages, less what a mean of so few is off by chance: the
mean cosine of pairs across the two corpora is set against that of pairs within them; 0 to 2, and p, how often
usages dealt by chance into two corpora are as far apart. distance: the mean cosine distance of usages of one
corpus to those of the other, less that within the two, and distance_p. shift: how much the shares of the
senses differ (Jensen-Shannon, 0 to 1), and shift_p: whether a sense was won or lost. N usages, H values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError, require
from polyseme.io import plots
from polyseme.io.atomic import new_file
from polyseme.search.clusters import group
from polyseme.search.index import Index
from polyseme.search.space import normalize

MAX_USAGES = 500  # of a word in each corpus
MIN_USAGES = 5
FREQUENT = 20  # usages in both corpora: words with fewer are compared only where they are named
DEALS = 200  # of the permutation test
CHANCE = 0.05
DRAWN = 12  # words of a picture
TINY = 1e-12  # what differs less is equal
LEAST = 1e-3  # mean cosine within a corpus: usages that point everywhere have no prototype
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """How a word moved."""

    word: str
    counts: tuple[int, int]
    distance: float
    prototype: float
    shift: float
    shares: list[tuple[float, float]]  # of each sense, in both corpora
    p: float  # of the prototypes
    shift_p: float
    distance_p: float
    centres: NDArray[np.float32] = field(repr=False, compare=False)  # of the senses (K, H), of length 1

    @property
    def changed(self) -> bool:
        """Whether the shares of the senses moved by more than chance."""
        return self.shift_p < CHANCE

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without the vectors."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "centres"}
        return values | {"changed": self.changed}


def find_changes(
    one: Index,
    other: Index,
    words: Iterable[str] | None = None,
    *,
    min_count: int = FREQUENT,
    seed: int = 0,
) -> list[Change]:
    """The change of `words`, or of all with `min_count` usages in both, and MIN_USAGES, the greatest first.

    Punctuation is not ranked; it is compared where it is named.
    """
    check_comparable(one, other)
    asked = list(find_common_words(one, other, max(min_count, MIN_USAGES)) if words is None else words)
    for word, index in product(asked, (one, other)):  # before any work
        if (count := index.words.count(word)) < MIN_USAGES:
            raise UsageError(f"{word!r} has {count} usages in {index.folder}, {MIN_USAGES} are needed.")
    return sort_changes([_change(one, other, word, seed) for word in asked])


def check_comparable(one: Index, other: Index) -> None:
    """Refuse indexes of two models, of two layers, or of words and of places."""
    for name in ("model", "layer", "view"):
        if one.head[name] != other.head[name]:
            raise UsageError(f"The two indexes have another {name}: their vectors cannot be compared.")


def find_common_words(one: Index, other: Index, min_count: int) -> dict[str, int]:
    """The words with so many usages in both indexes, and how many at least; punctuation is no word."""
    both = (word for word in one.words.words if word in other.words and any(map(str.isalnum, word)))
    counts = {word: min(one.words.count(word), other.words.count(word)) for word in both}
    return {word: count for word, count in counts.items() if count >= min_count}


def sort_changes(found: list[Change]) -> list[Change]:
    """By the prototypes, which follow people's judgement best (benchmarks/RESULTS.md)."""
    return sorted(found, key=lambda change: -change.prototype)


def _change(one: Index, other: Index, word: str, seed: int) -> Change:
    counts = (one.words.count(word), other.words.count(word))
    return compare(word, *sample_usages(one, other, word, seed), counts, seed)


def sample_usages(
    one: Index, other: Index, word: str, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The usages of a word in each index (N, H), at most MAX_USAGES, in one space; vectors of length 1."""
    chance = np.random.default_rng(seed)
    drawn = []
    for index in (one, other):
        rows = index.usage_numbers(word)
        if len(rows) > MAX_USAGES:
            rows = np.sort(chance.choice(rows, MAX_USAGES, replace=False))
        drawn.append(
            one.space.to_directions(index.raw_vectors(rows))
        )  # of both: else the spaces would move, not the words
    return drawn[0], drawn[1]


def compare(
    word: str, a: NDArray[np.float32], b: NDArray[np.float32], counts: tuple[int, int], seed: int = 0
) -> Change:
    """How the usages of a word in one corpus (N, H) differ from those in another; vectors of length 1."""
    chance = np.random.default_rng(seed)
    groups = group(np.concatenate([a, b]), seed=seed)
    shares = _shares(groups.labels, len(a))
    own = np.arange(len(a) + len(b)) < len(a)
    deals = np.stack([own, *(chance.permutation(own) for _ in range(DEALS))])
    distances, prototypes = _apart(np.concatenate([a, b]), deals)
    shifts = [_divergence(*_shares(chance.permutation(groups.labels), len(a))) for _ in range(DEALS)]
    shift = _divergence(*shares)
    return Change(
        word,
        counts,
        float(distances[0]),
        float(prototypes[0]),
        shift,
        [(float(x), float(y)) for x, y in zip(*shares, strict=True)],
        _chance(prototypes[0], prototypes[1:]),
        _chance(shift, np.array(shifts)),
        _chance(distances[0], distances[1:]),
        _centres(np.concatenate([a, b]), groups.labels),
    )


def _centres(vectors: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """The direction of each sense, from the usages in it."""
    return normalize(np.stack([vectors[labels == sense].mean(axis=0) for sense in range(labels.max() + 1)]))


def prototype(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """The distance of the prototypes alone of two sets of usages (N, H), vectors of length 1: quick."""
    own = np.arange(len(a) + len(b)) < len(a)
    _, prototypes = _apart(np.concatenate([a, b]), own[None])
    return float(prototypes[0])


def _shares(labels: NDArray[np.int64], first: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of each sense among the first usages, and among the others."""
    count = int(labels.max()) + 1
    one, other = (np.bincount(part, minlength=count) / len(part) for part in (labels[:first], labels[first:]))
    return one, other


def _apart(both: NDArray[np.float32], deals: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The distance and the prototype distance of every deal (M, N) of the usages (N, H) into two corpora.

    The mean cosine of all pairs is a product of sums; a vector and itself are no pair. So means of few
    usages do not seem farther apart than means of many.
    """
    wide = both.astype(np.float64)
    one = deals @ wide  # (M, H) the sum of the usages of the first corpus
    other = wide.sum(axis=0) - one
    first, second = int(deals[0].sum()), int((~deals[0]).sum())
    squares = (wide * wide).sum(axis=1)
    across = (one * other).sum(axis=1) / (first * second)
    within = [
        ((sums * sums).sum(axis=1) - own @ squares) / max(1, count * (count - 1))
        for sums, own, count in ((one, deals, first), (other, ~deals, second))
    ]
    distances = (within[0] + within[1]) / 2 - across
    lengths = np.sqrt(np.maximum(within[0], LEAST) * np.maximum(within[1], LEAST))
    nowhere = np.maximum(within[0], within[1]) < LEAST  # in neither corpus: nothing that could have moved
    return distances, np.where(nowhere, 0, 1 - np.clip(across / lengths, -1, 1))


def _divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Jensen-Shannon, in bits: 0 for the same shares, 1 for shares that never meet."""
    middle = (p + q) / 2

    def bits(x: NDArray[np.float64]) -> float:
        used = x > 0
        return float((x[used] * np.log2(x[used] / middle[used])).sum())

    return (bits(p) + bits(q)) / 2


def _chance(found: float, dealt: Array) -> float:
    """How often usages dealt by chance are as far apart as those that were found."""
    return (int((dealt >= found - TINY).sum()) + 1) / (len(dealt) + 1)


def draw_sense_shares(
    changes: Sequence[Change], names: tuple[str, str], path: str | Path, *, force: bool
) -> None:
    """A .png file with the shares of the senses of each word, in both corpora."""
    place = Path(path).expanduser()
    if place.suffix != ".png":
        raise UsageError(f"{place}: a picture of shares is a .png file.")
    require("matplotlib", "plot", f"Drawing {place.name}")
    with new_file(place, force=force) as new:
        plots.shares({one.word: one.shares for one in changes[:DRAWN]}, names, new)
