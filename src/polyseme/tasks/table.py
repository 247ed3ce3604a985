"""The table of tasks: the only module outside their folders that names them.

    the folders of the tasks  ->  tasks.table  ->  tasks.experiment, tasks.task_folder, cli

A task is imported when it is used, so that the command line can list the names without loading torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.tasks.protocol import AnyTask


def _classification() -> type[AnyTask]:
    from polyseme.tasks.classification.task import Classification

    return Classification


def _tagging() -> type[AnyTask]:
    from polyseme.tasks.tagging.task import Tagging

    return Tagging


def _pairs() -> type[AnyTask]:
    from polyseme.tasks.pairs.task import Pairs

    return Pairs


def _relations() -> type[AnyTask]:
    from polyseme.tasks.relations.task import Relations

    return Relations


def _roles() -> type[AnyTask]:
    from polyseme.tasks.roles.task import Roles

    return Roles


def _coref() -> type[AnyTask]:
    from polyseme.tasks.coref.task import Coref

    return Coref


def _answers() -> type[AnyTask]:
    from polyseme.tasks.answers.task import Answers

    return Answers


def _translate() -> type[AnyTask]:
    from polyseme.tasks.translate.task import Translate

    return Translate


def _summarise() -> type[AnyTask]:
    from polyseme.tasks.summarise.task import Summarise

    return Summarise


TASKS: Mapping[str, Callable[[], type[AnyTask]]] = {
    "classification": _classification,
    "tagging": _tagging,
    "pairs": _pairs,
    "relations": _relations,
    "roles": _roles,
    "coref": _coref,
    "answers": _answers,
    "translate": _translate,
    "summarise": _summarise,
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
