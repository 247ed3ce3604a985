"""All modules of the explorer as one script: a browser asks once instead of seventy times.

    the files of server/explorer  ->  server.http.bundle  ->  server.http.explorer_files

Contributors edit plain modules and need no build step; the server joins them when it starts. Each module
becomes a function that returns what it exports, called after those that it imports from:

    import { t } from "/explorer/i18n.js";      const module2 = (() => {
    export const LINES = 20;               ->   const { t: t } = module1;
                                                const LINES = 20;
                                                return { LINES: LINES };
                                                })();

Imports stand at the top of a module, exports at the start of a line, and no two modules import each other. A
source map leads from each line of the script to its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

PREFIX = "/explorer/"
# What may stand above the last import: comments and blank lines.
IMPORT = re.compile(
    r'(?P<before>(?:\s|//[^\n]*\n|/\*.*?\*/)*)import\s*(?P<names>[^"\']+?)\s*from\s*"(?P<source>[^"]+)";?',
    re.DOTALL,
)
EXPORTED = re.compile(r"^export (?=(?:async function|function|const|class) (?P<name>\w+))", re.MULTILINE)
# As minified libraries write them.
EXPORT_LIST = re.compile(r"\bexport\s*\{(?P<names>[^}]*)\};?")
EXPORT_DEFAULT = re.compile(r"\bexport default\b")
LEFT_OVER = re.compile(r'^(?:export\b|import\b[^"\n]*"[^"]+";)', re.MULTILINE)
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Bundle(NamedTuple):
    """A script and its source map."""

    script: str
    source_map: str


def bundle_modules(entry: str, sources: Mapping[str, str], packages: Mapping[str, str]) -> Bundle:
    """Join a module and all that it imports.

    Args:
        entry: The name of the module that runs, as in `sources`.
        sources: The text of each module by its name, such as `views/senses.js`.
        packages: The modules of bare names such as `preact`.

    Raises:
        ValueError: A module imports one that is not there or that imports it, or is not written as the
            header of this page says.

    """
    variables: dict[str, str] = {}  # of the modules, in the order in which they run
    parts: list[tuple[str, str]] = []
    numbers = count(1)

    def add(name: str, importers: tuple[str, ...]) -> str:
        """Add a module after those that it imports; return its variable."""
        if name in importers:
            raise ValueError(f"Modules import each other: {' -> '.join([*importers, name])}.")
        if name not in variables:
            if name not in sources:
                raise ValueError(
                    f"{importers[-1] if importers else 'The page'} imports {name}, which is missing."
                )
            text = _wrap(
                name, sources[name], lambda source: add(_resolve(source, packages), (*importers, name))
            )
            variables[name] = f"module{next(numbers)}"
            parts.append((name, f"const {variables[name]} = (() => {{ {text}\n}})();\n"))
        return variables[name]

    add(entry, ())
    return Bundle("".join(text for _, text in parts), _make_source_map(parts, sources))


def _resolve(source: str, packages: Mapping[str, str]) -> str:
    """The name of the module that an import means."""
    return packages.get(source, source).removeprefix(PREFIX)


def _wrap(name: str, text: str, add_import: Callable[[str], str]) -> str:
    """The body of the function of a module, line by line what the module is."""
    exports: dict[str, str] = {}

    def bind(match: re.Match[str]) -> str:
        lines = "\n" * match["names"].count("\n")
        return (
            f"{match['before']}const {_destructure(match['names'])} = {add_import(match['source'])};{lines}"
        )

    head, end = [], 0
    while (match := IMPORT.match(text, end)) is not None:
        head.append(bind(match))
        end = match.end()
    body = text[end:]
    for match in EXPORTED.finditer(body):
        exports[match["name"]] = match["name"]
    body = EXPORTED.sub("", body)
    for match in EXPORT_LIST.finditer(body):
        exports |= {outer: inner for inner, outer in _split_names(match["names"])}
    body = EXPORT_LIST.sub("", body)
    if EXPORT_DEFAULT.search(body):
        exports["default"] = "exportedDefault"
        body = EXPORT_DEFAULT.sub("const exportedDefault =", body)
    if LEFT_OVER.search(body):
        raise ValueError(
            f"{name}: imports stand at the top, and only functions, classes and constants are exported."
        )
    members = ", ".join(f"{outer}: {inner}" for outer, inner in exports.items())
    return f"{''.join(head)}{body}\nreturn {{ {members} }};"


def _destructure(names: str) -> str:
    """What an import binds, as the left side of an assignment: `{ a: b }`, or a name for the whole module."""
    if names.startswith("*"):
        return names.rpartition(" ")[2]
    if names.startswith("{"):
        pairs = [f"{outer}: {inner}" for outer, inner in _split_names(names.strip("{}"))]
        return f"{{ {', '.join(pairs)} }}"
    return f"{{ default: {names} }}"


def _split_names(names: str) -> list[tuple[str, str]]:
    """The pairs of `a as b, c`; a name alone stands for itself."""
    pairs = (item.split(" as ") for item in names.split(",") if item.strip())
    return [(pair[0].strip(), pair[-1].strip()) for pair in pairs]


def _make_source_map(parts: Sequence[tuple[str, str]], sources: Mapping[str, str]) -> str:
    """The source map of modules that stand one after the other, line by line."""
    lines: list[str] = []
    last_source, last_line = 0, 0
    for number, (name, text) in enumerate(parts):
        known = sources[name].count("\n")
        for line in range(text.count("\n")):
            shown = min(line, known)  # the lines that close the function have none of their own
            lines.append(f"A{_encode(number - last_source)}{_encode(shown - last_line)}A")
            last_source, last_line = number, shown
    names = [PREFIX + name for name, _ in parts]
    return json.dumps({"version": 3, "sources": names, "names": [], "mappings": ";".join(lines)})


def _encode(number: int) -> str:
    """A number of a source map: five bits per letter, the lowest first, the sign in the lowest of all."""
    rest, letters = abs(number) << 1 | (number < 0), ""
    while rest > 31:
        letters += BASE64[rest & 31 | 32]
        rest >>= 5
    return letters + BASE64[rest]
