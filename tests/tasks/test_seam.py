"""The seam between tasks and the rest: nothing outside a task's folder and the table names a task."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme
from polyseme.errors import ConfigError
from polyseme.tasks.table import TASKS, find_task

SOURCE = Path(polyseme.__file__).parent
TELLING = set(TASKS) - {"pairs"}  # which is also an everyday word


def text_constants(path: Path) -> Iterator[str]:
    """All string constants of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_only_the_table_names_tasks():
    folders = [SOURCE / "tasks" / name for name in TASKS]
    naming = [
        path
        for path in SOURCE.rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in folders) and set(text_constants(path)) & TELLING
    ]
    assert naming == [SOURCE / "tasks" / "table.py"]


def test_tasks_do_not_know_each_other():
    for name in TASKS:
        others = {f"polyseme.tasks.{other}" for other in TASKS if other != name}
        for path in (SOURCE / "tasks" / name).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not [other for other in others if other in text], path


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_named_as_in_the_table_and_has_a_preset(name: str):
    task = find_task(name)
    assert task.name == name
    assert task.settings_type().task == name  # type: ignore[call-arg]
    assert (SOURCE / "presets" / "tasks" / f"{name}.toml").exists()
    assert find_task(task) is task


def test_a_misspelt_task_is_suggested():
    with pytest.raises(ConfigError, match=r"no task 'taging'\. Did you mean tagging\?"):
        find_task("taging")
