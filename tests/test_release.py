"""What is published is complete: the contents of archives, the bill of materials, the numbers of formats."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from polyseme.formats.models import native
from polyseme.formats.vectors import manifest
from polyseme.model.fast.kernels import native as kernels
from polyseme.search import usage_store
from polyseme.tasks import run_folder, task_folder
from polyseme.text.corpus import prepared

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "polyseme"
INFO = "polyseme-0.2.0.dist-info/"
PURE, NATIVE = "polyseme-0.2.0-py3-none-any.whl", "polyseme-0.2.0-py3-none-manylinux_2_17_x86_64.whl"
VOCAB = b"the\n"
FILES = {  # a wheel that can be published
    "polyseme/__init__.py": b"",
    "polyseme/bundled/SHA256SUMS": f"{hashlib.sha256(VOCAB).hexdigest()}  en/vocab.txt\n".encode(),
    "polyseme/bundled/en/vocab.txt": VOCAB,
    f"{INFO}METADATA": b"Name: polyseme\nVersion: 0.2.0\n",
    f"{INFO}WHEEL": b"",
    f"{INFO}RECORD": b"",
    f"{INFO}entry_points.txt": b"",
    f"{INFO}licenses/LICENSE": b"",
    f"{INFO}sboms/sbom.cdx.json": b"{}",
}
LIBRARY = "polyseme/model/fast/kernels/libpolyseme_native.so"
PROJECT = [
    *(f"src/{name}" for name in FILES if not name.startswith(INFO)),
    "src/polyseme/model/fast/kernels/native.c",
    "tests/test_release.py",
    ".gitignore",
]
# Licences that allow what Apache 2.0 allows, in what the package requires.
PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Zlib",
}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The script named by the test, imported from the release folder."""
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    return import_module(request.param)


def write_wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return path


@pytest.mark.parametrize("script", ["contents"], indirect=True)
def test_a_complete_wheel_has_no_problems(script: Any, tmp_path: Path) -> None:
    assert script.check_wheel(write_wheel(tmp_path / PURE, FILES), PROJECT) == []
    with_library = FILES | {LIBRARY: b"\x7fELF", "polyseme/bundled/": b""}  # repaired wheels name folders
    assert script.check_wheel(write_wheel(tmp_path / NATIVE, with_library), PROJECT) == []


@pytest.mark.parametrize("script", ["contents"], indirect=True)
@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        (PURE, {"polyseme/__init__.py": None}, "lacks polyseme/__init__.py"),
        (PURE, {"polyseme/bundled/en/vocab.txt": None}, "lacks polyseme/bundled/en/vocab.txt"),
        (PURE, {"polyseme/bundled/en/vocab.txt": b"a\n"}, "vocab.txt that differs from its checksum"),
        (PURE, {f"{INFO}sboms/sbom.cdx.json": None}, "lacks polyseme-0.2.0.dist-info/sboms/sbom.cdx.json"),
        (PURE, {"tests/test_x.py": b""}, "has tests/test_x.py, which does not belong there"),
        (PURE, {"polyseme/__pycache__/x.pyc": b""}, "has polyseme/__pycache__/x.pyc"),
        (PURE, {LIBRARY: b""}, f"has {LIBRARY}, which does not belong there"),
        (NATIVE, {}, f"lacks {LIBRARY}"),
        (PURE, {f"{INFO}METADATA": b"Version: 0.1.0\n"}, "is version 0.1.0, unlike its name"),
        ("polyseme-0.2.0-py3-none-linux_x86_64.whl", {LIBRARY: b""}, "promises nothing: run auditwheel"),
    ],
)
def test_a_wheel_with_a_mistake_is_not_published(
    script: Any, name: str, changes: dict[str, bytes | None], problem: str, tmp_path: Path
) -> None:
    files = {key: value for key, value in (FILES | changes).items() if value is not None}
    problems = script.check_wheel(write_wheel(tmp_path / name, files), PROJECT)
    assert any(problem in line for line in problems), problems
    assert all(line.startswith(name) for line in problems)


@pytest.mark.parametrize("script", ["contents"], indirect=True)
def test_an_sdist_has_every_file_of_the_project_and_no_other(script: Any, tmp_path: Path) -> None:
    names = [name for name in PROJECT if not name.startswith(".")]

    def problems(*members: str) -> list[str]:
        path = tmp_path / "polyseme-0.2.0.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for member in members:
                archive.addfile(tarfile.TarInfo(f"polyseme-0.2.0/{member}"), io.BytesIO())
        found: list[str] = script.check_sdist(path, PROJECT)
        return found

    assert problems(*names, "PKG-INFO", ".gitignore") == []
    assert problems(*names[1:], "PKG-INFO") == [f"polyseme-0.2.0.tar.gz lacks {names[0]}"]
    assert problems(*names, "PKG-INFO", LIBRARY) == [
        f"polyseme-0.2.0.tar.gz has {LIBRARY}, which is no file of the project"
    ]


FIRST_PAGE = """
```bash
pip install polyseme
polyseme nearest en virus   # a comment
```
```text
0.726	38	vaccine
```
```python
number = 0.5
```
```python
print(f"half: {number}")
```
```text
half: 0.51
```
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("script", ["install"], indirect=True)
def test_an_installed_wheel_prints_what_the_first_page_says(script: Any, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "polyseme"
    program.write_text('#!/bin/sh\n[ "$*" = "nearest en virus" ] && printf "0.725\\t38\\tvaccine\\n"\n')
    program.chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    page = tmp_path / "page.md"
    installation = script.Installation(tmp_path, tmp_path / PURE)
    page.write_text(FIRST_PAGE, encoding="utf-8")
    script.follow(page, installation, tmp_path)
    for wrong in (FIRST_PAGE.replace("0.726", "0.826"), FIRST_PAGE.replace("vaccine", "tumour")):
        page.write_text(wrong, encoding="utf-8")
        with pytest.raises(script.InstallError, match=r"is printed:\n0.725\t38\tvaccine"):
            script.follow(page, installation, tmp_path)


def read_sbom() -> dict[str, Any]:
    values = json.loads((ROOT / "release" / "sbom.cdx.json").read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return values


def without_licences_of_libraries(values: dict[str, Any]) -> dict[str, Any]:
    """Without what depends on the versions of the required libraries that are installed here."""
    parts = [
        part | {"licenses": None} if part["bom-ref"].startswith("pypi:") else part
        for part in values["components"]
    ]
    return values | {"components": parts}


@pytest.mark.parametrize("script", ["sbom"], indirect=True)
def test_the_bill_of_materials_is_that_of_the_project(script: Any) -> None:
    written = json.loads(script.build_sbom())
    assert without_licences_of_libraries(written) == without_licences_of_libraries(read_sbom()), "make sbom"


@pytest.mark.parametrize("script", ["sbom"], indirect=True)
def test_everything_that_is_contained_or_required_has_a_permissive_licence(script: Any) -> None:
    for part in [*read_sbom()["components"], *json.loads(script.build_sbom())["components"]]:
        (licence,) = part["licenses"]
        identifiers = set(
            re.split(r" (?:AND|OR) ", licence["expression"].replace(" WITH LLVM-exception", ""))
        )
        assert identifiers <= PERMISSIVE, part["name"]


def test_the_bill_of_materials_has_the_checksums_of_the_files_and_the_sources_of_the_models() -> None:
    checked = 0
    for part in read_sbom()["components"]:
        kind, _, name = part["bom-ref"].partition(":")
        folder = {"model": PACKAGE / "bundled", "vendored": PACKAGE / "server/explorer/vendor"}.get(
            kind, PACKAGE / "text"
        )
        for file in [*part.get("components", []), *([part] if kind in ("vendored", "data") else [])]:
            content = (folder / file["bom-ref"].partition(":")[2]).read_bytes()
            assert file["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
            checked += 1
        if kind == "model":
            sources = [value for value in part["properties"] if value["name"] == "polyseme:source"]
            assert len(sources) > 15 if name in ("en", "zh") else "public domain" in sources[0]["value"]
    files = {path.relative_to(PACKAGE) for path in (PACKAGE / "bundled").glob("*/*")}
    assert checked == len(files) + 4 + 1  # four scripts and a table of characters


def test_the_table_of_formats_has_the_numbers_of_the_code() -> None:
    numbers = {
        "polyseme_format": native.FORMAT,
        "polyseme_task": task_folder.FORMAT,
        "polyseme_index": usage_store.FORMAT,
        "manifest.json`: `version": manifest.VERSION,
        "polyseme corpus": prepared.FORMAT,
        "plan.json`: `format": run_folder.FORMAT,
    }
    for name in ("versions.md", "versions.zh-CN.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8").replace("：", ": ")
        for key, number in numbers.items():
            (row,) = (line for line in page.splitlines() if line.startswith("|") and f"{key}`" in line)
            written, read = row.split("|")[3:5]
            assert re.findall(r"\d+", written)[-1] == re.findall(r"\d+", read)[-1] == str(number), row


@pytest.mark.skipif(kernels.unavailable_reason() is not None, reason="needs the C library")
@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_the_library_needs_no_glibc_after_2_17() -> None:
    path = PACKAGE / "model" / "fast" / "kernels" / kernels.NAME
    printed = subprocess.run(["readelf", "-V", path], check=True, capture_output=True, text=True).stdout
    if "x86-64" not in subprocess.run(["readelf", "-h", path], capture_output=True, text=True).stdout.lower():
        pytest.skip("only wheels for x86-64 promise it")
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", printed)}
    assert versions
    assert max(versions) <= (2, 17)
