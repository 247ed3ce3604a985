"""Save and restore a run: the last two checkpoints and the best weights.

    training.loop  <->  training.checkpoint  <->  checkpoints/step-…/, checkpoints/best/

A checkpoint is written under a temporary name, synced and renamed, so that a kill or a power cut at any
moment leaves the previous one. Only safetensors and JSON. What must not change: file names and keys, since
runs of earlier versions are resumed.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors, write_tensors
from polyseme.io.atomic import new_folder
from polyseme.io.checked import read_json, refuse_damaged

KEPT = 2  # checkpoints that stay on disk
POSITION, MODEL, OPTIMIZER = "position.json", "model.safetensors", "optimizer.safetensors"
METRICS = "metrics.json"
ADVICE = "Remove this checkpoint to resume from the previous one."
AGAIN = "Train again with `force=True`."


@dataclass
class Position:
    """How far a run is."""

    epoch: int = 0
    number: int = 0  # the next batch of the epoch
    step: int = 0
    tokens: int = 0
    evaluations: int = 0
    best: float | None = None  # lowest score so far
    since_best: int = 0  # validations since then
    halvings: int = 0  # of the learning rate, by schedule="plateau"
    seconds: float = 0.0  # of training, without validation and interruptions


def save(
    folder: Path,
    position: Position,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    carried: list[dict[str, Tensor]],
) -> Path:
    """Write a checkpoint to `folder` and remove all but the last two.

    Args:
        folder: The folder of all checkpoints.
        position: How far the run is.
        module: Whose weights are saved.
        optimizer: Whose state is saved.
        carried: The carried state of every rank.

    """
    path = folder / f"step-{position.step:09d}"
    with new_folder(
        path, force=True, known_names=(POSITION, MODEL, OPTIMIZER, *map(_name_carried, range(len(carried))))
    ) as new:
        write_tensors(new / MODEL, collect_weights(module))
        write_tensors(new / OPTIMIZER, _collect_optimizer_tensors(module, optimizer))
        for rank, tensors in enumerate(carried):
            write_tensors(new / _name_carried(rank), tensors)
        (new / POSITION).write_text(json.dumps(asdict(position)) + "\n", encoding="utf-8")
    for old in list_checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints in `folder`, oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / POSITION).exists())


def restore(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Position, list[dict[str, Tensor]]]:
    """Restore weights and optimiser state; return the position and the carried state of each rank."""
    with refuse_damaged(path, "an intact checkpoint", ADVICE):
        position = _check_position(Position(**read_json(path / POSITION, advice=ADVICE)))
        ranks = max(1, len(list(path.glob("carried-*.safetensors"))))
        files = (MODEL, OPTIMIZER, *map(_name_carried, range(ranks)))
        tensors, states, *carried = (read_tensors(path / file, "its tensors", ADVICE) for file in files)
    parameters = dict(module.named_parameters())
    for name, value in states.items():
        parameter, _, entry = name.partition("|")
        known = parameters.get(parameter)
        fits = known is not None and value.shape in (known.shape, ())
        if not fits or not torch.isfinite(value).all():
            raise FormatError(f"{path / OPTIMIZER}: {name} does not fit the model. {ADVICE}")
    load_weights(module, tensors, path / MODEL, ADVICE)
    for name, value in states.items():
        parameter, _, entry = name.partition("|")
        optimizer.state[parameters[parameter]][entry] = value.to(
            _find_device(optimizer, parameters[parameter], entry)
        )
    return position, carried


def _check_position(position: Position) -> Position:
    """Refuse values of other types, and counts below zero."""
    for name, value in asdict(position).items():
        is_count = name not in ("best", "seconds")
        kinds = (int,) if is_count else (int, float)
        is_missing = name == "best" and value is None
        if not is_missing and (type(value) not in kinds or not math.isfinite(value)):
            raise ValueError(f"{name} is {value!r}")
        if name != "best" and value < 0:
            raise ValueError(f"{name} is {value!r}")
    return position


def save_best(folder: Path, module: nn.Module, metrics: Mapping[str, float]) -> None:
    """Save the weights of the best validation so far."""
    with new_folder(folder / "best", force=True, known_names=(MODEL, METRICS)) as new:
        write_tensors(new / MODEL, collect_weights(module))
        (new / METRICS).write_text(json.dumps(dict(metrics)) + "\n", encoding="utf-8")


def load_best(folder: Path, module: nn.Module) -> None:
    """Load the weights of the best validation, if there was one."""
    if (folder / "best" / MODEL).exists():
        path = folder / "best" / MODEL
        load_weights(module, read_tensors(path, "the best weights", AGAIN), path, AGAIN)


@torch.no_grad()
def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], path: Path, advice: str) -> None:
    """Copy the tensors of `path` into `module`, in place, because the optimiser refers to its parameters.

    Raises:
        FormatError: A tensor is missing, or has another type or shape, or values that are not finite.

    """
    saved = _list_saved(module)
    for name, values in saved.items():
        stored = tensors.get(name)
        if stored is None or (stored.dtype, stored.shape) != (values.dtype, values.shape):
            raise FormatError(f"{path}: {name} is missing, or does not fit the model. {advice}")
        if not torch.isfinite(stored).all():
            raise FormatError(f"{path}: {name} contains NaN or infinite values. {advice}")
    for name, values in saved.items():
        values.copy_(tensors[name])


def _find_device(optimizer: torch.optim.Optimizer, parameter: Tensor, entry: str) -> torch.device:
    """The device of an entry of the optimiser: that of its parameter; the CPU for counters, unless fused."""
    with_parameter = entry != "step" or optimizer.defaults.get("fused")
    return parameter.device if with_parameter else torch.device("cpu")


def _name_carried(rank: int) -> str:
    return f"carried-{rank}.safetensors"


def _list_saved(module: nn.Module) -> dict[str, Tensor]:
    """Parameters, each once, and persistent buffers such as the means of a batch norm."""
    saved = module.state_dict().keys()
    buffers = {name: values for name, values in module.named_buffers() if name in saved}
    return dict(module.named_parameters()) | buffers


def collect_weights(module: nn.Module) -> dict[str, Tensor]:
    """Collect the weights of a module by name, for `load_weights`."""
    return {name: values.detach().cpu().contiguous() for name, values in _list_saved(module).items()}


def _collect_optimizer_tensors(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The tensors of the optimiser by parameter and entry: `network.tokens.words.weight|exp_avg`."""
    return {
        f"{name}|{entry}": value.detach().cpu().contiguous()
        for name, parameter in module.named_parameters()
        for entry, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }
