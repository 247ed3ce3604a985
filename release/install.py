"""Install the wheels as a user would, on a machine without a compiler, and use them without a network.

    OUT/*.whl  ->  a new environment per wheel and Python  ->  doctor, and docs/first-minute in two languages

    python release/install.py dist [--python python3.11 --python python3.13] [--torch-index URL]

Only the installation reaches the package index. The commands run with the environment's programs alone on
PATH, and in a network namespace without interfaces, or where there is none, behind a proxy that refuses all.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REFUSED = "http://127.0.0.1:9"  # nobody listens on the port "discard"
DOCS = Path(__file__).parent.parent / "docs"
FIRST_PAGES = ("first-minute.md", "first-minute.zh-CN.md")
BLOCK = re.compile(r"^```(bash|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TOLERANCE = 0.02  # of a printed number, or that share of it: the wheels compute with different code


class InstallError(Exception):
    """A wheel that does not work; the message says why."""


@dataclass(frozen=True)
class Installation:
    """An environment with a wheel in it."""

    folder: Path
    wheel: Path

    @property
    def programs(self) -> Path:
        """Where its programs are."""
        return self.folder / ("Scripts" if sys.platform == "win32" else "bin")

    def run(self, *command: str, cwd: Path) -> str:
        """Run one of its programs without a compiler and without a network; return what it prints."""
        environment = {"PATH": str(self.programs), "HOME": str(cwd), "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
        environment |= {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR") if name in os.environ}
        environment |= {f"{name}_proxy": REFUSED for name in ("http", "https", "all")}
        program = str(self.programs / command[0])
        done = subprocess.run(
            [*find_isolation(), program, *command[1:]],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode:
            raise InstallError(f"{self.wheel.name}: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def find_isolation() -> list[str]:
    """The command before a command that takes the network away; empty if the system has none."""
    unshare = shutil.which("unshare")
    command = [unshare or "", "--net", "--map-root-user"]
    if unshare and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
        return command
    return []


def install(wheel: Path, python: str, folder: Path, torch_index: str) -> Installation:
    """Install a wheel and what it requires into a new environment."""
    installation = Installation(folder, wheel)
    pip = [installation.programs / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    commands: list[list[str | Path]] = [[python, "-m", "venv", folder]]
    if torch_index:  # torch's builds for the CPU are not on PyPI
        commands.append([*pip, "torch~=2.13.0", "--index-url", torch_index])
    # Without a compiler, a library that has no wheel would fail; say so at once.
    commands.append([*pip, "--only-binary", ":all:", wheel])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InstallError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return installation


def check(installation: Installation) -> list[str]:
    """Use an installation as a newcomer does; return what was seen."""
    version = installation.wheel.name.split("-")[1]
    native = not installation.wheel.name.endswith("-any.whl")
    compilers = [name for name in ("cc", "gcc", "clang") if shutil.which(name, path=installation.programs)]
    if compilers:
        raise InstallError(f"{installation.programs} has a compiler: {compilers[0]}")
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        printed = installation.run("polyseme", "--version", cwd=cwd)
        if version not in printed:
            raise InstallError(f"{installation.wheel.name}: --version prints {printed!r}")
        report = json.loads(installation.run("polyseme", "doctor", "--json", cwd=cwd))
        details = {entry["topic"]: entry for entry in report["checks"]}
        expected = "ok" if native else "missing"
        if details["C library"]["state"] != expected:
            raise InstallError(f"{installation.wheel.name}: the C library: {details['C library']['detail']}")
        for page in FIRST_PAGES:
            folder_of_page = cwd / page
            folder_of_page.mkdir()
            follow(DOCS / page, installation, folder_of_page)
    topics = ("Python", "torch", "C library", "bundled models", "exactness")
    return [f"{topic}: {details[topic]['detail']}" for topic in topics]


def follow(page: Path, installation: Installation, cwd: Path) -> None:
    """Run the commands and the code of a page, which must print what the page says."""
    code, printed, shown = "", "", ""
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "text":
            shown += block
        elif kind == "python":
            code += block
        else:
            for line in block.splitlines():
                if line.startswith("polyseme "):
                    printed += installation.run(*shlex.split(line, comments=True), cwd=cwd)
    printed += installation.run("python", "-c", code, cwd=cwd)
    if not is_same_but_for_rounding(printed, shown):
        name = installation.wheel.name
        raise InstallError(f"{name}: {page.name} says\n{shown}but this is printed:\n{printed}")


def is_same_but_for_rounding(printed: str, shown: str) -> bool:
    """Whether two texts differ in the last digits of numbers only."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", shown).split():
        return False
    numbers = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(
        math.isclose(float(first), float(second), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        for first, second in numbers
    )


def main() -> None:
    """Check all wheels of a folder on all Pythons."""
    parser = argparse.ArgumentParser(description="Install wheels and use them without a compiler or network.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", help="default: this Python")
    parser.add_argument("--torch-index", default="", help="package index with the CPU builds of torch")
    options = parser.parse_args()
    wheels = sorted(options.folder.resolve().glob("*.whl"))
    if not wheels:
        sys.exit(f"{options.folder}: no wheels. Run release/build.py first.")
    print("network:", "a namespace of its own" if find_isolation() else f"all traffic goes to {REFUSED}")
    for python in options.python or [sys.executable]:
        for wheel in wheels:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    installation = install(wheel, python, Path(folder, "environment"), options.torch_index)
                    seen = check(installation)
                except InstallError as error:
                    sys.exit(str(error))
            print(f"{wheel.name}: works\n  " + "\n  ".join(seen), flush=True)


if __name__ == "__main__":
    main()
