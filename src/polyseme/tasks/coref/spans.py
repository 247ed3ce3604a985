"""Candidate spans of a document: all up to a width, and the best of them that do not cross.

    sentence boundaries, scores  ->  tasks.coref.spans  ->  tasks.coref.network

N tokens, S spans.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

VISITED = 4096  # spans at once


def list_spans(starts: Sequence[int], max_width: int) -> Tensor:
    """All spans of up to `max_width` tokens within a sentence.

    Args:
        starts: The position of the first token of each sentence, and the number of all tokens.
        max_width: Tokens of the widest span.

    Returns:
        Start and stop of each span (S, 2), by start, then by width.

    """
    bounds = torch.tensor(starts)
    lengths = bounds[1:] - bounds[:-1]
    ends = bounds[1:].repeat_interleave(lengths)  # (N,) where the sentence of each token ends
    begins = torch.arange(int(bounds[-1]))
    stops = begins[:, None] + torch.arange(1, max_width + 1)  # (N, W)
    inside = stops <= ends[:, None]
    return torch.stack([begins[:, None].expand_as(stops)[inside], stops[inside]], dim=1)


def keep_spans(spans: ArrayLike, scores: ArrayLike, count: int) -> NDArray[np.int64]:
    """The numbers of the best spans that do not cross, in the order of the document.

    Two spans cross if they overlap and neither is inside the other.

    Args:
        spans: Start and stop of each span (S, 2).
        scores: Their scores (S,).
        count: How many to keep at most.

    """
    bounds = np.asarray(spans)
    order = np.argsort(-np.asarray(scores, np.float32), kind="stable")
    kept: list[int] = []
    furthest: dict[int, int] = {}  # of each start, the largest stop of kept spans
    earliest: dict[int, int] = {}  # of each last token, the smallest start of kept spans
    for first in range(0, len(order), VISITED):  # a novel has a million spans, of which few are visited
        numbers = order[first : first + VISITED]
        for number, (start, stop) in zip(numbers.tolist(), bounds[numbers].tolist(), strict=True):
            if len(kept) == count:
                break
            crosses = any(furthest.get(inner, 0) > stop for inner in range(start + 1, stop)) or any(
                earliest.get(inner, start) < start for inner in range(start, stop - 1)
            )
            if not crosses:
                kept.append(number)
                furthest[start] = max(furthest.get(start, 0), stop)
                earliest[stop - 1] = min(earliest.get(stop - 1, start), start)
        if len(kept) == count:
            break
    chosen = np.array(kept, np.int64)
    return chosen[np.lexsort((bounds[chosen, 1], bounds[chosen, 0]))]
