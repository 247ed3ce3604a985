"""Reference pages from the code: the public names of polyseme, and the commands with their options.

    polyseme, polyseme.cli  ->  docs/site/reference  ->  docs/site/build

Docstrings are in Google style: a summary, then Args, Returns, Raises, Attributes and Example.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

import polyseme
from polyseme import cli

SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Example):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}[\w.]+): ", re.MULTILINE)
LINE_LENGTH = 88


def write_api_page() -> str:
    """Markdown of every public name: functions, classes with their methods, exceptions."""
    values = {name: getattr(polyseme, name) for name in polyseme.__all__}
    errors = [
        name for name, value in values.items() if inspect.isclass(value) and issubclass(value, Exception)
    ]
    functions = [name for name, value in values.items() if inspect.isfunction(value)]
    classes = [name for name in values if name not in {*errors, *functions}]
    lines = [
        "# Python API",
        "",
        "Everything here is imported from `polyseme`. `import polyseme` loads no torch.",
        "",
    ]
    for title, names in (("Functions", functions), ("Classes", classes), ("Exceptions", errors)):
        lines += [f"## {title}", ""]
        for name in names:
            lines += _describe(name, values[name], level=3)
    return "\n".join(lines) + "\n"


def _describe(name: str, value: Any, *, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{name}`"
    yield ""
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        yield from ("```python", _write_signature(name, value), "```", "")
    yield from _format_docstring(inspect.getdoc(value) or "")
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    for member, method in vars(value).items():
        if member.startswith("_") or not inspect.getdoc(method):
            continue
        if inspect.isfunction(method):
            yield from _describe(f"{name}.{member}", method, level=4)
        elif isinstance(method, property):
            yield from (f"#### `{name}.{member}`", "", *_format_docstring(inspect.getdoc(method) or ""))


def _write_signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:  # a class in C, or without a signature
        return name
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    written: list[str] = []
    for before, parameter in zip([None, *parameters], parameters, strict=False):
        keyword = inspect.Parameter.KEYWORD_ONLY
        if parameter.kind is keyword and (
            before is None or before.kind not in (keyword, inspect.Parameter.VAR_POSITIONAL)
        ):
            written.append("*")
        written.append(str(parameter).replace("'", ""))
    returned = signature.return_annotation
    arrow = "" if returned is inspect.Signature.empty or inspect.isclass(value) else f" -> {returned}"
    line = f"{name}({', '.join(written)}){arrow}"
    if len(line) <= LINE_LENGTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in written) + f"){arrow}"


def _format_docstring(text: str) -> Iterator[str]:
    """Markdown of a docstring: its sections as lists, its example as code."""
    summary, *parts = SECTION.split(text)
    yield from (escape(summary.strip()), "")
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        body = body.strip("\n")
        if title == "Example":
            language = "pycon" if ">>>" in body else "python"
            yield from (f"```{language}", inspect.cleandoc(body), "```", "")
            continue
        yield from (f"**{title}**", "")
        first, *entries = ENTRY.split(body)
        if title in ("Returns", "Yields") or not entries:
            yield from (escape(inspect.cleandoc(body)), "")
            continue
        if first.strip():
            yield from (escape(inspect.cleandoc(first)), "")
        for name, described in zip(entries[::2], entries[1::2], strict=True):
            yield f"- `{name}`: {escape(' '.join(described.split()))}"
        yield ""


def escape(text: str) -> str:
    """Escape what Markdown would read as markup, outside of `code`."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([*_\[\]<>$])", r"\\\1", piece) for piece in pieces
    )


def write_commands_page() -> str:
    """Markdown of what `--help` says, for every command."""
    program: Any = typer.main.get_command(cli.make_app())
    lines = [
        *(
            "# Commands",
            "",
            "What `polyseme --help` and `polyseme COMMAND --help` say. Every command is also a",
        ),
        *("[Python function](api.md) with the same arguments.", ""),
    ]
    for panel, functions in cli.COMMANDS.items():
        lines += [f"## {panel}", ""]
        for function in functions:
            name = cli.NAMES.get(function.__name__, function.__name__)
            lines += _describe_command(name, program.commands[name])
    return "\n".join(lines) + "\n"


def _describe_command(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(f"polyseme {name}", [], resilient_parsing=True)
    usage = re.sub(r"[{}]", "", " ".join(command.collect_usage_pieces(context)))
    yield from (f"### `{name}`", "", "```text", f"polyseme {name} {usage}", "```", "")
    yield from (escape(inspect.cleandoc(command.help or "")), "")
    for parameter in command.params:
        if parameter.name == "help":
            continue
        record = parameter.get_help_record(context)
        if record is not None:
            label, described = record
            label = re.sub(r"<list\[(.*)\]>", r"<\1>", label.strip()).replace(" range>", ">")
            yield f"- `{label}`: {escape(' '.join(described.split()))}"
    yield ""
