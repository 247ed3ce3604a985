"""The table of tasks: the only module outside their folders that names them.

    the folders of the tasks  ->  tasks.table  ->  tasks.experiment, tasks.task_folder, cli

A task is imported when it is used, so that the command line can list the names without loading torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.tasks.protocol import AnyTask


def _import_classification() -> type[AnyTask]:
    from polyseme.tasks.classification.task import Classification

    return Classification


def _import_tagging() -> type[AnyTask]:
    from polyseme.tasks.tagging.task import Tagging

    return Tagging


def _import_pairs() -> type[AnyTask]:
    from polyseme.tasks.pairs.task import Pairs

    return Pairs


def _import_relations() -> type[AnyTask]:
    from polyseme.tasks.relations.task import Relations

    return Relations


def _import_roles() -> type[AnyTask]:
    from polyseme.tasks.roles.task import Roles

    return Roles


def _import_coref() -> type[AnyTask]:
    from polyseme.tasks.coref.task import Coref

    return Coref


def _import_answers() -> type[AnyTask]:
    from polyseme.tasks.answers.task import Answers

    return Answers


def _import_translate() -> type[AnyTask]:
    from polyseme.tasks.translate.task import Translate

    return Translate


def _import_summarise() -> type[AnyTask]:
    from polyseme.tasks.summarise.task import Summarise

    return Summarise


TASKS: Mapping[str, Callable[[], type[AnyTask]]] = {
    "classification": _import_classification,
    "tagging": _import_tagging,
    "pairs": _import_pairs,
    "relations": _import_relations,
    "roles": _import_roles,
    "coref": _import_coref,
    "answers": _import_answers,
    "translate": _import_translate,
    "summarise": _import_summarise,
}


def find_task(task: str | type[AnyTask]) -> type[AnyTask]:
    """The class of a task, by its name; a class that follows `protocol.Task` is returned as it is.

    Raises:
        ConfigError: If there is no such task.

    """
    from polyseme.config import suggest
    from polyseme.errors import ConfigError

    if not isinstance(task, str):
        return task
    if task not in TASKS:
        known = sorted(TASKS)
        raise ConfigError(f"There is no task {task!r}.{suggest(task, known)} Choose {', '.join(known)}.")
    return TASKS[task]()
