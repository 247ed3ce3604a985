"""Choose the device of a training run, alone or as one of several processes.

    train.device, torchrun's environment  ->  training.devices  ->  training.distributed

Each of several processes on a machine takes the GPU with its own number (LOCAL_RANK).
"""

from __future__ import annotations

import os

import torch

from polyseme.model.device import make_device_error, resolve_device

NAME = "train.device"  # what error messages call the setting


def choose_device(wanted: str) -> torch.device:
    """Return the device for `auto`, `cpu`, `cuda`, `cuda:N` or `mps`; refuse one that is not available."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return resolve_device(wanted, NAME)
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "mps":
        raise make_device_error(wanted, "several processes cannot share it", NAME)
    if wanted.startswith("cuda:"):
        raise make_device_error(
            wanted, "several processes need a GPU each: train.device=cuda gives each its own", NAME
        )
    if wanted != "cuda":
        return resolve_device(wanted, NAME)
    first = resolve_device(wanted, NAME)  # refuses a machine without GPUs
    number, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= count:
        raise make_device_error(
            wanted, f"there are more processes than GPUs here: use --nproc-per-node {count}", NAME
        )
    return torch.device(first.type, number)


def choose_backend(device: torch.device) -> str:
    """Return how processes communicate: nccl between GPUs, gloo otherwise."""
    return "nccl" if device.type == "cuda" else "gloo"
