"""The nearest of millions of usages, exactly: one product after the other over a memory map.

    search.blocks  ->  search.exact  ->  search.index

The correction of the space is folded into the query, (v - c) T q = v (T q) - c T q, and the length of every
vector in the corrected space is kept. Q queries, U usages, H values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.search.space import Space

ROWS = 65_536  # usages that are widened to fp32 at a time


def search(
    blocks: Sequence[NDArray[np.float16]],
    lengths: NDArray[np.float32],
    queries: NDArray[np.float32],  # (Q, H) in the corrected space, of length 1
    space: Space,
    k: int,
    keep: NDArray[np.bool_] | None = None,  # (U,) which usages may be found
) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """For each query the numbers and cosines of the `k` usages with the greatest cosines, best first."""
    turned = queries if space.turn is None else queries @ space.turn.T  # (Q, H)
    weights = torch.from_numpy(np.ascontiguousarray(turned.T))
    offset = torch.from_numpy(space.centre @ turned.T)  # (Q,)
    best = [(torch.empty(0), torch.empty(0, dtype=torch.long)) for _ in queries]
    start = 0
    for vectors in blocks:
        for first in range(0, len(vectors), ROWS):
            rows = torch.from_numpy(np.asarray(vectors[first : first + ROWS]).astype(np.float32))
            span = slice(start + first, start + first + len(rows))
            scores = (rows @ weights - offset) / torch.from_numpy(lengths[span])[:, None]
            if keep is not None:
                scores[~torch.from_numpy(keep[span])] = -torch.inf
            best = [_merge(old, new, span.start, k) for old, new in zip(best, scores.T, strict=True)]
        start += len(vectors)
    return [(numbers.numpy(), cosines.numpy()) for cosines, numbers in best]


def _merge(best: tuple[Tensor, Tensor], scores: Tensor, start: int, k: int) -> tuple[Tensor, Tensor]:
    """The best `k` so far and of new scores: cosines and numbers, best first; of equals the earlier one."""
    least = scores.topk(min(k, len(scores))).values[-1]
    if len(best[0]) == k:
        least = torch.maximum(least, best[0][-1])
    rows = torch.nonzero((scores >= least) & torch.isfinite(scores))[:, 0]
    values, numbers = torch.cat([best[0], scores[rows]]), torch.cat([best[1], rows + start])
    order = values.argsort(descending=True, stable=True)[:k]
    return values[order], numbers[order]
