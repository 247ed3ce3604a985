"""Weights in fewer bits: bf16, or int8 with a scale per row.

    formats, model.recurrent, model.tokens  ->  model.fast.quantisation  ->  kernels.lstm

bf16 rounds each weight to 8 significant bits, to the nearest. int8 represents each row by integers from -127
to 127 and a scale, max |w| / 127. Weights that are dequantised and quantised again have the same bits.

A module with such weights is a `Quantisable`: it can store them quantised only, and pack them for inference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyseme.model.fast.weight_versions import get_weight_version

PRECISIONS = ("fp32", "bf16", "int8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
MIN_ROW_MAX = 1e-30  # a row whose largest weight is below becomes zero
MAX_ROW_MAX = 3.4e38  # above, 127 times the scale could be infinite


class QuantisedMatrix(NamedTuple):
    """A weight (n, k) of one of DTYPES; for int8 with the scales (n,) of its rows, fp32."""

    values: Tensor
    scales: Tensor | None = None

    def dequantise(self) -> Tensor:
        """Return the represented weights as fp32."""
        values = self.values.float()
        return values if self.scales is None else values.mul_(self.scales[:, None])  # of int8: a new tensor


def quantise(weight: Tensor, precision: str) -> QuantisedMatrix:
    """Convert `weight` (n, k), fp32, to `precision`; ValueError if it is not finite."""
    weight = weight.detach()
    if precision == "fp32":
        return QuantisedMatrix(weight)
    if not torch.isfinite(weight).all():
        raise ValueError(f"A weight of {tuple(weight.shape)} is not finite: there is no {precision} of it.")
    if precision == "bf16":
        largest = torch.finfo(torch.bfloat16).max  # larger fp32 values would become infinite
        return QuantisedMatrix(weight.clamp(-largest, largest).to(torch.bfloat16))
    row_max = weight.abs().amax(dim=1).clamp(max=MAX_ROW_MAX)
    scales = torch.where(row_max > MIN_ROW_MAX, row_max / 127, 0)
    scales = scales * 127 / 127  # rounded so that quantising again gives the same scale
    integers = torch.where(scales[:, None] > 0, weight / scales[:, None], 0).round_()
    return QuantisedMatrix(integers.clamp_(-127, 127).to(torch.int8), scales)


class Quantisable(nn.Module):
    """A module with weights that can be quantised; a subclass defines which, and how to pack them."""

    MATRICES: tuple[str, ...] = ()  # the names of those weights
    quantised: dict[str, QuantisedMatrix]  # the weights, if they are stored in bf16 or int8 only
    keeps_fp32 = False  # whether the weights stay fp32 whatever the precision of the model

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quantised = {}
        self._layout: Any = None  # the result of `build_layout`
        self._packed: tuple[str, list[tuple[int, int]]] | None = None  # its precision and weight versions

    def matrices(self) -> dict[str, Tensor]:
        """The weights that can be quantised, by name; without memory if they are stored quantised."""
        return {name: weight for name in self.MATRICES if (weight := getattr(self, name)) is not None}

    def source_tensors(self) -> list[Tensor]:
        """The tensors that hold those weights, quantised or not."""
        return [weight.values for weight in self.quantised.values()] or list(self.matrices().values())

    def can_run_native(self) -> bool:
        """Whether C code can run this module with its current weights."""
        raise NotImplementedError

    def build_layout(self, weights: dict[str, QuantisedMatrix]) -> Any:
        """Build the packed form of the weights; `weights` is empty if C code cannot run the module."""
        raise NotImplementedError

    def pack(self, precision: str = "fp32") -> None:
        """Pack the weights in `precision`, for inference."""
        precision = self._choose_precision(precision)
        if self._packed == (precision, self._list_versions()):
            return
        self.unpack()
        weights: dict[str, QuantisedMatrix] = {}
        if self.can_run_native():
            weights = self.quantised or {name: quantise(w, precision) for name, w in self.matrices().items()}
        self._layout = self.build_layout(weights)
        self._packed = precision, self._list_versions()

    def is_packed(self, precision: str) -> bool:
        """Whether the weights are packed in `precision`."""
        return self._packed is not None and self._packed[0] == self._choose_precision(precision)

    def _choose_precision(self, precision: str) -> str:
        """The precision of this module in a model of `precision`."""
        return "fp32" if self.keeps_fp32 else precision

    def unpack(self) -> None:
        """Discard the packed weights, since the weights are about to change."""
        self._layout = self._packed = None

    def current_layout(self) -> Any:
        """Return the packed weights; None if they are not packed, have changed or gradients are enabled.

        With gradients the weights may be about to change, so that the packed weights are discarded.
        """
        packed = self._packed
        if packed is None:
            return None
        if torch.is_grad_enabled() or packed[1] != self._list_versions():
            self.unpack()
        return self._layout

    def store_quantised(self, stored: dict[str, QuantisedMatrix]) -> None:
        """Store weights quantised only; their parameters have no memory until `dequantise`."""
        self.unpack()
        self.quantised = stored
        for name, weight in stored.items():
            shape = torch.empty_like(weight.values, dtype=torch.float32, device="meta")
            setattr(self, name, nn.Parameter(shape, getattr(self, name).requires_grad))

    def dequantise(self) -> None:
        """Turn weights that are stored quantised into fp32 parameters."""
        stored, self.quantised = self.quantised, {}
        with torch.inference_mode(False):
            for name, weight in stored.items():
                setattr(self, name, nn.Parameter(weight.dequantise(), getattr(self, name).requires_grad))

    def round_weights(self, precision: str) -> None:
        """Round the fp32 weights to values that `precision` can represent."""
        self.store_quantised({name: quantise(weight, precision) for name, weight in self.matrices().items()})
        self.dequantise()

    def _list_versions(self) -> list[tuple[int, int]]:
        return [get_weight_version(weight) for weight in self.matrices().values()]

    def __getstate__(self) -> dict[str, Any]:
        """Copies start unpacked, since their weights may change."""
        return self.__dict__ | {"_layout": None, "_packed": None}

    def _apply(self, function: Any, recurse: bool = True) -> Any:
        """Discard the packed weights before a change of dtype or device."""
        self.unpack()
        self.dequantise()
        return super()._apply(function, recurse)  # type: ignore[no-untyped-call]
