"""The table of tasks: the only place outside their folders that names them.

classification, tagging, pairs, relations  ->  tasks.table  ->  tasks.experiment, tasks.task_folder
"""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.config import suggest
from polyseme.errors import ConfigError
from polyseme.tasks.classification.task import Classification
from polyseme.tasks.pairs.task import Pairs
from polyseme.tasks.protocol import AnyTask
from polyseme.tasks.relations.task import Relations
from polyseme.tasks.tagging.task import Tagging

TASKS: Mapping[str, type[AnyTask]] = {
    "classification": Classification,
    "tagging": Tagging,
    "pairs": Pairs,
    "relations": Relations,
}


def find_task(task: str | type[AnyTask]) -> type[AnyTask]:
    """The class of a task, by its name; a class that follows `protocol.Task` is returned as it is."""
    if not isinstance(task, str):
        return task
    if task not in TASKS:
        known = sorted(TASKS)
        raise ConfigError(f"There is no task {task!r}.{suggest(task, known)} Choose {', '.join(known)}.")
    return TASKS[task]
