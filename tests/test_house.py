"""The rules of the house that a program can check: floors, sizes, lazy import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "polyseme"
TESTS = Path(__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# A floor uses its own rooms and the floors above it, never one below.
FLOORS = (
    ("errors",),
    ("writing", "pictures", "bar"),
    ("config",),
    ("text",),
    ("model",),
    ("formats",),
    ("cache",),
    ("embedder",),
    ("layer", "language", "words", "bulk"),
    ("training",),
    ("tasks", "search"),
    ("integrations",),
    ("server",),
    ("api", "progress"),
    ("cli", "__main__"),
)
HEIGHT = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """The rooms of ours that a module imports, wherever in the file it does so."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "polyseme":
            parts = node.module.split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            rooms |= {name for name in names if name in HEIGHT}
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("polyseme.")}
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_flow_up_the_page_only(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert room in HEIGHT, f"{room} stands on no floor: add it to FLOORS and to the map of the README"
    below = {used for used in imports_of(path) if HEIGHT[used] > HEIGHT[room]}
    assert not below, f"{room} uses {below}, which stand below it"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_has_at_most_400_lines_and_a_function_40(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            first = node.body[0].end_lineno or node.lineno if ast.get_docstring(node) else node.lineno
            assert node.end_lineno - first <= 40, f"{node.name} is {node.end_lineno - first} lines long"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_opens_with_what_it_does(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_no_room_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "common", "base", "helpers", "misc"}
    assert not {path.stem for path in MODULES} & drawers


def test_the_model_knows_no_files_and_no_config() -> None:
    for path in (SOURCE / "model").rglob("*.py"):
        names = {
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        }
        assert not names & {"pathlib", "io", "json", "h5py", "polyseme.config"}, path


def test_importing_polyseme_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, polyseme; polyseme.PolysemeError; print({'torch', 'numpy'} & set(sys.modules))"
    assert run(code) == "set()"


def test_the_command_line_starts_without_torch() -> None:
    code = "import sys, polyseme.cli; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    assert run(code) == "set()"


def test_every_public_name_is_there() -> None:
    import polyseme

    assert dir(polyseme) == polyseme.__all__ == sorted(polyseme.__all__, key=lambda n: (n.lower() == n, n))
    assert list(polyseme._HOMES) == polyseme.__all__
    assert all(getattr(polyseme, name) is not None for name in polyseme.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Elno'"):
        polyseme.Elno  # noqa: B018


def test_the_readme_draws_every_room() -> None:
    for readme in ("README.md", "README.zh-CN.md"):
        text = (SOURCE.parent.parent / readme).read_text(encoding="utf-8")
        missing = {room_of(path) for path in MODULES} - {"__init__", "__main__"}
        assert not {room for room in missing if room not in text}, readme


def test_config_and_text_know_the_same_segmentations() -> None:
    from typing import get_args

    from polyseme.config import Segmentation
    from polyseme.text.segment import SEGMENTATIONS

    assert set(get_args(Segmentation)) == set(SEGMENTATIONS)


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout.strip()
