"""All models of a server: which index and task model belongs to which, and which one a request means.

    paths or open objects  ->  server.served_models  ->  server.catalog, server.state

An index and a task model name their ELMo by its fingerprint, so that they may be given in any order. Their
names are unique in a server: a request that names one needs no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from polyseme import api
from polyseme.books.cast import Cast
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import UsageError
from polyseme.formats.models.open import locate_model, resolve_model_path
from polyseme.search.change_search import ComputedChanges
from polyseme.search.index import Index, is_index, open_index
from polyseme.search.senses import Senses
from polyseme.search.usage_store import read_head
from polyseme.server.catalog import Catalog, missing
from polyseme.server.change_memo import ChangeMemo
from polyseme.server.http.limits import invalid
from polyseme.server.result_cache import ResultCache
from polyseme.tasks.task_folder import is_fine_tuned, is_task, read_task_file
from polyseme.tasks.task_model import TaskModel, load_task

Served = str | Path | Elmo | Index | TaskModel
UNKNOWN = "{}: neither a model, an index nor a task model. Check the path."
MAX_SENSES, MAX_PAIRS, MAX_CASTS = 64, 4, 8  # results that are kept: words, pairs of indexes, indexes
INDEX, TASK = "index", "task model"
FIELDS = {"index": INDEX, "first": INDEX, "second": INDEX, "task": TASK}  # of requests, that name something


class ServedModels:
    """The models of a server, and what was computed from them.

    Attributes:
        catalogs: A model with its indexes and task models, by the name of the model; the first is the one of
            requests that name none.
        senses: Senses of words: a map, lines sorted by sense, collocates and a timeline share them.
        changes: Changes of words between two indexes.
        casts: Persons of indexes.

    """

    def __init__(self, catalogs: Iterable[Catalog]) -> None:
        self.catalogs = {catalog.name: catalog for catalog in catalogs}
        self.senses = ResultCache[Senses](MAX_SENSES)
        self.changes = ResultCache[ChangeMemo](MAX_PAIRS)
        self.casts = ResultCache[Cast](MAX_CASTS)
        for catalog in self.catalogs.values():
            catalog.elsewhere = {noun: self._list_models_with(noun) for noun in (INDEX, TASK)}

    @property
    def first(self) -> Catalog:
        """The model of requests that name none."""
        return next(iter(self.catalogs.values()))

    def get(self, name: str) -> Catalog:
        """The model of that name; an HttpError if there is none."""
        if name not in self.catalogs:
            raise missing("model", list(self.catalogs))
        return self.catalogs[name]

    def choose(self, request: Any) -> Catalog:
        """The model that a request means: that of its `model`, index or task model; else the first one.

        Raises:
            HttpError: If there is no such model, index or task model, or they do not belong together.

        """
        model = getattr(request, "model", None)
        chosen = None if model is None else self.get(model)
        for field, noun in FIELDS.items():
            name = getattr(request, field, None)
            if name is None:
                continue
            owner = self._find_owner(noun, name)
            if owner is None:
                continue  # there is none of its kind: the route says how to start a server with one
            if chosen is not None and owner is not chosen:
                raise invalid(
                    f"{field} is of the model {owner.name}, and not of {chosen.name}.",
                    "models_differ",
                    names=[owner.name, chosen.name],
                )
            chosen = owner
        return chosen or self.first

    def find_senses(
        self,
        index: Index,
        word: str,
        *,
        max_senses: int = 6,
        groups: bool = False,
        seed: int = 0,
        by: str | None = None,
    ) -> Senses:
        """Return what `api.senses` returns for these arguments, computed if it is not known."""
        find = partial(api.senses, index, word, max_senses=max_senses, groups=groups, seed=seed, by=by)
        return self.senses.find((index,), (word, max_senses, groups, seed, by), find)

    def get_changes(self, first: Index, second: Index, seed: int = 0) -> ChangeMemo:
        """Return what is known of the changes between two indexes."""
        return self.changes.find(
            (first, second), seed, lambda: ChangeMemo(ComputedChanges(first, second, seed))
        )

    def _find_owner(self, noun: str, name: str) -> Catalog | None:
        """The model of an index or a task model; None if the server has no index or task model at all."""
        owners = {item: model for model in self.catalogs.values() for item in _list_items(model, noun)}
        if owners and name not in owners:
            raise missing(noun, list(owners))
        return owners.get(name)

    def _list_models_with(self, noun: str) -> list[str]:
        return [name for name, catalog in self.catalogs.items() if _list_items(catalog, noun)]


def _list_items(catalog: Catalog, noun: str) -> Mapping[str, Index | TaskModel]:
    return catalog.indexes if noun == INDEX else catalog.tasks


class Parts(NamedTuple):
    """What a server was started with, sorted."""

    models: list[str | Path | Elmo]
    indexes: list[str | Path | Index]
    tasks: list[str | Path | TaskModel]


def sort_parts(model: str | Path | Elmo, served: Sequence[Served]) -> Parts:
    """Tell models, indexes and task models apart, without loading anything.

    Raises:
        UsageError: If there is nothing to serve at a path.
        FormatError: If there is no model at the first path.

    """
    if not isinstance(model, Elmo) and not locate_model(model).exists():
        resolve_model_path(model)  # says what is missing
    parts = Parts([model], [], [])
    for item in served:
        if isinstance(item, Index) or (not isinstance(item, Elmo | TaskModel) and is_index(item)):
            parts.indexes.append(item)
        elif isinstance(item, TaskModel) or (not isinstance(item, Elmo) and is_task(item)):
            parts.tasks.append(item)
        elif isinstance(item, Elmo) or locate_model(item).exists():
            parts.models.append(item)
        else:
            raise UsageError(UNKNOWN.format(item))
    return parts


def open_models(
    model: str | Path | Elmo, served: Sequence[Served] = (), *, device: str = "cpu"
) -> ServedModels:
    """Load models, and open their indexes and task models.

    Args:
        model: An ELMo, loaded or as a path: the one of requests that name no model.
        served: More models, and indexes and task models of any of them, open or as paths.
        device: Where models given as paths compute, as in `polyseme.load`.

    Raises:
        UsageError: If an index or a task model belongs to none of the models, or a path is none of these.

    """
    parts = sort_parts(model, served)
    catalogs: dict[str, Catalog] = {}
    for source in parts.models:
        elmo = ensure_loaded(source, device=device)
        path = elmo.path if isinstance(source, Elmo) else source
        name = _choose_name("model" if path is None else _get_base_name(Path(path)), catalogs)
        catalogs[name] = Catalog(name, None if path is None else Path(path), elmo)
    models = list(catalogs.values())
    names = dict[str, None]()  # of indexes, then of task models
    for index_source in parts.indexes:
        index, owner = _open_index(index_source, models)
        name = _choose_name(_get_base_name(index.folder), names)
        owner.indexes[name], names[name] = index, None
    names = {}
    for task_source in parts.tasks:
        is_open = isinstance(task_source, TaskModel)
        task, owner = _open_task(task_source, models)
        name = f"task{len(names) + 1}" if is_open else Path(task_source).name  # type: ignore[arg-type]
        name = _choose_name(name, names)
        owner.tasks[name], names[name] = task, None
        if not is_open:
            owner.task_paths[name] = str(task_source)
    for catalog in models:
        catalog.elmo.embed([["."]])  # packs the weights before the first request, and before processes fork
    return ServedModels(models)


def _open_index(source: str | Path | Index, models: Sequence[Catalog]) -> tuple[Index, Catalog]:
    """Open an index with the model that it was built with."""
    head = source.head if isinstance(source, Index) else read_head(Path(source).expanduser())
    owner = _find_model(head["model"], models)
    if owner is None:
        folder = source.folder if isinstance(source, Index) else source
        served = [_describe(catalog) for catalog in models]
        advice = ", ".join([*served, head.get("name") or "ITS-MODEL", str(folder)])
        raise UsageError(
            f"{folder}: an index of another model than {' and '.join(served)}, or of this one before it was "
            f"trained further. Serve both: `polyseme.serve({advice})`; or build the index again."
        )
    index = source if isinstance(source, Index) else open_index(source, owner.elmo)
    index.elmo  # noqa: B018  # before the first request
    return index, owner


def _open_task(source: str | Path | TaskModel, models: Sequence[Catalog]) -> tuple[TaskModel, Catalog]:
    """Open a task model with the served ELMo; one that fine-tuned its ELMo, or uses none, has the first."""
    first = models[0]
    if isinstance(source, TaskModel):
        elmo = source.source.elmo
        if elmo is None or source.settings.input.tune == "full":
            return source, first
        owner = _find_model(elmo.model.fingerprint(), models)
        if owner is None:
            raise UsageError(
                "A task model was trained with another ELMo than the one to serve. Serve that ELMo, too."
            )
        return source, owner
    if is_fine_tuned(source):
        return load_task(source), first
    saved = read_task_file(Path(source).expanduser())["elmo"]
    owner = first if saved is None else _find_model(saved.get("fingerprint"), models)
    if owner is None:
        served = ", ".join(map(_describe, models))
        raise UsageError(
            f"{source}: a task model of another ELMo than {served}. Serve both: "
            f"`polyseme.serve({served}, {saved.get('name') or saved.get('path') or 'ITS-MODEL'}, {source})`."
        )
    return load_task(source, owner.elmo), owner


def _find_model(fingerprint: Any, models: Sequence[Catalog]) -> Catalog | None:
    return next((model for model in models if model.elmo.model.fingerprint() == fingerprint), None)


def _describe(catalog: Catalog) -> str:
    """A model as the user named it."""
    return catalog.name if catalog.path is None else str(catalog.path)


def _get_base_name(path: Path) -> str:
    """The last part of a path; of `.` the name of that folder."""
    return path.name or path.resolve().name


def _choose_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name of a folder, with a number if it is taken."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
