"""Exact search: the usages with the highest cosines among millions, over memory maps.

    search.usage_store  ->  search.exact  ->  search.index

The correction of the space is folded into the query, (v - c) M q = v (M q) - c M q, and the length of every
vector in the corrected space is stored. A few queries run at the speed of memory (kernels.dots): each core
takes the next piece as soon as it is free, since waiting for all cores after every block costs a third of the
time. Many queries are a matrix product. Q queries, U usages, H values.
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
from polyseme.search.usage_store import Vectors, as_tensor

Array = NDArray[np.float32]
Ranking = tuple[NDArray[np.int64], Array]  # numbers of usages and their cosines, best first

ROWS = 2048  # usages widened to fp32 at a time if torch does it
MAX_SINGLE = 4  # queries: this few are faster one by one
PIECE_ROWS = 100 * dots.TOGETHER  # usages that a core reads at a time
MAX_TOGETHER = 256  # queries in one product: more would not stay in the cache
FIRST_ROWS = 128  # usages that give many queries their first bounds
GROWTH = 3  # each step reads this many times the usages read so far
MAX_SCORES = 2**23  # computed at once


def find_nearest(
    blocks: Sequence[Vectors],
    lengths: Array,
    queries: Array,
    space: Space,
    k: int,
    keep: NDArray[np.bool_] | None = None,
    done: Callable[[int], None] = lambda number: None,
    *,
    piece_rows: int = PIECE_ROWS,
) -> list[Ranking]:
    """Find the `k` usages with the highest cosines for each query.

    Args:
        blocks: The vectors of all usages, in blocks.
        lengths: (U,) their lengths in the corrected space.
        queries: (Q, H) directions of the corrected space.
        space: The correction.
        k: How many usages to return.
        keep: (U,) which usages may be returned; None is all.
        done: Called with the number of each block after it was read.
        piece_rows: Usages that a core reads at a time.

    Returns:
        For each query the numbers and cosines of its usages, best first; of equals the earlier usage.

    """
    turned = np.ascontiguousarray(queries if space.matrix is None else queries @ space.matrix.T)  # (Q, H)
    offsets = turned @ space.centre  # (Q,)
    if len(queries) <= MAX_SINGLE and native.is_available():
        return _search_one_by_one(
            blocks, lengths, list(zip(turned, offsets.tolist(), strict=True)), k, keep, done, piece_rows
        )
    groups = [slice(first, first + MAX_TOGETHER) for first in range(0, len(queries), MAX_TOGETHER)]
    searches = [QueryBatch(turned[group], offsets[group], k) for group in groups]
    start = 0
    for number, vectors in enumerate(blocks):
        span = slice(start, start + len(vectors))
        for search in searches:
            search.read(vectors, lengths[span], None if keep is None else keep[span], start)
        done(number)
        start += len(vectors)
    return [ranking for search in searches for ranking in search.rankings()]


def _search_one_by_one(
    blocks: Sequence[Vectors],
    lengths: Array,
    queries: Sequence[tuple[Array, float]],  # (H,), each with the offset of its scores
    k: int,
    keep: NDArray[np.bool_] | None,
    done: Callable[[int], None],
    piece_rows: int,
) -> list[Ranking]:
    """Search with kernels.dots, at the speed of memory; each core keeps its best until the end."""
    sizes = [len(vectors) for vectors in blocks]
    starts = np.cumsum([0, *sizes]).tolist()
    pieces = [(block, row) for block, size in enumerate(sizes) for row in range(0, max(size, 1), piece_rows)]
    unread = [max(1, -(-size // piece_rows)) for size in sizes]  # pieces of each block
    waiting, lock = iter(pieces), threading.Lock()

    def search_pieces() -> list[Ranking]:
        best: list[Ranking] = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries]
        for block, row in waiting:  # each piece goes to one thread
            vectors, first = blocks[block][row : row + piece_rows], starts[block] + row
            span = slice(first, first + len(vectors))
            piece = lengths[span], None if keep is None else keep[span]
            for number, (query, offset) in enumerate(queries):
                scores, tops = dots.score_query(vectors, query, offset, *piece)
                best[number] = _merge(best[number], scores, tops, first, k)
            with lock:
                unread[block] -= 1
                if not unread[block]:
                    done(block)
        return best

    with torch.no_grad():  # without it threads do not run in parallel
        by_thread = run_parallel(
            [search_pieces] * max(1, min(torch.get_num_threads(), len(pieces))), native=True
        )
    return [_select_best(rankings, k) for rankings in zip(*by_thread, strict=True)]


class QueryBatch:
    """Many queries at once: of a matrix product, only scores above a bound are looked at.

    The bound of a query is its k-th best score so far. It rises fast at first and hardly later, so few usages
    are read first, and then more and more with the same bounds.
    """

    def __init__(self, queries: Array, offsets: Array, k: int) -> None:
        self._queries, self._offsets = queries, offsets
        self._packed = dots.PackedQueries(queries, offsets) if native.is_available() else None
        self._numbers = np.zeros((len(queries), k), np.int64)
        self._values = np.full((len(queries), k), -np.inf, np.float32)  # descending
        self._read_count = 0

    def read(self, vectors: Vectors, lengths: Array, keep: NDArray[np.bool_] | None, start: int) -> None:
        """Read a block, whose first usage has the number `start`."""
        count, k = self._values.shape
        first = 0
        while first < len(vectors):
            rows = max(FIRST_ROWS, k, GROWTH * self._read_count)
            span = slice(first, min(first + rows, first + max(1, MAX_SCORES // count), len(vectors)))
            flat, scores = self._find_above(
                vectors[span], lengths[span], None if keep is None else keep[span]
            )
            self._update(flat // count + (start + first), flat % count, scores)
            self._read_count += span.stop - first
            first = span.stop

    def _find_above(
        self, vectors: Vectors, lengths: Array, keep: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.integer], Array]:
        """The scores above the bounds, and their flat positions: row * Q + query."""
        bounds = self._values[:, -1]
        if self._packed is not None:
            return self._packed.find_above(vectors, lengths, bounds, keep)
        queries, offsets = torch.from_numpy(self._queries), torch.from_numpy(self._offsets)
        bounds_tensor, positions, values = torch.from_numpy(bounds), [], []
        for first in range(0, len(vectors), ROWS):
            span = slice(first, first + ROWS)
            rows = as_tensor(vectors[span]).float()
            scores = torch.addmm(offsets, rows, queries.T, beta=-1)
            scores.div_(torch.from_numpy(lengths[span])[:, None])
            if keep is not None:
                scores[torch.from_numpy(~keep[span])] = -torch.inf
            flat, above = scores.flatten(), (scores > bounds_tensor).flatten().nonzero()[:, 0]
            positions.append(above.numpy() + first * len(queries))
            values.append(flat[above].numpy())
        return np.concatenate(positions), np.concatenate(values)

    def _update(self, numbers: NDArray[np.integer], queries: NDArray[np.integer], scores: Array) -> None:
        """Merge new scores into the best; of equals the earlier usage."""
        count, k = self._values.shape
        queries = np.concatenate([np.repeat(np.arange(count), k), queries])
        values, numbers = (
            np.concatenate([old.ravel(), new])
            for old, new in ((self._values, scores), (self._numbers, numbers))
        )
        order = np.lexsort((-values, queries))  # stable: old ones come first, then new ones by number
        firsts = np.cumsum(np.bincount(queries, minlength=count)) - np.bincount(queries, minlength=count)
        best = order[firsts[:, None] + np.arange(k)]  # (Q, k): each query has at least its old ones
        self._values, self._numbers = values[best], numbers[best]

    def rankings(self) -> list[Ranking]:
        """Return the best of each query; fewer than k if there are no more."""
        rows = zip(self._numbers, self._values, self._values > -np.inf, strict=True)
        return [(numbers[filled], values[filled]) for numbers, values, filled in rows]


def _merge(best: Ranking, scores: Array, tops: Array, start: int, k: int) -> Ranking:
    """The best `k` of `best` and of new scores; of equals the earlier usage. `tops`: see kernels.dots."""
    bound = float(best[1][-1]) if len(best[1]) == k else -np.inf
    if len(tops) >= k:  # k stretches have a score of at least this
        bound = max(bound, float(np.partition(tops, len(tops) - k)[len(tops) - k]))
    elif len(scores) > k:
        bound = max(bound, float(np.partition(scores, len(scores) - k)[len(scores) - k]))
    rows = _find_rows_above(scores, tops, bound)
    return _select_best([best, (rows + start, scores[rows])], k)


def _select_best(rankings: Sequence[Ranking], k: int) -> Ranking:
    """The `k` highest scores of several rankings; of equals the earlier usage."""
    numbers, values = (np.concatenate(parts) for parts in zip(*rankings, strict=True))
    order = np.lexsort((numbers, -values))[:k]
    return numbers[order], values[order]


def _find_rows_above(scores: Array, tops: Array, bound: float) -> NDArray[np.int64]:
    """The rows of the finite scores that are at least `bound`."""
    rows = []
    for first in (np.flatnonzero(tops >= bound) * dots.TOGETHER).tolist():
        stretch = scores[first : first + dots.TOGETHER]
        rows.append(first + np.flatnonzero((stretch >= bound) & np.isfinite(stretch)))
    return np.concatenate(rows) if rows else np.empty(0, np.int64)
