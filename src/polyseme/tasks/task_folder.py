"""The files of a task folder: task.json, head.safetensors, elmo/, static.vectors, README.md.

    tasks.task_model  <->  tasks.task_folder

task.json holds the settings, what was learned, the words and characters of the input, and where its ELMo is
(in the folder, at a path, or bundled) with its fingerprint. Nothing in the folder is executed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from polyseme.config import parse_settings, read_values
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.bundled import list_bundled
from polyseme.formats.models.hub import find_repository
from polyseme.formats.models.open import make_portable
from polyseme.formats.models.save import save_pretrained
from polyseme.formats.tensors import read_tensors
from polyseme.io.atomic import complete_write
from polyseme.segmentations import SEGMENTATIONS
from polyseme.tasks.protocol import AnyNetwork, AnyTask
from polyseme.tasks.table import TASKS, find_task
from polyseme.tasks.trainable import as_module
from polyseme.text.validate import check_path
from polyseme.training.checkpoint import AGAIN, load_weights

TASK, HEAD, ELMO, CARD = "task.json", "head.safetensors", "elmo", "README.md"
FORMAT = 2
WEIGHTS = "the weights of the task"
NEEDS_PATH = "Without a copy the ELMo must have a path: pass its path as `model`, not a loaded model."


@dataclass(frozen=True)
class ElmoSource:
    """The ELMo of a task, and the path it was loaded from; None if it has none."""

    elmo: Elmo | None
    path: str | None = None


def is_task(path: str | Path) -> bool:
    """Whether a folder holds a task."""
    folder = Path(check_path(path, "the task model")).expanduser()
    complete_write(folder)
    return (folder / TASK).is_file()


def is_fine_tuned(path: str | Path) -> bool:
    """Whether a task folder holds a fine-tuned ELMo, which no other task shares."""
    settings = read_task_file(Path(path).expanduser())["settings"]
    return isinstance(settings.get("input"), dict) and settings["input"].get("tune") == "full"


def read_task_file(folder: Path) -> dict[str, Any]:
    """The values of task.json, checked.

    Raises:
        FormatError: If the folder has none, or its values are not those of a task.

    """
    if not is_task(folder):
        raise FormatError(
            f"{folder}: no {TASK} in it. Train one with `polyseme.train(task, model, train=…, out=…)`."
        )
    values = _upgrade(read_values(folder / TASK))
    version = values.get("polyseme_task")
    if version != FORMAT:
        raise FormatError(f"{folder / TASK}: format {version!r}, this Polyseme reads {FORMAT}. Upgrade it.")
    checks: Mapping[str, Callable[[Any], bool]] = {
        "words": _is_text_list,
        "characters": _is_text_list,
        "segment": lambda value: isinstance(value, str) and value in SEGMENTATIONS,
        "scores": _are_scores,
        "elmo": _is_source,
        "static": _is_source,
        "settings": lambda value: isinstance(value, dict) and isinstance(value.get("task"), str),
        "learned": _has_text_labels,
    }
    for name, is_valid in checks.items():
        if (name == "elmo" and name not in values) or not is_valid(values.get(name)):
            raise FormatError(f"{folder / TASK}: {name} is missing or wrong. Train it again.")
    return values


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_source(value: Any) -> bool:
    """Whether it names a folder, a path or a bundled model, or nothing."""
    texts = isinstance(value, dict) and all(
        isinstance(text, str) and "\0" not in text for text in value.values()
    )
    return value is None or texts


def _are_scores(value: Any) -> bool:
    """Whether it has the name of the main metric, and the metrics of each set by name."""
    if not isinstance(value, dict) or not isinstance(value.get("main", ""), str):
        return False
    sets = [metrics or {} for name, metrics in value.items() if name != "main"]
    return all(
        isinstance(metrics, dict) and all(type(metric) in (int, float) for metric in metrics.values())
        for metrics in sets
    )


def _has_text_labels(value: Any) -> bool:
    return isinstance(value, dict) and _is_text_list(value.get("labels", []))


def _upgrade(values: dict[str, Any]) -> dict[str, Any]:
    """Translate format 1: labels stood at the top, and settings had the names of all tasks."""
    if values.get("polyseme_task") != 1:
        return values
    values = values | {"polyseme_task": FORMAT, "settings": values.get("config")}
    values["learned"] = {"labels": values.get("labels")}
    return values


def make_task(values: Mapping[str, Any], folder: Path, task: type[AnyTask] | None) -> AnyTask:
    """The task of a folder; `task` is its class if it is not one of Polyseme's."""
    name = values["settings"]["task"]
    if task is None and name not in TASKS:
        raise FormatError(
            f"{folder}: a model of the task {name!r}, which is not one of Polyseme's. Pass its class as "
            "`polyseme.load_task(path, task=…)`."
        )
    task_type = task or find_task(name)
    settings = values["settings"]
    if "config" in values:  # format 1
        settings = _select_known_settings(task_type.settings_type, settings)
    parsed = parse_settings(task_type.settings_type, settings, f"{folder / TASK}: settings")
    return task_type(parsed, values["learned"])


def _select_known_settings(kind: type[Any], values: Any) -> Any:
    """The values that settings of this kind have; format 1 also has those of other tasks."""
    if not isinstance(values, dict):
        return values
    fields = kind.model_fields
    known = {name: value for name, value in values.items() if name in fields}
    return {
        name: _select_known_settings(fields[name].annotation, value) if isinstance(value, dict) else value
        for name, value in known.items()
    }


def collect_head_weights(network: AnyNetwork) -> dict[str, Tensor]:
    """Weights and buffers of a task, without those of a fine-tuned ELMo."""
    tuned = find_tuned_prefix(network)
    return {
        name: values.detach() if values.is_meta else values.detach().cpu().contiguous()
        for name, values in as_module(network).state_dict().items()
        if not name.startswith(tuned)
    }


def find_tuned_prefix(network: AnyNetwork) -> str:
    """What the names of the weights of a fine-tuned ELMo begin with."""
    modules = as_module(network).named_modules()
    name = next(name for name, module in modules if module is network.featurizer)
    return f"{name}.layer.network."


def read_head_weights(folder: Path) -> dict[str, Tensor]:
    """Read head.safetensors, in today's names."""
    return {
        name.replace("stack.inputs.", "stack.featurizer.", 1): values  # as format 1 names it
        for name, values in read_tensors(folder / HEAD, WEIGHTS).items()
    }


def check_head_weights(network: AnyNetwork, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse weights that are not finite, or not those of the network, which may be on the meta device."""
    expected = collect_head_weights(network)
    wrong = list(expected.keys() ^ weights.keys())
    for name in expected.keys() & weights.keys():
        stored = weights[name]
        if (stored.dtype, stored.shape) != (expected[name].dtype, expected[name].shape):
            wrong.append(name)
        elif not torch.isfinite(stored).all():
            raise FormatError(f"{folder / HEAD}: {name} contains NaN or infinite values. Train it again.")
    if wrong:
        raise FormatError(f"{folder / HEAD}: {min(wrong)} does not fit {TASK}. Are they of one task?")


def restore_weights(network: AnyNetwork, path: Path) -> None:
    """Load the weights of a run."""
    load_weights(as_module(network), read_tensors(path, WEIGHTS), path, AGAIN)


def find_elmo(
    saved: Mapping[str, str] | None,
    folder: Path,
    model: Elmo | str | Path | None,
    device: str | torch.device = "cpu",
) -> ElmoSource:
    """The ELMo of a task folder, checked by its fingerprint.

    Args:
        saved: What task.json says about it; None if the task has no ELMo.
        folder: The task folder.
        model: A model to use instead.
        device: Where to load it to, unless `model` is already loaded.

    Raises:
        FormatError: If it is missing, or is a different model.

    """
    if saved is None:
        return ElmoSource(None)
    source: Elmo | str | Path = model or saved.get("name") or saved.get("path") or folder / ELMO
    is_saved_path = isinstance(source, Path | str) and not model and not saved.get("name")
    if is_saved_path and not os.path.exists(str(source)):
        raise FormatError(
            f"{folder}: its ELMo is missing: there is no {source}. Put it back, or pass its path as `model`."
        )
    elmo = ensure_loaded(source, device=device)
    if elmo.model.fingerprint() != saved.get("fingerprint"):
        raise FormatError(
            f"{folder}: {source} is another ELMo than the one this task was trained with. "
            "Pass the right one as `model`, or train the task again."
        )
    return ElmoSource(elmo, None if isinstance(source, Elmo) else str(source))


def save_elmo(source: ElmoSource, network: AnyNetwork, folder: Path, *, copy: bool) -> dict[str, str] | None:
    """Write the ELMo of a task into its folder, or only its path; returns what task.json says about it."""
    elmo, featurizer = source.elmo, network.featurizer
    if elmo is None or featurizer.settings.elmo == "none":
        return None
    if featurizer.layer is not None:  # fine-tuned: another model than before
        tuned = replace(elmo.model, network=featurizer.layer.network, softmax=None)
        save_pretrained(tuned, folder / ELMO, precision="fp32", force=True)
        return {"folder": ELMO, "fingerprint": tuned.fingerprint()}
    saved = {"fingerprint": elmo.model.fingerprint()}
    path = None if source.path is None else make_portable(source.path)
    is_fetched = path is not None and find_repository(path) is not None
    if path in list_bundled() or (is_fetched and not copy):
        return {"name": path, **saved}  # type: ignore[dict-item]  # a string
    if not copy:
        if path is None:
            raise UsageError(NEEDS_PATH)
        return {"path": path, **saved}
    save_pretrained(elmo.model, folder / ELMO, force=True)
    return {"folder": ELMO, **saved}


def write_card(task: AnyTask, scores: Mapping[str, Any], folder: Path) -> None:
    """Write README.md of a task folder."""
    shown = scores.get("test") or scores.get("dev") or {}
    lines = [f"# A model for {task.name}", "", "Made by Polyseme.", "", "| | |", "|---|---|"]
    if task.labels:
        lines.append(f"| labels | {', '.join(task.labels[:20])} |")
    lines += [f"| {name} | {value:.4f} |" for name, value in shown.items() if isinstance(value, float)]
    lines += ["", "```python", "import polyseme", "", 'model = polyseme.load_task("…")']
    lines += [f"model.predict({task.sample_question})", "```", ""]
    (folder / CARD).write_text("\n".join(lines), encoding="utf-8")
