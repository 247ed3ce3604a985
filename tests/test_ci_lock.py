"""What CI installs by hash is what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

requirements = pytest.importorskip("packaging.requirements")
ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
SYSTEM = {"python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux"}
WITHOUT_HASH = {"torch"}  # from PyTorch's own index


def read_pins() -> dict[str, str]:
    text = (ROOT / ".ci" / "requirements.txt").read_text(encoding="utf-8")
    assert PIN.sub("", text).split("\n", 1)[1].strip() == ""  # nothing else after the comment
    return {name: version for name, version, _ in PIN.findall(text)}


def list_requirements(project: dict, extra: str) -> list:
    """The requirements of the core and of an extra, with those of the extras that it names."""
    wanted, extras = list(project["dependencies"]), [extra]
    while extras:
        for text in project["optional-dependencies"][extras.pop()]:
            requirement = requirements.Requirement(text)
            if requirement.name == project["name"]:
                extras += requirement.extras
            else:
                wanted.append(text)
    return [requirements.Requirement(text) for text in wanted]


def test_every_package_of_the_tests_is_pinned_within_its_range():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = read_pins()
    for requirement in list_requirements(project, "dev"):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in WITHOUT_HASH or (requirement.marker and not requirement.marker.evaluate(SYSTEM)):
            continue
        assert name in pins, f"{name} is missing: run .ci/lock.py"
        assert requirement.specifier.contains(pins[name]), f"{name} {pins[name]}: run .ci/lock.py"


def test_the_pinned_versions_fit_each_other_and_torch():
    pins = read_pins()
    n_checked = 0
    for name in (*pins, *WITHOUT_HASH):
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # it builds the package
        if name in pins and installed.version != pins[name]:
            continue  # another version may need others
        n_checked += 1
        for text in installed.requires or ():
            requirement = requirements.Requirement(text)
            if requirement.marker and not requirement.marker.evaluate(SYSTEM | {"extra": ""}):
                continue
            needed = re.sub(r"[-_.]+", "-", requirement.name).lower()
            assert needed in pins or needed in WITHOUT_HASH, f"{name} needs {needed}: run .ci/lock.py"
            if needed in pins:
                fits = requirement.specifier.contains(pins[needed], prereleases=True)
                assert fits, f"{name} needs {requirement}, {pins[needed]} is pinned: run .ci/lock.py"
    assert n_checked > 0


def test_what_builds_the_package_is_pinned_too():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    for text in build["requires"]:
        requirement = requirements.Requirement(text)
        assert requirement.specifier.contains(read_pins()[requirement.name])


def test_the_workflow_installs_by_hash_and_not_from_ranges():
    workflow = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    job = workflow.partition("name: make check")[2].partition("\n  tests:")[0]
    assert "--require-hashes --no-deps -r .ci/requirements.txt" in job
    assert "--no-build-isolation" in job
