"""Clip gradients and step an optimiser of torch in C, on all cores.

    training.loop  ->  kernels.updates  ->  kernels.native

AdamW and Adagrad. The state stays where torch keeps it, under the same names, so that a checkpoint does not
know which of the two wrote it. The results have the same bits for any number of cores.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.parallel import count_cores

KINDS: dict[type[torch.optim.Optimizer], int] = {
    torch.optim.AdamW: 0,
    torch.optim.Adagrad: 1,
}  # as in native.c
SECOND = {0: "exp_avg_sq", 1: "sum"}  # what torch calls it


def clip_and_step(optimizer: torch.optim.Optimizer, clip: float) -> float | None:
    """Scale all gradients down to the norm `clip`, and step; return their norm before that.

    Nothing is changed if the norm is not finite.

    Returns:
        The norm; None without any change if C cannot do this: the gradients are not on the CPU, or the
        optimiser is another one.

    """
    changed = [
        (parameter, group)
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
    if not changed or not _is_supported(optimizer, [parameter for parameter, _ in changed]):
        return None
    kind, group = KINDS[type(optimizer)], changed[0][1]
    weights = (native.Weight * len(changed))()
    for weight, (parameter, _) in zip(weights, changed, strict=True):
        weight.count, weight.gradient = parameter.numel(), parameter.grad.data_ptr()
    beta1, beta2 = group.get("betas", (0.0, 0.0))
    task = native.Update(kind, len(changed), weights, 1.0, beta1, beta2, group["eps"], group["weight_decay"])
    library, threads = native.load_library(), count_cores()
    sums = torch.empty(library.polyseme_square_sum_count(task), dtype=torch.float64, device="cpu")
    norm = math.sqrt(library.polyseme_square_sum(task, threads, sums.data_ptr()))
    if not math.isfinite(norm):
        return norm
    for weight, (parameter, group) in zip(weights, changed, strict=True):
        _fill_weight(weight, optimizer, parameter, group, kind)
    task.share = min(1.0, clip / (norm + 1e-6))  # as torch.nn.utils.clip_grad_norm_
    library.polyseme_update(task, threads)
    return norm


def _fill_weight(
    weight: Any, optimizer: torch.optim.Optimizer, parameter: Tensor, group: dict[str, Any], kind: int
) -> None:
    """Count the step of a parameter, and set what the step needs of its state."""
    state = optimizer.state[parameter]
    if not state:  # the first step; Adagrad's state is there from the start
        state["step"] = torch.zeros((), dtype=torch.float32, device="cpu")
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
    step = float(state["step"]) + 1
    state["step"].fill_(step)
    second = state[SECOND[kind]]
    weight.values, weight.second, weight.rate = parameter.data_ptr(), second.data_ptr(), group["lr"]
    if kind == KINDS[torch.optim.Adagrad]:
        weight.rate /= 1 + (step - 1) * group["lr_decay"]
        return
    beta1, beta2 = group["betas"]
    weight.first = state["exp_avg"].data_ptr()
    weight.rate = group["lr"] / (1 - beta1**step)
    weight.kept, weight.root = 1 - group["lr"] * group["weight_decay"], math.sqrt(1 - beta2**step)


def _is_supported(optimizer: torch.optim.Optimizer, parameters: list[Tensor]) -> bool:
    """Whether C can do a step: dense fp32 on the CPU, and no option that it does not know."""
    if (
        type(optimizer) not in KINDS
        or optimizer.defaults.get("amsgrad")
        or optimizer.defaults.get("maximize")
    ):
        return False
    tensors = [tensor for parameter in parameters for tensor in (parameter, parameter.grad)]
    states = [optimizer.state[parameter] for parameter in parameters if optimizer.state.get(parameter)]
    tensors += [value for state in states for name, value in state.items() if name != "step"]
    return lstm.is_supported(*tensors) and all(
        tensor is not None and tensor.layout == torch.strided and tensor.is_contiguous() for tensor in tensors
    )
