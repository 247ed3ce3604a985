"""What is served: one model, any number of indexes and task models; and what /info says of them.

paths of a command line  ->  server.catalog  ->  server.verbs, server.openai
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from polyseme.elmo import Elmo, load
from polyseme.errors import PolysemeError, UsageError
from polyseme.formats.models.card import describe
from polyseme.formats.models.open import locate_model
from polyseme.search.index import Index, is_index, open_index
from polyseme.server.http.limits import missing, wrong
from polyseme.server.suggestions import by_frequency, examples_of, language_of
from polyseme.tasks.task_folder import is_fine_tuned, is_task
from polyseme.tasks.task_model import TaskModel, load_task
from polyseme.word_vectors import WordVectors, open_words

Thing = TypeVar("Thing")
DOCUMENTS = 1000  # names of documents that /info tells


@dataclass(eq=False)
class Catalog:
    """The model and what belongs to it, by name."""

    name: str
    path: Path | None
    elmo: Elmo
    indexes: dict[str, Index] = field(default_factory=dict)
    tasks: dict[str, TaskModel] = field(default_factory=dict)

    @cached_property
    def words(self) -> WordVectors | None:
        """The model's own vectors of frequent words, if it has them."""
        if self.path is None:
            return None
        try:
            return open_words(self.path)
        except PolysemeError:
            return None  # an ELMo of others has none

    def index(self, name: str | None) -> Index:
        """The index of that name, or the first one."""
        return _chosen(self.indexes, name, "index", "INDEX")

    def task(self, name: str | None) -> TaskModel:
        """The task model of that name, or the first one."""
        return _chosen(self.tasks, name, "task model", "TASK")

    @cached_property
    def info(self) -> dict[str, Any]:
        """What /info says, without the limits."""
        config = self.elmo.config
        return {
            "version": version("polyseme"),
            "model": {
                "name": self.name,
                "path": self.name if self.path is None else str(self.path),
                "layers": config.layers,
                "size": config.size,
                "segment": config.segment,
                "language": self._language(),
                "vocabulary": len(self.elmo.model.vocab) if self.elmo.model.vocab else None,
                "has_softmax": self.elmo.model.softmax is not None,
                "facts": [list(row) for row in describe(self.elmo.model).items()],
                "card": self._beside("README.md"),
                "curves": self._curves(),
            },
            "indexes": [
                {
                    "name": name,
                    "path": str(index.folder),  # as it was given, for lines to copy
                    "usages": len(index),
                    "words": len(index.words),
                    "layer": index.head["layer"],
                    "view": index.head["view"],
                    "documents": [Path(file).name for file in index.head["documents"][:DOCUMENTS]],
                    "examples": examples_of(index),
                }
                for name, index in self.indexes.items()
            ],
            "tasks": [
                {"name": name, "task": model.task.name, "labels": list(model.labels)}
                for name, model in self.tasks.items()
            ],
        }

    def _language(self) -> str | None:
        """Of the model, or else of the first index."""
        vocab, first = self.elmo.model.vocab, next(iter(self.indexes.values()), None)
        words = vocab.words if vocab else by_frequency(first) if first else ()
        return language_of(self.elmo.config.segment, words)

    def _beside(self, name: str) -> str | None:
        """A text file of the model's folder."""
        file = None if self.path is None else locate_model(self.path) / name
        return file.read_text(encoding="utf-8") if file is not None and file.is_file() else None

    def _curves(self) -> list[dict[str, float]]:
        """Held-out perplexity in the course of training, where the folder remembers it."""
        lines = (self._beside("metrics.jsonl") or "").splitlines()
        points = [json.loads(line) for line in lines if '"validation"' in line]
        names = ("tokens", "forward", "backward", "mean")
        return [{name: point[name] for name in names} for point in points if set(names) <= set(point)]


def open_all(model: str | Path | Elmo, others: Sequence[str | Path | Index | TaskModel] = ()) -> Catalog:
    """Load a model, and open indexes and task folders; those of another model are refused."""
    elmo = model if isinstance(model, Elmo) else load(model)
    path = None if isinstance(model, Elmo) else Path(model)
    served = Catalog("model" if path is None else _short(path), path, elmo)
    for other in others:
        if isinstance(other, TaskModel):
            served.tasks[f"task{len(served.tasks) + 1}"] = _of_model(other, elmo)
        elif isinstance(other, Index) or is_index(other):
            index = other if isinstance(other, Index) else open_index(other, elmo)
            index.elmo  # noqa: B018  # compares the model's fingerprint
            served.indexes[_new(_short(index.folder), served.indexes)] = index
        elif is_task(other):
            served.tasks[_new(Path(other).name, served.tasks)] = _open_task(other, elmo)
        else:
            raise UsageError(f"{other}: neither an index nor a task folder.")
    elmo.embed([["."]])  # lays the weights out: before a request, and before processes are forked
    return served


def _open_task(path: str | Path, elmo: Elmo) -> TaskModel:
    """The task of a folder, over the served ELMo; one that fine-tuned its ELMo has its own."""
    return load_task(path) if is_fine_tuned(path) else load_task(path, elmo)


def _of_model(task: TaskModel, elmo: Elmo) -> TaskModel:
    """A task that was given as it is, if its ELMo is the served one, a fine-tuned one of its own, or none."""
    own = task.source.elmo
    if (
        own is None
        or own is elmo
        or task.settings.input.tune == "full"
        or own.model.fingerprint() == elmo.model.fingerprint()
    ):
        return task
    raise UsageError("A task model has another ELMo than the one that is served. Serve that one.")


def _chosen(found: dict[str, Thing], name: str | None, what: str, argument: str) -> Thing:
    """What has that name, or the first one; refusals say what there is."""
    if not found:
        raise wrong(
            f"No {what} is served here. Start the server with one: polyseme serve MODEL {argument}.",
            f"no_{argument.lower()}",
        )
    if name is None:
        return next(iter(found.values()))
    if name not in found:
        names = list(found)
        raise missing(
            f"There is no such {what}; there is {', '.join(names)}.",
            f"{argument.lower()}_missing",
            names=names,
        )
    return found[name]


def _short(path: Path) -> str:
    """The last part of a path; of `.` the name of that folder."""
    return path.name or path.resolve().name


def _new(name: str, taken: dict[str, Any]) -> str:
    """The name of a folder, with a number behind it where it is taken."""
    return name if name not in taken else _new(f"{name}-{len(taken) + 1}", taken)
