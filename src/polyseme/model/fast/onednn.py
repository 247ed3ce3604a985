"""Weights laid out for products with few rows, where torch brings oneDNN.

    model.recurrent  ->  model.fast.onednn  ->  torch

A time step multiplies a handful of rows by large weights; the usual layout leaves half of the machine idle
there. Packed weights are a copy: whoever packs says that the weights are final.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

TYPICAL_ROWS = 16  # sentences that still run in the middle of a batch


def pack_weight(weight: Tensor | None) -> Tensor | None:
    """A packed copy of `weight` (outputs, inputs), or None where that cannot be had."""
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


def multiply_add_packed(x: Tensor, packed: Tensor, other: Tensor) -> Tensor:
    """Rows (n, inputs) times the packed weight, plus `other` (n, outputs)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, other, packed, None, "add")
    return product
