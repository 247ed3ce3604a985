"""What a word means in one corpus and in another: how far it moved, and whether that may be chance.

    search.index (two of them, of one model), search.clusters  ->  search.change  ->  api

distance: the mean cosine distance of usages of one corpus to those of the other, less that within the two
(average pairwise distance); prototype: the distance of their means; shift: how much the shares of the senses
differ (Jensen-Shannon, 0 to 1). p: how often corpora dealt by chance differ as much, by the prototypes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.search.clusters import group
from polyseme.search.index import Index

MOST_USAGES = 500  # of a word in each corpus
FEWEST = 5
DEALS = 200  # of the permutation test
CHANCE = 0.05


@dataclass(frozen=True)
class Change:
    """How a word moved."""

    word: str
    counts: tuple[int, int]
    distance: float
    prototype: float
    shift: float
    shares: list[tuple[float, float]]  # of each sense, in both corpora
    p: float

    @property
    def changed(self) -> bool:
        """Whether that is more than chance."""
        return self.p < CHANCE

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"changed": self.changed}


def find_change(
    one: Index, other: Index, words: Iterable[str] | None = None, *, min_count: int = 20, seed: int = 0
) -> list[Change]:
    """The change of `words`, or of all words with enough usages in both, the greatest first."""
    for name in ("model", "layer"):
        if one.head[name] != other.head[name]:
            raise UsageError(f"The two indexes have another {name}: their vectors cannot be compared.")
    if words is None:
        both = [word for word in one.words.words if word in other.words]
        words = [word for word in both if min(one.words.count(word), other.words.count(word)) >= min_count]
    found = [_change(one, other, word, seed) for word in words]
    return sorted(found, key=lambda change: -change.distance)


def _change(one: Index, other: Index, word: str, seed: int) -> Change:
    chance = np.random.default_rng(seed)
    rows = [index.rows(word) for index in (one, other)]
    for index, numbers in zip((one, other), rows, strict=True):
        if len(numbers) < FEWEST:
            raise UsageError(f"{word!r} has {len(numbers)} usages in {index.folder}, {FEWEST} are needed.")
    drawn = [
        np.sort(chance.choice(numbers, MOST_USAGES, replace=False)) if len(numbers) > MOST_USAGES else numbers
        for numbers in rows
    ]
    a, b = one.raw(drawn[0]), other.raw(drawn[1])
    space = one.space  # one and the same for both: else the spaces would move, not the words
    a, b = space.apply(a), space.apply(b)
    groups = group(np.concatenate([a, b]), seed=seed)
    parts = groups.labels[: len(a)], groups.labels[len(a) :]
    count = len(groups.centres)
    shares = [np.bincount(labels, minlength=count) / len(labels) for labels in parts]
    return Change(
        word,
        (len(rows[0]), len(rows[1])),
        _between(a, b) - (_between(a, a) + _between(b, b)) / 2,
        _prototype(a, b),
        _divergence(*shares),
        [(float(x), float(y)) for x, y in zip(*shares, strict=True)],
        _chance(a, b, chance),
    )


def _between(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """The mean cosine distance of all pairs; a vector and itself are no pair."""
    total, pairs = float(a.sum(axis=0) @ b.sum(axis=0)), len(a) * len(b)
    if a is b:
        total, pairs = total - float((a * a).sum()), pairs - len(a)
    return 1 - total / max(1, pairs)


def _prototype(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    one, other = a.mean(axis=0), b.mean(axis=0)
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return 1 - float(one @ other) / max(size, 1e-12)


def _divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Jensen-Shannon, in bits: 0 for the same shares, 1 for shares that never meet."""
    middle = (p + q) / 2

    def bits(x: NDArray[np.float64]) -> float:
        used = x > 0
        return float((x[used] * np.log2(x[used] / middle[used])).sum())

    return (bits(p) + bits(q)) / 2


def _chance(a: NDArray[np.float32], b: NDArray[np.float32], chance: np.random.Generator) -> float:
    """How often usages dealt by chance give prototypes as far apart."""
    found, both = _prototype(a, b), np.concatenate([a, b])
    as_far = 0
    for _ in range(DEALS):
        order = chance.permutation(len(both))
        as_far += _prototype(both[order[: len(a)]], both[order[len(a) :]]) >= found
    return (as_far + 1) / (DEALS + 1)
