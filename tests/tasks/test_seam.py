"""Nothing outside the folder of a task and the table of tasks mentions a task by name or imports it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme
from polyseme.errors import ConfigError
from polyseme.tasks.table import TASKS, find_task

SOURCE = Path(polyseme.__file__).parent
TASK_NAMES = set(TASKS) - {"pairs"}  # which is also a common word


def text_constants(path: Path) -> Iterator[str]:
    """Yield the string constants of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_only_the_table_mentions_tasks_by_name():
    folders = [SOURCE / "tasks" / name for name in TASKS]
    modules = [
        path
        for path in SOURCE.rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in folders)
        and set(text_constants(path)) & TASK_NAMES
    ]
    others = {
        SOURCE / "tasks" / "data" / "questions.py",  # SQuAD's fields include "answers"
        SOURCE / "__init__.py",  # the verb `summarise`
        SOURCE / "api" / "__init__.py",
        # a component or an estimator of another library stands for one kind of task
        SOURCE / "integrations" / "sklearn.py",
        SOURCE / "integrations" / "spacy" / "task_component.py",
    }
    assert [path for path in modules if path not in others] == [SOURCE / "tasks" / "table.py"]


def test_the_code_of_the_explorer_mentions_no_task():
    pattern = re.compile(rf"""["'`]({"|".join(TASK_NAMES)})["'`]""")
    explorer = SOURCE / "server" / "explorer"
    modules = [path for path in explorer.rglob("*.js") if not path.is_relative_to(explorer / "vendor")]
    assert modules
    assert [path for path in modules if pattern.search(path.read_text(encoding="utf-8"))] == []


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the full names of what a module imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_only_the_table_and_the_probes_import_tasks():
    importing = set()
    for path in SOURCE.rglob("*.py"):
        imported = {
            name for module in imported_modules(path) for name in TASKS if f".tasks.{name}." in module
        }
        parts = path.relative_to(SOURCE).parts[:2]
        if imported - {parts[1] if parts[0] == "tasks" else ""}:
            importing.add("/".join(parts))
    assert importing == {"tasks/table.py", "tasks/probes"}


def test_tasks_do_not_import_each_other():
    for name in TASKS:
        others = {f"polyseme.tasks.{other}" for other in TASKS if other != name}
        for path in (SOURCE / "tasks" / name).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not [other for other in others if other in text], path


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_the_name_of_its_table_row_and_a_preset(name: str):
    task = find_task(name)
    assert task.name == name
    assert task.settings_type().task == name  # type: ignore[call-arg]
    assert (SOURCE / "presets" / "tasks" / f"{name}.toml").exists()
    assert find_task(task) is task


def test_a_misspelt_task_gets_a_suggestion():
    with pytest.raises(ConfigError, match=r"no task 'taging'\. Did you mean tagging\?"):
        find_task("taging")
