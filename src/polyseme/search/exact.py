"""The nearest of millions of usages, exactly: one product after the other over a memory map.

    search.usage_store  ->  search.exact  ->  search.index

The correction of the space is folded into the query, (v - c) T q = v (T q) - c T q, and the length of every
vector in the corrected space is kept. One query is as quick as memory is read (kernels.dots): each core takes
the next piece as soon as it is free, since to wait for all of them after every block costs a third of the
time. Many queries are a product of matrices. Q queries, U usages, H values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.model.fast.kernels import dots, native
from polyseme.model.fast.parallel import run_parallel
from polyseme.search.space import Space
from polyseme.search.usage_store import Vectors, lent

Found = tuple[NDArray[np.int64], NDArray[np.float32]]  # numbers of usages and their cosines, best first

ROWS = 2048  # usages that are widened to fp32 at a time, where that is left to torch
FEW = 4  # queries: so many are quicker one by one
PIECE = 100 * dots.TOGETHER  # usages that a core reads at a time
MANY = 256  # queries that are asked together, at most: more would not stay in the cache
FIRST = 128  # usages that the bounds of many queries begin with
GROWTH = 3  # times as many as were looked at are looked at with the bounds that these gave
SCORES = 2**23  # that may be found at once


def search(
    blocks: Sequence[Vectors],
    lengths: NDArray[np.float32],
    queries: NDArray[np.float32],  # (Q, H) in the corrected space, of length 1
    space: Space,
    k: int,
    keep: NDArray[np.bool_] | None = None,  # (U,) which usages may be found
    done: Callable[[int], None] = lambda number: None,
) -> list[Found]:
    """For each query the numbers and cosines of the `k` usages with the greatest cosines, best first.

    done: is told the number of each block when it has been read.
    """
    turned = np.ascontiguousarray(queries if space.matrix is None else queries @ space.matrix.T)  # (Q, H)
    offsets = turned @ space.centre  # (Q,)
    if len(queries) <= FEW and native.is_available():
        return _few(blocks, lengths, list(zip(turned, offsets.tolist(), strict=True)), k, keep, done)
    groups = [slice(first, first + MANY) for first in range(0, len(queries), MANY)]
    asked = [Many(turned[group], offsets[group], k) for group in groups]
    start = 0
    for block, vectors in enumerate(blocks):
        span = slice(start, start + len(vectors))
        for some in asked:
            some.read(vectors, lengths[span], None if keep is None else keep[span], start)
        done(block)
        start += len(vectors)
    return [found for some in asked for found in some.found()]


def _few(
    blocks: Sequence[Vectors],
    lengths: NDArray[np.float32],
    asked: Sequence[tuple[NDArray[np.float32], float]],  # queries (H,), each with the offset of its scores
    k: int,
    keep: NDArray[np.bool_] | None,
    done: Callable[[int], None],
) -> list[Found]:
    """As `search`, by kernels.dots, as quick as memory is read: each core has its own best until the end."""
    sizes = [len(vectors) for vectors in blocks]
    starts = np.cumsum([0, *sizes]).tolist()
    pieces = [(block, row) for block, size in enumerate(sizes) for row in range(0, max(size, 1), PIECE)]
    left = [max(1, -(-size // PIECE)) for size in sizes]  # pieces of each block that are not read yet
    waiting, lock = iter(pieces), threading.Lock()

    def work() -> list[Found]:
        best: list[Found] = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in asked]
        for block, row in waiting:  # a piece goes to one thread
            vectors, first = blocks[block][row : row + PIECE], starts[block] + row
            span = slice(first, first + len(vectors))
            own = lengths[span], None if keep is None else keep[span]
            for number, (query, offset) in enumerate(asked):
                best[number] = _merge(best[number], *dots.score_query(vectors, query, offset, *own), first, k)
            with lock:
                left[block] -= 1
                if not left[block]:
                    done(block)
        return best

    with torch.no_grad():  # only then side by side
        found = run_parallel([work] * max(1, min(torch.get_num_threads(), len(pieces))), native=True)
    return [_best(own, k) for own in zip(*found, strict=True)]


class Many:
    """The best of many queries so far: of a product of matrices only what is above a bound is looked at.

    The bound of a query is the k-th best of its scores so far. It rises quickly at first, and hardly later:
    so few usages are looked at first, and always more with the same bounds.
    """

    def __init__(self, queries: NDArray[np.float32], offsets: NDArray[np.float32], k: int) -> None:
        self._queries, self._offsets = queries, offsets
        self._packed = dots.PackedQueries(queries, offsets) if native.is_available() else None
        self._numbers = np.zeros((len(queries), k), np.int64)
        self._values = np.full((len(queries), k), -np.inf, np.float32)  # falling
        self._seen = 0

    def read(
        self, vectors: Vectors, lengths: NDArray[np.float32], keep: NDArray[np.bool_] | None, start: int
    ) -> None:
        """Go on with a block, whose first usage has the number `start`."""
        count, k = self._values.shape
        first = 0
        while first < len(vectors):
            rows = max(FIRST, k, GROWTH * self._seen)
            span = slice(first, min(first + rows, first + max(1, SCORES // count), len(vectors)))
            parts = vectors[span], lengths[span], None if keep is None else keep[span]
            places, scores = self._above(*parts)
            self._take(places // count + (start + first), places % count, scores)
            self._seen += span.stop - first
            first = span.stop

    def _above(
        self, vectors: Vectors, lengths: NDArray[np.float32], keep: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        """The scores above the bounds, and their places: row * Q + query."""
        least = self._values[:, -1]
        if self._packed is not None:
            return self._packed.find_above(vectors, lengths, least, keep)
        asked, less = torch.from_numpy(self._queries), torch.from_numpy(self._offsets)
        bounds, places, scores = torch.from_numpy(least), [], []
        for first in range(0, len(vectors), ROWS):
            span = slice(first, first + ROWS)
            rows = lent(vectors[span]).float()
            found = torch.addmm(less, rows, asked.T, beta=-1).div_(torch.from_numpy(lengths[span])[:, None])
            if keep is not None:
                found[torch.from_numpy(~keep[span])] = -torch.inf
            flat, above = found.flatten(), (found > bounds).flatten().nonzero()[:, 0]
            places.append(above.numpy() + first * len(asked))
            scores.append(flat[above].numpy())
        return np.concatenate(places), np.concatenate(scores)

    def _take(
        self, numbers: NDArray[np.integer], queries: NDArray[np.integer], scores: NDArray[np.float32]
    ) -> None:
        """Bring the best up to date; of equals the earlier one."""
        count, k = self._values.shape
        queries = np.concatenate([np.repeat(np.arange(count), k), queries])
        values, numbers = (
            np.concatenate([old.ravel(), new])
            for old, new in ((self._values, scores), (self._numbers, numbers))
        )
        order = np.lexsort((-values, queries))  # stable: the old ones come first, and the new ones by number
        firsts = np.cumsum(np.bincount(queries, minlength=count)) - np.bincount(queries, minlength=count)
        best = order[firsts[:, None] + np.arange(k)]  # (Q, k): each query has at least its old ones
        self._values, self._numbers = values[best], numbers[best]

    def found(self) -> list[Found]:
        """What was found; a query that finds fewer than k has no more."""
        there = self._values > -np.inf
        rows = zip(self._numbers, self._values, there, strict=True)
        return [(numbers[own], values[own]) for numbers, values, own in rows]


def _merge(best: Found, scores: NDArray[np.float32], tops: NDArray[np.float32], start: int, k: int) -> Found:
    """The best `k` so far and of new scores; of equals the first in the index. `tops`: see kernels.dots."""
    least = float(best[1][-1]) if len(best[1]) == k else -np.inf
    if len(tops) >= k:  # k stretches have a score that is at least this
        least = max(least, float(np.partition(tops, len(tops) - k)[len(tops) - k]))
    elif len(scores) > k:
        least = max(least, float(np.partition(scores, len(scores) - k)[len(scores) - k]))
    rows = _rows_from(scores, tops, least)
    return _best([best, (rows + start, scores[rows])], k)


def _best(parts: Sequence[Found], k: int) -> Found:
    """The `k` greatest of some scores; of equals the first in the index."""
    numbers, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    order = np.lexsort((numbers, -values))[:k]
    return numbers[order], values[order]


def _rows_from(scores: NDArray[np.float32], tops: NDArray[np.float32], least: float) -> NDArray[np.int64]:
    """The places of the finite scores that are at least `least`."""
    found = [
        first + np.flatnonzero((some >= least) & np.isfinite(some))
        for first in (np.flatnonzero(tops >= least) * dots.TOGETHER).tolist()
        for some in (scores[first : first + dots.TOGETHER],)
    ]
    return np.concatenate(found) if found else np.empty(0, np.int64)
