"""Weights in fewer bits: bf16, or int8 with a scale for each row.

    formats, model.recurrent, model.tokens  ->  model.fast.quantisation  ->  kernels.lstm

fp32 weights are what they are. bf16 rounds each weight to 8 significant bits, to the nearest. int8 makes of
each row whole numbers from -127 to 127 and their scale, max |w| / 127. Weights that are widened and narrowed
again are the same bits.

A module with such weights is a `Quantisable`: it can keep them narrow alone, and lay them out for reading
once they are final.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyseme.model.fast.weight_versions import weight_version

PRECISIONS = ("fp32", "bf16", "int8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
MIN_ROW_MAX = 1e-30  # a row with no larger weight becomes zero
MAX_ROW_MAX = 3.4e38  # 127 scales of anything larger might be infinite


class QuantisedMatrix(NamedTuple):
    """A weight (n, k) of one of DTYPES; for int8 with the scales (n,) of its rows, fp32."""

    values: Tensor
    scales: Tensor | None = None

    def dequantise(self) -> Tensor:
        """As fp32: the very numbers that `values` and `scales` stand for."""
        wide = self.values.float()
        return wide if self.scales is None else wide.mul_(self.scales[:, None])  # of int8: a new tensor


def quantise(weight: Tensor, precision: str) -> QuantisedMatrix:
    """`weight` (n, k), fp32, in that precision; weights that are not finite are refused."""
    weight = weight.detach()
    if precision == "fp32":
        return QuantisedMatrix(weight)
    if not torch.isfinite(weight).all():
        raise ValueError(f"A weight of {tuple(weight.shape)} is not finite: there is no {precision} of it.")
    if precision == "bf16":
        largest = torch.finfo(torch.bfloat16).max  # the few numbers above it would become infinite
        return QuantisedMatrix(weight.clamp(-largest, largest).to(torch.bfloat16))
    most = weight.abs().amax(dim=1).clamp(max=MAX_ROW_MAX)
    scales = torch.where(most > MIN_ROW_MAX, most / 127, 0)
    scales = scales * 127 / 127  # rounded so that the scale comes back from the weights it makes
    whole = torch.where(scales[:, None] > 0, weight / scales[:, None], 0).round_()
    return QuantisedMatrix(whole.clamp_(-127, 127).to(torch.int8), scales)


class Quantisable(nn.Module):
    """A module some of whose weights may be narrow; a subclass says which, and how it lays them out."""

    MATRICES: tuple[str, ...] = ()  # the names of those weights
    quantised: dict[str, QuantisedMatrix]  # the weights, where they are kept in bf16 or int8 alone
    keeps_fp32 = False  # whether the weights stay fp32, whatever precision the model has

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.quantised = {}
        self._layout: Any = None  # what `lay_out` made, and of what
        self._laid_out: tuple[str, list[tuple[int, int]]] | None = None

    def matrices(self) -> dict[str, Tensor]:
        """The weights that may be narrow, as far as there are any; without memory where they are stored."""
        return {name: weight for name in self.MATRICES if (weight := getattr(self, name)) is not None}

    def source_tensors(self) -> list[Tensor]:
        """The memory that those weights lie in, laid out or not."""
        return [weight.values for weight in self.quantised.values()] or list(self.matrices().values())

    def can_run_native(self) -> bool:
        """Whether the module has a quick way for narrow weights, here and now."""
        raise NotImplementedError

    def build_layout(self, weights: dict[str, QuantisedMatrix]) -> Any:
        """What the module reads the weights from; none are given where it does not take them."""
        raise NotImplementedError

    def pack(self, precision: str = "fp32") -> None:
        """Take the weights as final and lay them out, in that precision, for reading without gradients."""
        precision = self._own(precision)
        if self._laid_out == (precision, self._versions()):
            return
        self.unpack()
        weights: dict[str, QuantisedMatrix] = {}
        if self.can_run_native():
            weights = self.quantised or {name: quantise(w, precision) for name, w in self.matrices().items()}
        self._layout = self.build_layout(weights)
        self._laid_out = precision, self._versions()

    def is_packed(self, precision: str) -> bool:
        """Whether weights were laid out in that precision, and not forgotten since."""
        return self._laid_out is not None and self._laid_out[0] == self._own(precision)

    def _own(self, precision: str) -> str:
        """The precision that this module takes where another is asked for of the model."""
        return "fp32" if self.keeps_fp32 else precision

    def unpack(self) -> None:
        """Forget what was laid out: the weights are about to change."""
        self._layout = self._laid_out = None

    def current_layout(self) -> Any:
        """What `lay_out` made, if the weights are still the same and no gradient is kept, else None.

        Whoever wants gradients may be about to change the weights, so that ends it, too.
        """
        laid_out = self._laid_out
        if laid_out is None:
            return None
        if torch.is_grad_enabled() or laid_out[1] != self._versions():
            self.unpack()
        return self._layout

    def store_quantised(self, stored: dict[str, QuantisedMatrix]) -> None:
        """Keep the weights of these names narrow; the parameters have shapes and no memory until `widen`."""
        self.unpack()
        self.quantised = stored
        for name, weight in stored.items():
            shape = torch.empty_like(weight.values, dtype=torch.float32, device="meta")
            setattr(self, name, nn.Parameter(shape, getattr(self, name).requires_grad))

    def dequantise(self) -> None:
        """Give parameters that are `stored` their memory, as fp32: more than the loop in C needs them."""
        stored, self.quantised = self.quantised, {}
        with torch.inference_mode(False):
            for name, weight in stored.items():
                setattr(self, name, nn.Parameter(weight.dequantise(), getattr(self, name).requires_grad))

    def round_weights(self, precision: str) -> None:
        """Round the weights to what `precision` can hold; they stay fp32."""
        self.store_quantised({name: quantise(weight, precision) for name, weight in self.matrices().items()})
        self.dequantise()

    def _versions(self) -> list[tuple[int, int]]:
        return [weight_version(weight) for weight in self.matrices().values()]

    def __getstate__(self) -> dict[str, Any]:
        """Copies begin unpacked: their weights may change."""
        return self.__dict__ | {"_layout": None, "_laid_out": None}

    def _apply(self, function: Any, recurse: bool = True) -> Any:
        """Another dtype or device: what was laid out does not fit any more."""
        self.unpack()
        self.dequantise()
        return super()._apply(function, recurse)  # type: ignore[no-untyped-call]
