"""Whether weights are still what they were when something was made of them.

    model.tokens, model.fast.quantisation, cache  ->  model.fast.weight_versions

A version counter tells of most writes, but torch's fused optimisers do not raise it. They change all of a
weight, though, so a few of its values tell the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

VALUES = 8  # of each weight, spread over it


class WeightSnapshot:
    """Remembers `weights` as they are now."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._weights = list(weights)
        self._versions = [weight_version(weight) for weight in self._weights]
        here = [weight for weight in self._weights if not weight.is_meta]
        self._picked = [_pick(weight) for weight in here]  # views: they show later writes
        self._values = self._now()

    def matches(self, weights: Iterable[Tensor]) -> bool:
        """Whether these are the same tensors with the same values."""
        now = list(weights)
        return (
            len(now) == len(self._weights)
            and all(new is old for new, old in zip(now, self._weights, strict=True))
            and [weight_version(weight) for weight in now] == self._versions
            and torch.equal(self._now(), self._values)
        )

    def _now(self) -> Tensor:
        return torch.cat(self._picked) if self._picked else torch.empty(0)


def weight_version(weight: Tensor) -> tuple[int, int]:
    """Where the values lie and how often they were written to."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def _pick(weight: Tensor) -> Tensor:
    """A view of some values, spread over the weight."""
    flat = weight.detach().flatten()
    return flat[:: max(1, len(flat) // VALUES)]
