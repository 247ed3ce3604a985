"""Where a run stands, on disk: whole or not at all, the last two kept, and the best weights.

    training.loop  <->  training.checkpoint  <->  checkpoints/step-…/, checkpoints/best/

A checkpoint is written under a temporary name, synced and renamed, so that a kill or a power cut at any
moment leaves the one before. safetensors and JSON only.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.errors import FormatError
from polyseme.io.atomic import new_folder

KEPT = 2
POSITION, MODEL, OPTIMIZER = "position.json", "model.safetensors", "optimizer.safetensors"
METRICS = "metrics.json"


@dataclass
class Position:
    """How far a run has come."""

    epoch: int = 0
    number: int = 0  # of the next batch in the epoch
    step: int = 0
    tokens: int = 0
    evaluations: int = 0
    best: float | None = None  # lowest score so far
    since_best: int = 0
    seconds: float = 0.0  # of training, over all interruptions


def save(
    folder: Path,
    position: Position,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    carried: list[dict[str, Tensor]],
) -> Path:
    """Write a checkpoint below `folder` and remove all but the last two; `carried`: of every rank."""
    path = folder / f"step-{position.step:09d}"
    with new_folder(
        path, force=True, known_names=(POSITION, MODEL, OPTIMIZER, *map(_carried, range(len(carried))))
    ) as new:
        save_file(weights_of(module), new / MODEL)
        save_file(_optimizer_tensors(module, optimizer), new / OPTIMIZER)
        for rank, tensors in enumerate(carried):
            save_file(tensors, new / _carried(rank))
        (new / POSITION).write_text(json.dumps(asdict(position)) + "\n", encoding="utf-8")
    for old in checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)
    return path


def checkpoints(folder: Path) -> list[Path]:
    """The whole checkpoints below `folder`, oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / POSITION).exists())


def restore(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Position, list[dict[str, Tensor]]]:
    """Put a checkpoint's weights and optimiser state back; give its position and what each rank carried."""
    try:
        values: dict[str, Any] = json.loads((path / POSITION).read_text(encoding="utf-8"))
        tensors, states = load_file(path / MODEL), load_file(path / OPTIMIZER)
        ranks = max(1, len(list(path.glob("carried-*.safetensors"))))
        carried = [load_file(path / _carried(rank)) for rank in range(ranks)]
        position = Position(**values)
    except (OSError, ValueError, TypeError, SafetensorError) as problem:
        raise FormatError(
            f"{path}: the checkpoint is damaged ({problem}). Remove it to use the one before."
        ) from None
    load_weights(module, tensors)
    parameters = dict(module.named_parameters())
    for name, value in states.items():
        parameter, _, entry = name.partition("|")
        optimizer.state[parameters[parameter]][entry] = value.to(
            _home(optimizer, parameters[parameter], entry)
        )
    return position, carried


def save_best(folder: Path, module: nn.Module, metrics: Mapping[str, float]) -> None:
    """Keep the weights of the best validation so far."""
    with new_folder(folder / "best", force=True, known_names=(MODEL, METRICS)) as new:
        save_file(weights_of(module), new / MODEL)
        (new / METRICS).write_text(json.dumps(dict(metrics)) + "\n", encoding="utf-8")


def load_best(folder: Path, module: nn.Module) -> None:
    """Take the weights of the best validation, if there was one."""
    if (folder / "best" / MODEL).exists():
        load_weights(module, load_file(folder / "best" / MODEL))


@torch.no_grad()
def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy `tensors` into `module`, in place: the optimiser knows its parameters."""
    for name, values in _kept(module).items():
        values.copy_(tensors[name])


def _home(optimizer: torch.optim.Optimizer, parameter: Tensor, entry: str) -> torch.device:
    """Where an entry of the optimiser's state lies: with its parameter, but counters only if it is fused."""
    with_parameter = entry != "step" or optimizer.defaults.get("fused")
    return parameter.device if with_parameter else torch.device("cpu")


def _carried(rank: int) -> str:
    return f"carried-{rank}.safetensors"


def _kept(module: nn.Module) -> dict[str, Tensor]:
    """Parameters, each once, and the buffers that belong to a saved module, such as a batch norm's means."""
    kept = module.state_dict().keys()
    buffers = {name: values for name, values in module.named_buffers() if name in kept}
    return dict(module.named_parameters()) | buffers


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """All that `load_weights` needs, by name."""
    return {name: values.detach().cpu().contiguous() for name, values in _kept(module).items()}


def _optimizer_tensors(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by parameter and entry: `network.tokens.words.weight|exp_avg`."""
    return {
        f"{name}|{entry}": value.detach().cpu().contiguous()
        for name, parameter in module.named_parameters()
        for entry, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }
