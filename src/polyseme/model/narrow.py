"""Weights in fewer bits: bf16, or int8 with a scale for each row.

    formats, model.recurrent  ->  model.narrow  ->  kernels.lstm

fp32 weights are what they are. bf16 rounds each weight to 8 significant bits, to the nearest. int8 makes of
each row whole numbers from -127 to 127 and their scale, max |w| / 127. Weights that are widened and narrowed
again are the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

PRECISIONS = ("fp32", "bf16", "int8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
LEAST = 1e-30  # a row with no larger weight becomes zero
MOST = 3.4e38  # 127 scales of anything larger might be infinite


class Narrow(NamedTuple):
    """A weight (n, k) of one of DTYPES; for int8 with the scales (n,) of its rows, fp32."""

    values: Tensor
    scales: Tensor | None = None

    def wide(self) -> Tensor:
        """As fp32: the very numbers that `values` and `scales` stand for."""
        wide = self.values.float()
        return wide if self.scales is None else wide * self.scales[:, None]


def narrow(weight: Tensor, precision: str) -> Narrow:
    """`weight` (n, k), fp32, in that precision; weights that are not finite are refused."""
    weight = weight.detach()
    if precision == "fp32":
        return Narrow(weight)
    if not torch.isfinite(weight).all():
        raise ValueError(f"A weight of {tuple(weight.shape)} is not finite: there is no {precision} of it.")
    if precision == "bf16":
        largest = torch.finfo(torch.bfloat16).max  # the few numbers above it would become infinite
        return Narrow(weight.clamp(-largest, largest).to(torch.bfloat16))
    most = weight.abs().amax(dim=1).clamp(max=MOST)
    scales = torch.where(most > LEAST, most / 127, 0)
    scales = scales * 127 / 127  # rounded so that the scale comes back from the weights it makes
    whole = torch.where(scales[:, None] > 0, weight / scales[:, None], 0).round_()
    return Narrow(whole.clamp_(-127, 127).to(torch.int8), scales)
