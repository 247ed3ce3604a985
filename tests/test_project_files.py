"""Files for GitHub and for citation, checked against their published schemas."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEMPLATES = ".github/ISSUE_TEMPLATE"


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("citation-file-format", ["CITATION.cff"]),
        ("github-issue-config", [f"{TEMPLATES}/config.yml"]),
        ("github-issue-forms", [f"{TEMPLATES}/bug_report.yml", f"{TEMPLATES}/feature_request.yml"]),
    ],
)
def test_a_file_follows_its_schema(schema: str, names: list[str]) -> None:
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *(ROOT / name for name in names)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_citation_names_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
