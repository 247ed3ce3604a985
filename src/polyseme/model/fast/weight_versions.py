"""Detect changes of weights, to invalidate what was computed from them.

    model.tokens, model.fast.quantisation, token_cache, formats  ->  model.fast.weight_versions

torch's version counter detects most writes, but fused optimisers do not increase it. Since those change every
value of a weight, a few sampled values detect the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

SAMPLED_VALUES = 8  # per weight, evenly spaced


class WeightSnapshot:
    """The state of `weights` when it was created."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._weights = list(weights)
        self._versions = [get_weight_version(weight) for weight in self._weights]
        stored = [weight for weight in self._weights if not weight.is_meta]
        self._samples = [_sample(weight) for weight in stored]  # views, which show later writes
        self._values = self._read_values()

    def matches(self, weights: Iterable[Tensor]) -> bool:
        """Whether these are the same tensors with the same values."""
        current = list(weights)
        return (
            len(current) == len(self._weights)
            and all(new is old for new, old in zip(current, self._weights, strict=True))
            and [get_weight_version(weight) for weight in current] == self._versions
            and torch.equal(self._read_values(), self._values)
        )

    def _read_values(self) -> Tensor:
        return torch.cat(self._samples) if self._samples else torch.empty(0, device="cpu")


def get_weight_version(weight: Tensor) -> tuple[int, int]:
    """The address of the values and the number of writes to them."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def _sample(weight: Tensor) -> Tensor:
    """A view of some values, evenly spaced."""
    flat = weight.detach().flatten()
    return flat[:: max(1, len(flat) // SAMPLED_VALUES)]
