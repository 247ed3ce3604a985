"""The nearest of millions of usages, exactly: one product after the other over a memory map.

    search.blocks  ->  search.exact  ->  search.index

The correction of the space is folded into the query, (v - c) T q = v (T q) - c T q, and the length of every
vector in the corrected space is kept. One query is as quick as memory is read (kernels.dots), many are a
product of matrices. Q queries, U usages, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.model.kernels import dots, native
from polyseme.search.blocks import Vectors
from polyseme.search.space import Space

Found = tuple[NDArray[np.int64], NDArray[np.float32]]  # numbers of usages and their cosines, best first

ROWS = 2048  # usages that are widened to fp32 at a time, for many queries: they stay in the cache
FEW = 4  # queries: so many are quicker one by one


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
    turned = np.ascontiguousarray(queries if space.turn is None else queries @ space.turn.T)  # (Q, H)
    offsets = turned @ space.centre  # (Q,)
    best: list[Found] = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries]
    one_by_one = len(queries) <= FEW and native.available()
    start = 0
    for block, vectors in enumerate(blocks):
        span = slice(start, start + len(vectors))
        kept = None if keep is None else keep[span]
        if one_by_one:
            for number, (query, offset) in enumerate(zip(turned, offsets, strict=True)):
                scores, tops = dots.scores(vectors, query, float(offset), lengths[span], kept)
                best[number] = _merge(best[number], scores, tops, start, k)
        else:
            _many(vectors, lengths[span], turned, offsets, kept, start, k, best)
        done(block)
        start += len(vectors)
    return best


def _many(
    vectors: Vectors,
    lengths: NDArray[np.float32],
    queries: NDArray[np.float32],
    offsets: NDArray[np.float32],
    keep: NDArray[np.bool_] | None,
    start: int,
    k: int,
    best: list[Found],
) -> None:
    """All queries against the usages of a block, ROWS at a time; `best` is brought up to date."""
    asked, less = torch.from_numpy(queries), torch.from_numpy(offsets)[:, None]
    for first in range(0, len(vectors), ROWS):
        span = slice(first, first + ROWS)
        rows = torch.from_numpy(np.array(vectors[span])).float()
        found = torch.addmm(less, asked, rows.T, beta=-1).div_(torch.from_numpy(lengths[span]))  # (Q, rows)
        if keep is not None:
            found[:, torch.from_numpy(~keep[span])] = -torch.inf
        scores, tops = found.numpy(), found.amax(dim=1).tolist()
        for number in range(len(queries)):
            if len(best[number][1]) < k or tops[number] > best[number][1][-1]:
                best[number] = _merge(best[number], scores[number], None, start + first, k)


def _merge(
    best: Found, scores: NDArray[np.float32], tops: NDArray[np.float32] | None, start: int, k: int
) -> Found:
    """The best `k` so far and of new scores; of equals the earlier one. `tops`: see kernels.dots."""
    least = float(best[1][-1]) if len(best[1]) == k else -np.inf
    if tops is not None and len(tops) >= k:  # k stretches have a score that is at least this
        least = max(least, float(np.partition(tops, len(tops) - k)[len(tops) - k]))
    elif len(scores) > k:
        least = max(least, float(np.partition(scores, len(scores) - k)[len(scores) - k]))
    rows = _rows_from(scores, tops, least)
    values, numbers = np.concatenate([best[1], scores[rows]]), np.concatenate([best[0], rows + start])
    order = np.argsort(-values, kind="stable")[:k]
    return numbers[order], values[order]


def _rows_from(
    scores: NDArray[np.float32], tops: NDArray[np.float32] | None, least: float
) -> NDArray[np.int64]:
    """The places of the finite scores that are at least `least`."""
    if tops is None:
        return np.flatnonzero((scores >= least) & np.isfinite(scores))
    found = [
        first + np.flatnonzero((some >= least) & np.isfinite(some))
        for first in (np.flatnonzero(tops >= least) * dots.TOGETHER).tolist()
        for some in (scores[first : first + dots.TOGETHER],)
    ]
    return np.concatenate(found) if found else np.empty(0, np.int64)
