"""Where a run computes: a GPU where there is one, the CPU otherwise.

    train.device, torchrun's environment  ->  training.devices  ->  training.distributed

Of several processes on a machine each takes the GPU of its own number (LOCAL_RANK).
"""

from __future__ import annotations

import os

import torch

from polyseme.errors import UsageError


def choose_device(wanted: str) -> torch.device:
    """The device for `auto`, `cpu`, `cuda`, `cuda:N` or `mps`; refused if the machine has none such."""
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cpu":
        return torch.device("cpu")
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if wanted == "mps":
        if not torch.backends.mps.is_available():
            raise _refused(wanted, "this machine has no such GPU, or this torch cannot use it")
        if several:
            raise _refused(wanted, "several processes cannot share it")
        return torch.device("mps")
    return _cuda(wanted, several)


def backend_for(device: torch.device) -> str:
    """What the processes talk through: nccl between GPUs, gloo otherwise."""
    return "nccl" if device.type == "cuda" else "gloo"


def _cuda(wanted: str, several: bool) -> torch.device:
    """`cuda`: the GPU of this process on its machine; `cuda:N`: that one, for a process alone."""
    if not torch.cuda.is_available():
        raise _refused(wanted, "this machine has no CUDA GPU, or this torch was built without CUDA")
    count = torch.cuda.device_count()
    _, _, named = wanted.partition(":")
    if named and several:
        raise _refused(wanted, "several processes need a GPU each: train.device=cuda gives each its own")
    number = int(named or os.environ.get("LOCAL_RANK", "0"))
    if number >= count and not named:
        raise _refused(wanted, f"there are more processes than GPUs here: use --nproc-per-node {count}")
    if number >= count:
        raise _refused(wanted, f"this machine has {count} CUDA GPUs, numbered from 0")
    return torch.device("cuda", number)


def _refused(wanted: str, why: str) -> UsageError:
    return UsageError(f"train.device is {wanted}, but {why}. Or set train.device=cpu.")
