"""The notebooks run, and show what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
FAST = {"published_models", "sentiment_three_ways", "sklearn_and_spacy"}
DOWNLOADS = {"change_in_speeches": "npm", "chinese_novel": "PyPI"}


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, FOLDER / "run.py", *arguments]
    # Threads that wait for each other on a busy machine turned a minute into half an hour.
    environment = os.environ | {"TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in NOTEBOOKS]
)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    before = (FOLDER / f"{name}.ipynb").read_bytes()
    done = run(name, "--check", folder=tmp_path)
    if done.returncode and name in DOWNLOADS and "could not be downloaded" in done.stderr:
        pytest.skip(f"{DOWNLOADS[name]} cannot be reached")
    assert done.returncode == 0, done.stderr
    assert (FOLDER / f"{name}.ipynb").read_bytes() == before


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_its_outputs_and_nothing_of_the_machine(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text.encode()) < 100_000
    cells: list[dict[str, Any]] = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert "/root/" not in text
    assert "/home/" not in text
    assert "/tmp/" not in text


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_manual_leads_to_every_notebook(name: str) -> None:
    for page in ("notebooks.md", "notebooks.zh-CN.md"):
        assert f"(../examples/notebooks/{name}.ipynb)" in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_a_notebook_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = run("novel", folder=tmp_path)
    assert done.returncode == 1
    assert "novel.ipynb: no such notebook" in done.stderr
