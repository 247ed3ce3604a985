"""The model, indexes and task models of a server, and what /info says about them.

paths or open objects  ->  server.catalog  ->  server.verbs, server.openai
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import PolysemeError, UsageError
from polyseme.formats.models.card import describe, drop_front_matter
from polyseme.formats.models.open import locate_model, resolve_model_path
from polyseme.search.index import Index, is_index, open_index
from polyseme.server.http.limits import invalid, not_found
from polyseme.server.suggestions import guess_language, list_words_by_frequency, suggest_examples
from polyseme.tasks.task_folder import is_fine_tuned, is_task
from polyseme.tasks.task_model import TaskModel, load_task
from polyseme.word_vectors import WordVectors, open_words

Item = TypeVar("Item")
MAX_DOCUMENTS = 1000  # names in /info
MAX_CHARACTERS = 1 << 22  # of a file in the model's folder
UNKNOWN = "{}: neither an index nor a task model. Check the path."


@dataclass(eq=False)
class Catalog:
    """A model, and its indexes and task models by name."""

    name: str
    path: Path | None
    elmo: Elmo
    indexes: dict[str, Index] = field(default_factory=dict)
    tasks: dict[str, TaskModel] = field(default_factory=dict)
    task_paths: dict[str, str] = field(default_factory=dict)  # of task models that were opened by path

    @cached_property
    def created(self) -> int:
        """When the model was written, in seconds since 1970; when it was opened, if it is no file."""
        file = None if self.path is None else locate_model(self.path)
        return int(file.stat().st_mtime if file is not None and file.exists() else time.time())

    @cached_property
    def words(self) -> WordVectors | None:
        """The word vectors in the model's folder, if there are any."""
        if self.path is None:
            return None
        try:
            return open_words(self.path)
        except PolysemeError:
            return None  # models of other programs have none

    def index(self, name: str | None) -> Index:
        """The index of that name, or the first one."""
        return _pick(self.indexes, name, "index", "INDEX")

    def task(self, name: str | None) -> TaskModel:
        """The task model of that name, or the first one."""
        return _pick(self.tasks, name, "task model", "TASK")

    @cached_property
    def info(self) -> dict[str, Any]:
        """The content of /info, without the limits."""
        config = self.elmo.config
        return {
            "version": version("polyseme"),
            "model": {
                "name": self.name,
                "path": self.name if self.path is None else str(self.path),
                "layers": config.layers,
                "size": config.size,
                "segment": config.segment,
                "language": self._guess_language(),
                "vocabulary": len(self.elmo.model.vocab) if self.elmo.model.vocab else None,
                "has_softmax": self.elmo.model.softmax is not None,
                "facts": [list(row) for row in describe(self.elmo.model).items()],
                "card": drop_front_matter(self._read_file("README.md") or "") or None,
                "curves": self._read_curves(),
            },
            "indexes": [
                {
                    "name": name,
                    "path": str(index.folder),  # as the user wrote it, for commands to copy
                    "usages": len(index),
                    "words": len(index.words),
                    "layer": index.head["layer"],
                    "view": index.head["view"],
                    "documents": [document.name for document in index.listed_documents[:MAX_DOCUMENTS]],
                    "examples": suggest_examples(index),
                }
                for name, index in self.indexes.items()
            ],
            "tasks": [
                {
                    "name": name,
                    "path": self.task_paths.get(name, name),
                    "task": model.task.name,
                    "labels": list(model.labels),
                    "texts": model.task.texts_per_question,
                }
                for name, model in self.tasks.items()
            ],
        }

    def _guess_language(self) -> str | None:
        """The language of the model, or else of the first index."""
        vocab, first = self.elmo.model.vocab, next(iter(self.indexes.values()), None)
        words = vocab.words if vocab else list_words_by_frequency(first) if first else ()
        return guess_language(self.elmo.config.segment, words)

    def _read_file(self, name: str) -> str | None:
        """A text file in the model's folder, or None."""
        file = None if self.path is None else locate_model(self.path) / name
        if file is None or not file.is_file():
            return None
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MAX_CHARACTERS)

    def _read_curves(self) -> list[dict[str, float]]:
        """Validation perplexities during pretraining, if the folder has them."""
        lines = (self._read_file("metrics.jsonl") or "").splitlines()
        points = [_read_point(line) for line in lines if '"validation"' in line]
        return [point for point in points if point is not None]


def _read_point(line: str) -> dict[str, float] | None:
    """The perplexities of a validation; None if the line is damaged: they only decorate a page."""
    try:
        values = json.loads(line)
        point = {name: float(values[name]) for name in ("tokens", "forward", "backward", "mean")}
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
    return point if all(map(math.isfinite, point.values())) else None


def open_catalog(
    model: str | Path | Elmo,
    indexes_and_tasks: Sequence[str | Path | Index | TaskModel] = (),
    *,
    device: str = "cpu",
) -> Catalog:
    """Load a model, and open its indexes and task models.

    Args:
        model: The ELMo, loaded or as a path.
        indexes_and_tasks: Indexes and task models, open or as paths.
        device: Where a model given as a path computes, as in `polyseme.load`.

    Raises:
        UsageError: If an index or a task model belongs to another ELMo, or a path is neither.

    """
    elmo = ensure_loaded(model, device=device)
    source = elmo.path if isinstance(model, Elmo) else model
    path = None if source is None else Path(source)
    catalog = Catalog("model" if path is None else _get_base_name(path), path, elmo)
    for served in indexes_and_tasks:
        if isinstance(served, TaskModel):
            _check_elmo(served, elmo)
            catalog.tasks[f"task{len(catalog.tasks) + 1}"] = served
        elif isinstance(served, Index) or is_index(served):
            index = served if isinstance(served, Index) else open_index(served, elmo)
            _check_index(index, elmo, catalog.name if path is None else str(path))
            index.elmo  # noqa: B018  # before the first request
            catalog.indexes[_choose_name(_get_base_name(index.folder), catalog.indexes)] = index
        elif is_task(served):
            name = _choose_name(Path(served).name, catalog.tasks)
            catalog.tasks[name], catalog.task_paths[name] = _open_task(served, elmo), str(served)
        else:
            raise UsageError(UNKNOWN.format(served))
    elmo.embed([["."]])  # packs the weights before the first request, and before processes are forked
    return catalog


def check_paths(
    model: str | Path | Elmo, indexes_and_tasks: Sequence[str | Path | Index | TaskModel]
) -> None:
    """Raise an error for a path where there is nothing to serve, without loading anything."""
    if not isinstance(model, Elmo) and not locate_model(model).exists():
        resolve_model_path(model)  # says what is missing
    for served in indexes_and_tasks:
        if isinstance(served, str | Path) and not (is_index(served) or is_task(served)):
            raise UsageError(UNKNOWN.format(served))


def _open_task(path: str | Path, elmo: Elmo) -> TaskModel:
    """Open a task model with the served ELMo, or with its own if it was fine-tuned."""
    return load_task(path) if is_fine_tuned(path) else load_task(path, elmo)


def _check_index(index: Index, elmo: Elmo, served: str) -> None:
    """Refuse an index of another model, and say how to serve both."""
    if index.head["model"] == elmo.model.fingerprint():
        return
    model = index.head.get("name") or "ITS-MODEL"
    raise UsageError(
        f"{index.folder}: an index of another model than {served}, or of this one before it was trained "
        "further. A server has one model: start another one for this index, "
        f"`polyseme.serve({model}, {index.folder}, port=8001)`, or build the index again."
    )


def _check_elmo(task: TaskModel, elmo: Elmo) -> None:
    """Refuse a task model of another ELMo; one that fine-tuned its ELMo, or uses none, is fine."""
    task_elmo = task.source.elmo
    if task_elmo is None or task_elmo is elmo or task.settings.input.tune == "full":
        return
    if task_elmo.model.fingerprint() != elmo.model.fingerprint():
        raise UsageError("A task model was trained with another ELMo than the one to serve. Serve that ELMo.")


def _pick(items: dict[str, Item], name: str | None, noun: str, argument: str) -> Item:
    """The item of that name, or the first one; errors list the names."""
    if not items:
        raise invalid(
            f"This server has no {noun}. Start it with one: polyseme serve MODEL {argument}.",
            f"no_{argument.lower()}",
        )
    if name is None:
        return next(iter(items.values()))
    if name not in items:
        names = list(items)
        raise not_found(
            f"No such {noun}; this server has {', '.join(names)}.",
            f"{argument.lower()}_missing",
            names=names,
        )
    return items[name]


def _get_base_name(path: Path) -> str:
    """The last part of a path; of `.` the name of that folder."""
    return path.name or path.resolve().name


def _choose_name(name: str, taken: dict[str, Any]) -> str:
    """The name of a folder, with a number if it is taken."""
    return name if name not in taken else _choose_name(f"{name}-{len(taken) + 1}", taken)
