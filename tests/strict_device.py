"""A device that behaves like a GPU where there is none: tensors on it refuse every implicit copy.

    tensor.to("strict")  ->  StrictTensor (wraps a CPU tensor)  ->  tensor.cpu()

As with CUDA, `.numpy()` raises, and so does any operation that mixes tensors of both devices, except copies,
CPU indices into tensors of the device, and single numbers. Registered once per process.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "strict"
_MIXED = ("aten::copy_", "aten::_copy_from", "aten::index.", "aten::index_put")  # as CUDA, with CPU indices
_LIBRARIES: list[torch.library.Library] = []  # a registration lasts as long as its library


class StrictTensor(Tensor):
    """A tensor on the device "strict"."""

    wrapped: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> StrictTensor:
        tensor = Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=torch.device(NAME, 0),
            requires_grad=values.requires_grad,
        )
        tensor.wrapped = values.detach()
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"StrictTensor({self.wrapped})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = function.name()
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
            return function.decompose(*args, **kwargs)  # in inference mode they arrive undecomposed
        on_cpu = kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cpu"
        strict: list[StrictTensor] = []

        def unwrap(value: Any) -> Any:
            if isinstance(value, StrictTensor):
                strict.append(value)
                return value.wrapped
            if isinstance(value, Tensor) and value.dim() and not name.startswith(_MIXED):
                raise RuntimeError(f"{name}: a tensor of the CPU {tuple(value.shape)} among those of {NAME}")
            if isinstance(value, torch.device) and value.type == NAME:
                return torch.device("cpu")
            return value

        results = function(*tree_map(unwrap, args), **tree_map(unwrap, kwargs))
        if on_cpu:
            return tree_map(lambda result: result.clone() if isinstance(result, Tensor) else result, results)

        def wrap(result: Any) -> Any:
            if not isinstance(result, Tensor):
                return result
            same = [tensor for tensor in strict if tensor.wrapped is result]  # of an in-place operation
            if same:
                return same[0]
            # A view of a tensor from outside inference mode belongs outside, too.
            outside = function.is_view and not strict[0].is_inference()
            with torch.inference_mode(torch.is_inference_mode_enabled() and not outside):
                return StrictTensor(result)

        if name.startswith(_MIXED[:2]) and not isinstance(args[0], StrictTensor):
            return args[0]  # a copy to the CPU
        return tree_map(wrap, results)


class StrictModule(_DummyBackendModule):
    """Stands in for `torch.strict`, which torch asks for dtypes and generator states."""

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


@cache
def strict_device() -> torch.device:
    """The device, registered on the first call."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=StrictModule())
    library = torch.library.Library("aten", "IMPL")

    def empty(size: Any, *, dtype: Any = None, **options: Any) -> Tensor:
        return StrictTensor(torch.empty(size, dtype=dtype))

    def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> Tensor:
        return StrictTensor(torch.empty_strided(size, stride, dtype=dtype))

    def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
        """Called by `torch.tensor(values, device=…)`, which bypasses `__torch_dispatch__`."""
        source, values = (t.wrapped if isinstance(t, StrictTensor) else t for t in (source, target))
        values.copy_(source)
        return target

    library.impl("_copy_from", copy_from, "PrivateUse1")
    library.impl("empty.memory_format", empty, "PrivateUse1")
    library.impl("empty_strided", empty_strided, "PrivateUse1")
    _LIBRARIES.append(library)
    return torch.device(NAME, 0)
