"""Deployment files, checked by linters: no container engine is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent


def run(tool: str, *arguments: str | Path) -> None:
    """Run a linter; the test fails with its output."""
    result = subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_dockerfile_is_valid():
    run("hadolint", ROOT / "Dockerfile")


def test_the_compose_file_is_valid():
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml")


def test_the_kubernetes_example_is_valid(tmp_path: Path):
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
    (tmp_path / "polyseme.yaml").write_text(example)
    run("kubernetes-validate", "--strict", tmp_path / "polyseme.yaml")


def test_the_linter_finds_mistakes(tmp_path: Path):
    (tmp_path / "Dockerfile").write_text("FROM python\nCMD polyseme\n")
    with pytest.raises(AssertionError, match="DL"):
        run("hadolint", tmp_path / "Dockerfile")
