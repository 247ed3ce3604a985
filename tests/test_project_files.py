"""Project files: those with a published schema follow it, and versions and commands agree."""

from __future__ import annotations

import re
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
        ("github-workflows", [".github/workflows/check.yml"]),
        ("github-issue-config", [f"{TEMPLATES}/config.yml"]),
        ("github-issue-forms", [f"{TEMPLATES}/bug_report.yml", f"{TEMPLATES}/feature_request.yml"]),
    ],
)
def test_a_file_follows_its_schema(schema: str, names: list[str]) -> None:
    program = Path(sys.executable).parent / "check-jsonschema"
    paths = [ROOT / name for name in names]
    command: list[str | Path] = [program, "--builtin-schema", f"vendor.{schema}", *paths]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_citation_and_the_changelog_have_the_version_of_the_package_and_one_date() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dated = re.search(rf"^version: {re.escape(version)}\ndate-released: (\d{{4}}-\d\d-\d\d)$", citation, re.M)
    assert dated
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{version}] - {dated[1]}\n" in changes


def test_the_contributing_guide_names_constants_that_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    quoted = {name for name in re.findall(r"`([^`\n]+)`", guide) if "NAME" not in name}
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.js"), *(ROOT / "tests").rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    defined = set(re.findall(r"^(?:export const )?(_?[A-Z][A-Z_]+)\b", code, re.MULTILINE))
    constants = {name for name in quoted if re.fullmatch(r"_?[A-Z][A-Z_]+", name)}
    assert constants
    assert constants <= defined
