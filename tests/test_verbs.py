"""One function per verb: Python and the command line have the same names, arguments and defaults."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme import api, cli
from polyseme.search.index import Index
from polyseme.server.http.limits import Limits
from polyseme.tasks.task_model import TaskModel

COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command for commands in cli.COMMANDS.values() for command in commands
}
# Arguments that only Python or only the command line has, with the reason.
ONLY_PYTHON = {
    "progress",  # a program always shows it
    "on_metrics",  # a callback
    "counts",  # a mapping
    "position",  # of a list of tokens
    "computed",  # an object that goes from call to call
    "started",  # a callback
    "limits",  # a command has an option for each
    "key",  # a command reads it from --api-key-file: arguments are visible to other users
}
ONLY_CLI = {
    "as_json": "printing",
    "tokens of score": "printing",
    "predictions of disambiguate": "printing",
    "dry_run of train": "api.count_examples",
    "nbest of score": "api.rerank",
    "api_key_file of serve": "key",
}


def normalise(value: Any) -> Any:
    """A default as both can write it: an empty option that can be repeated is None."""
    return None if value is inspect.Parameter.empty or value in ((), []) else value


def read_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name: normalise(parameter.default) for parameter in parameters}


def expected_arguments(verb: str) -> dict[str, Any]:
    arguments = read_arguments(getattr(polyseme, verb))
    if verb == "score":
        arguments = read_arguments(api.rerank) | arguments
    if verb == "serve":
        arguments |= {field.name: field.default for field in fields(Limits)}
    return {name: value for name, value in arguments.items() if name not in ONLY_PYTHON}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_verb_has_the_same_arguments_and_defaults_in_python_and_on_the_command_line(verb: str):
    options = {
        name: value
        for name, value in read_arguments(COMMANDS[verb]).items()
        if name not in ONLY_CLI and f"{name} of {verb}" not in ONLY_CLI
    }
    assert options == expected_arguments(verb)


def test_every_verb_is_public_and_a_command():
    verbs = (
        "pretrain book characters embed train predict summarise evaluate score substitutes generate index "
        "nearest concordance collocates passage senses timeline disambiguate change similarity map_usages "
        "cache convert export sample info doctor serve"
    )
    assert set(verbs.split()) == set(COMMANDS)
    assert all(getattr(polyseme, verb).__doc__ for verb in COMMANDS)
    assert all(getattr(polyseme, verb) is getattr(api, verb) for verb in COMMANDS if verb != "serve")


PUBLIC_FUNCTIONS = [name for name in polyseme.__all__ if inspect.isfunction(getattr(polyseme, name))]
PUBLIC_CLASSES = (
    *(polyseme.Elmo, polyseme.ElmoLayer, polyseme.Mix, polyseme.StaticVectors, polyseme.Vectors),
    *(polyseme.WordVectors, Index, TaskModel),
)
PUBLIC_METHODS = {
    f"{kind.__name__}.{name}": method
    for kind in PUBLIC_CLASSES
    for name, method in vars(kind).items()
    if not name.startswith("_") and inspect.isfunction(method)
}


@pytest.mark.parametrize("name", [*PUBLIC_FUNCTIONS, *PUBLIC_METHODS])
def test_public_functions_document_what_goes_in_and_what_comes_out(name: str):
    function = PUBLIC_METHODS.get(name) or getattr(polyseme, name)
    text = inspect.getdoc(function)
    assert text is not None
    signature = inspect.signature(function)
    names = [argument for argument in signature.parameters if argument != "self"]
    assert not names or "Args:" in text
    assert [argument for argument in names if f"\n    {argument}: " not in text] == []
    returns_nothing = signature.return_annotation in (None, "None")
    assert returns_nothing or "Returns:" in text or "Yields:" in text
    assert "Example:" in text or name in PUBLIC_METHODS


# Text with two dashes that is not about our options: commands of pip, npm and torchrun, and CSS variables.
OTHER_FLAGS = {"text/samples.py", "formats/models/bundled.py", "training/devices.py", "training/report.py"}


def test_errors_of_the_library_name_no_flags():
    source = Path(polyseme.__file__).parent
    flag = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    flags = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if name.startswith("cli/") or name in OTHER_FLAGS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                flags += [f"{name}:{node.lineno}: {match}" for match in flag.findall(node.value)]
    assert not flags, "\n".join(flags)
