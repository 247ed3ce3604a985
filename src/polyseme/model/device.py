"""Resolve the name of a device: auto, cpu, cuda, cuda:N or mps.

    load, Elmo.to, training.devices  ->  model.device  ->  torch.device

A device that this machine lacks is refused here, before weights move.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyseme.errors import UsageError


def resolve_device(device: str | torch.device, name: str = "device") -> torch.device:
    """Return the torch device for `device`.

    Args:
        device: "auto" (the first CUDA GPU, or the CPU if there is none), "cpu", "cuda", "cuda:N" or "mps".
            Devices of other types that torch knows are returned unchecked.
        name: What error messages call the setting.

    Returns:
        The device; "cuda" has index 0.

    Raises:
        UsageError: If the name is unknown or this machine has no such device.

    """
    wanted = str(device)
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        resolved = torch.device(wanted)
    except RuntimeError:
        raise UsageError(f"{name} is {wanted!r}, expected auto, cpu, cuda, cuda:N or mps.") from None
    if resolved.type == "cuda":
        return _resolve_cuda(wanted, resolved.index or 0, name)
    if resolved.type == "mps" and not torch.backends.mps.is_available():
        raise make_device_error(wanted, "this machine has no such GPU, or this torch cannot use it", name)
    return resolved


def copy_to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy values of the CPU to `device`; to a GPU from pinned memory, so that the CPU goes on at once."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


def _resolve_cuda(wanted: str, index: int, name: str) -> torch.device:
    if not torch.cuda.is_available():
        raise make_device_error(
            wanted, "this machine has no CUDA GPU, or this torch was built without CUDA", name
        )
    count = torch.cuda.device_count()
    if index >= count:
        raise make_device_error(wanted, f"this machine has {count} CUDA GPUs, numbered from 0", name)
    return torch.device("cuda", index)


def make_device_error(wanted: str, reason: str, name: str) -> UsageError:
    """Return the error for a device that cannot be used."""
    return UsageError(f'{name} is {wanted}, but {reason}. Or use `{name}="cpu"`.')
