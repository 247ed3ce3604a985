"""The files to deploy with, checked by their linters: no container engine is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent


def run(tool: str, *arguments: str | Path) -> None:
    """Run a linter of the environment; what it says is the message of the failure."""
    done = subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile():
    run("hadolint", ROOT / "Dockerfile")


def test_the_compose_file():
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml")


def test_the_kubernetes_example(tmp_path: Path):
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
    (tmp_path / "polyseme.yaml").write_text(example)
    run("kubernetes-validate", "--strict", tmp_path / "polyseme.yaml")


def test_the_linter_finds_what_is_wrong(tmp_path: Path):
    (tmp_path / "Dockerfile").write_text("FROM python\nCMD polyseme\n")
    with pytest.raises(AssertionError, match="DL"):
        run("hadolint", tmp_path / "Dockerfile")
