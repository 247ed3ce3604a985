"""One model of a server with its indexes and task models, and what /info says about them.

search.index, tasks.task_model  ->  server.catalog  ->  server.served_models, server.verbs, server.openai
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from polyseme.elmo import Elmo
from polyseme.errors import PolysemeError
from polyseme.formats.models.card import describe, drop_front_matter
from polyseme.formats.models.open import locate_model
from polyseme.search.index import Index
from polyseme.server.http.limits import HttpError, invalid
from polyseme.server.suggestions import guess_language, list_words_by_frequency, suggest_examples
from polyseme.server.usage_layers import UsageLayers
from polyseme.tasks.task_model import TaskModel
from polyseme.word_vectors import WordVectors, open_words

Item = TypeVar("Item")
MAX_DOCUMENTS = 1000  # names in /info
MAX_CHARACTERS = 1 << 22  # of a file in the model's folder


@dataclass(eq=False)
class Catalog:
    """A model, and its indexes and task models by name.

    Attributes:
        name: The name of the model.
        path: Its path; None if it was not loaded from one.
        elmo: The model.
        indexes: Its indexes.
        tasks: Its task models.
        task_paths: The paths of task models that were opened by path.
        elsewhere: For "index" and "task model", the other models of the server that have one.

    """

    name: str
    path: Path | None
    elmo: Elmo
    indexes: dict[str, Index] = field(default_factory=dict)
    tasks: dict[str, TaskModel] = field(default_factory=dict)
    task_paths: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, list[str]] = field(default_factory=dict)
    _usage_layers: dict[str, UsageLayers] = field(default_factory=dict, init=False)

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
        return self._pick(self.indexes, name, "index")

    def task(self, name: str | None) -> TaskModel:
        """The task model of that name, or the first one."""
        return self._pick(self.tasks, name, "task model")

    def usage_layers(self, index: Index) -> UsageLayers:
        """All layers of the usages of one of its indexes."""
        name = next(name for name, served in self.indexes.items() if served is index)
        return self._usage_layers.setdefault(name, UsageLayers(self.elmo, index))

    def _pick(self, items: dict[str, Item], name: str | None, noun: str) -> Item:
        """The item of that name, or the first one; errors list the names."""
        kind = noun.partition(" ")[0]
        if not items:
            models = self.elsewhere.get(noun)
            advice = (
                f"The model has no {noun} here. Set model to one that has: {', '.join(models)}."
                if models
                else f"This server has no {noun}. Start it with one: polyseme serve MODEL {kind.upper()}."
            )
            raise invalid(advice, f"no_{kind}")
        if name is None:
            return next(iter(items.values()))
        if name not in items:
            raise missing(noun, list(items))
        return items[name]

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


def missing(noun: str, names: list[str]) -> HttpError:
    """404: there is no index, task model or model of that name; these are there."""
    kind = noun.partition(" ")[0]
    message, values = f"No such {noun}; this server has {', '.join(names)}.", {"names": names}
    return HttpError(404, "not_found", message, code=f"{kind}_missing", values=values, param=kind)
