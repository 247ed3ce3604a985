"""Weights packed for products with few rows, if torch includes oneDNN.

    model.recurrent  ->  model.fast.onednn  ->  torch

A time step multiplies a few rows by large weights, for which the usual layout is about half as fast.
Packed weights are a copy, which does not follow later changes of the weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

TYPICAL_ROWS = 16  # sentences that are still running in the middle of a batch


def pack_weight(weight: Tensor | None) -> Tensor | None:
    """A packed copy of `weight` (outputs, inputs), or None if oneDNN is unavailable."""
    operations: Any = torch.ops.mkldnn
    if weight is None or weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    if not torch.backends.mkldnn.is_available() or not hasattr(operations, "_reorder_linear_weight"):
        return None
    packed: Tensor = operations._reorder_linear_weight(weight.detach(), TYPICAL_ROWS)
    return packed


def multiply_packed(x: Tensor, packed: Tensor) -> Tensor:
    """Rows (n, inputs) times the packed weight: (n, outputs)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    return product


def multiply_add_packed(x: Tensor, packed: Tensor, addend: Tensor) -> Tensor:
    """Rows (n, inputs) times the packed weight, plus `addend` (n, outputs)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, addend, packed, None, "add")
    return product
