"""The layout of the package: the order of its parts, one name per class, lazy imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "polyseme"
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}

# A package imports from its own line and the lines above it, never from below.
ORDER = (
    ("errors", "segmentations", "choices", "json_text"),
    ("config",),
    ("io",),
    ("text",),
    ("model",),
    ("formats",),
    ("token_cache",),
    ("elmo",),
    ("torch_layer", "language", "word_vectors", "embedding_pipeline", "bulk_embedding"),
    ("training",),
    ("tasks", "search"),
    ("books",),
    ("integrations",),
    ("api",),
    ("server",),
    ("cli", "__main__"),
)
RANK = {name: number for number, names in enumerate(ORDER) for name in names}


# Settings, and names of other packages, that stand beside modules in headers.
NOT_MODULES = {"train.device", "model.words.static", "torch.device", "os.fork", "polyseme.serve"}
FILE_ENDINGS = (
    *(".c", ".hdf5", ".html", ".json", ".jsonl", ".npz", ".parquet", ".png", ".safetensors", ".txt", ".vec"),
    *(".csv", ".md", ".npy", ".toml", ".usearch", ".epub", ".zip"),
)


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Full names of the modules that a module may import, wherever in the file it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_packages_import_only_from_packages_above_them() -> None:
    violations = []
    for path, tree in MODULES.items():
        package = package_of(path)
        if package == "__init__":
            continue
        assert package in RANK, f"{package} is not in ORDER: add it here and to the map in CONTRIBUTING.md"
        for name in imported_modules(tree):
            parts = name.split(".")
            if parts[0] == "polyseme" and len(parts) > 1 and RANK.get(parts[1], 0) > RANK[package]:
                violations.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert not violations, "\n".join(violations)


def test_no_class_name_is_defined_twice() -> None:
    definitions = defaultdict(list)
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                definitions[node.name.lstrip("_")].append(str(path.relative_to(SOURCE)))
    assert not {name: paths for name, paths in definitions.items() if len(paths) > 1}


def test_every_module_has_a_header_and_a_descriptive_name() -> None:
    assert not [path for path, tree in MODULES.items() if not ast.get_docstring(tree)]
    assert not {path.stem for path in MODULES} & {"utils", "util", "common", "base", "helpers", "misc"}


def test_headers_name_modules_that_exist() -> None:
    names = {module_name(path) for path in MODULES}
    endings = {name.split(".", start)[-1] for name in names for start in range(name.count(".") + 1)}
    unknown = []
    for path, tree in MODULES.items():
        arrows = [line for line in (ast.get_docstring(tree) or "").splitlines() if "->" in line]
        named = re.findall(r"(?<![\w./`<(])([a-z]\w*(?:\.[a-z]\w*)+)(?![\w(`/])", " ".join(arrows))
        unknown += [
            f"{path.relative_to(SOURCE)}: {name}"
            for name in named
            if name not in endings | NOT_MODULES and not name.endswith(FILE_ENDINGS)
        ]
    assert not unknown, "\n".join(unknown)


def test_a_package_header_that_lists_modules_lists_all_of_them() -> None:
    for path, tree in MODULES.items():
        lines = [line for line in (ast.get_docstring(tree) or "").splitlines()[1:] if "->" not in line]
        listed = {match[1] for line in lines if (match := re.match(r" *([a-z_]\w*/?)(?:  +\S|$)", line))}
        entries = {file.stem for file in path.parent.glob("*.py")} - {"__init__"}
        entries |= {f"{child.name}/" for child in path.parent.glob("[!_]*/")}
        if path.stem == "__init__" and len(listed & entries) > 2:
            assert listed == entries, path


def test_the_model_uses_no_files_and_no_settings() -> None:
    forbidden = {"pathlib", "io", "json", "h5py", "polyseme.config", "polyseme.io"}
    for path, tree in MODULES.items():
        if package_of(path) == "model":
            assert not forbidden & set(imported_modules(tree)), path


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if package_of(path) != "cli" and path.name != "progress.py"  # which draws the progress of all verbs
    ]
    assert not printing, "\n".join(printing)


def test_importing_polyseme_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, polyseme; polyseme.PolysemeError; print({'torch', 'numpy'} & set(sys.modules))"
    assert run_python(code) == "set()"


def test_the_command_line_starts_without_torch() -> None:
    code = "import sys, polyseme.cli; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    assert run_python(code) == "set()"


def test_every_public_name_exists() -> None:
    import polyseme

    assert dir(polyseme) == polyseme.__all__ == sorted(polyseme.__all__, key=lambda n: (n.lower() == n, n))
    assert list(polyseme._MODULES) == polyseme.__all__
    assert all(getattr(polyseme, name) is not None for name in polyseme.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Elno'"):
        polyseme.Elno  # noqa: B018


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout.strip()
