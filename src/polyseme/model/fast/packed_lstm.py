"""One layer of one direction by torch's own LSTM over packed sentences: on a GPU, one call of cuDNN.

    model.recurrent, model.fast.paired  ->  model.fast.packed_lstm  ->  torch

torch's LSTM has a projection of the output, but clips nothing. Published models, and all presets, clip the
memory and the output at 3, so they run step by step on a GPU (model.fast.paired, model.recurrent); models
trained with `cell_clip` and `output_clip` off run here, with the same results. torch.compile is not used for
the time loop: it would compile anew for each length of a sentence.

N packed tokens, B sentences, I inputs, M memory cells, D outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor


def fits_packed_lstm(
    device: torch.device, cells: int, outputs: int, clips: tuple[float | None, float | None], projects: bool
) -> bool:
    """Whether torch's LSTM computes this layer exactly, and as one call of cuDNN."""
    clipped = clips[0] is not None or (projects and clips[1] is not None)
    narrower = outputs < cells if projects else True  # cuDNN projects to fewer values only
    return device.type == "cuda" and not clipped and narrower


def run_packed_lstm(
    x: Tensor,
    sizes: list[int],
    state: tuple[Tensor, Tensor],
    inputs: Tensor,
    hidden: Tensor,
    bias: Tensor,
    projection: Tensor | None,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run a layer on x (N, I).

    Args:
        x: Packed inputs.
        sizes: Sentences that are still running at each time step.
        state: Outputs (B, D) and memory (B, M) before the first step.
        inputs: (4M, I), gates in the order i, f, o, candidate.
        hidden: (4M, D).
        bias: (4M,), with the constant of the forget gate.
        projection: (D, M) or None.

    Returns:
        Packed outputs (N, D), and the state after the end of each sentence.

    """
    running = sizes[0] if sizes else 0
    if not running:
        return x.new_empty(0, hidden.shape[1]), state
    weights = [_reorder(weight) for weight in (inputs, hidden, bias)]
    weights += [torch.zeros_like(bias), *([] if projection is None else [projection])]
    first = tuple(part[:running].contiguous()[None] for part in state)
    steps = torch.tensor(sizes, dtype=torch.int64)
    output, h, c = torch.lstm(x, steps, first, weights, True, 1, 0.0, torch.is_grad_enabled(), False)
    if running == len(state[0]):
        return output, (h[0], c[0])
    return output, (torch.cat([h[0], state[0][running:]]), torch.cat([c[0], state[1][running:]]))


def _reorder(weight: Tensor) -> Tensor:
    """The gates in torch's order: i, f, candidate, o."""
    i, f, o, candidate = weight.chunk(4)
    return torch.cat([i, f, candidate, o])
