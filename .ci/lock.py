"""Write .ci/requirements.txt: the packages of this environment that the tests need, with their SHA-256.

Run it in an environment of Linux and Python 3.11 in which `make check` passes:

    .venv/bin/python .ci/lock.py

It pins what is installed of `polyseme[dev]`, with the hashes that the package index has of the files that
this system can install. torch is not in it: CI takes the build without CUDA from PyTorch's own index.
"""

from __future__ import annotations

import re
import sys
import time
import tomllib
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

INDEX = "https://pypi.org/simple/{}/"
ATTEMPTS = 5
TAGS = frozenset(sys_tags())  # kinds of wheels that this system can install
OUT = Path(__file__).parent / "requirements.txt"
ROOTS = ("polyseme[dev]", "hatchling", "editables")  # the last two build it
LEFT_OUT = {"polyseme", "torch"}
LINK = re.compile(r'<a[^>]*href="([^"#]+)#sha256=([0-9a-f]{64})"')
HEADER = "# Written by .ci/lock.py for Linux and Python 3.11: what CI installs with --require-hashes.\n"


def list_packages(roots: tuple[str, ...]) -> dict[str, str]:
    """The versions of all installed packages that some requirements need."""
    versions: dict[str, str] = {}
    waiting, seen = [Requirement(root) for root in roots], set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{name} is not installed: pip install -e '.[dev]' hatchling editables")
        if not requirement.specifier.contains(found.version, prereleases=True):
            sys.exit(
                f"{name} {found.version} is installed, {requirement} is needed: pip install '{requirement}'"
            )
        versions[name] = found.version
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for text in list_own(extra) if name == "polyseme" else found.requires or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    waiting.append(needed)
    return {name: version for name, version in sorted(versions.items()) if name not in LEFT_OUT}


def list_own(extra: str) -> list[str]:
    """The requirements in pyproject.toml, of the core or of an extra: an editable install may be older."""
    project = tomllib.loads((OUT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted: list[str] = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return wanted


def find_hashes(name: str, version: str) -> list[str]:
    """The hashes of the wheels of a version that this system can install; of its source if there are none."""
    request = urllib.request.Request(INDEX.format(name), headers={"Accept": "text/html"})
    page = _download(request)
    wheels, sources = set(), set()
    for address, digest in LINK.findall(page):
        file = unquote(unescape(address)).rpartition("/")[2]
        try:
            if not file.endswith(".whl"):
                if str(parse_sdist_filename(file)[1]) == version:
                    sources.add(digest)
                continue
            _, found, _, tags = parse_wheel_filename(file)
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue  # very old files
        if str(found) == version and not tags.isdisjoint(TAGS):
            wheels.add(digest)
    hashes = wheels or sources
    if not hashes:
        sys.exit(f"{name} {version}: the index has no hashes of it.")
    return sorted(hashes)


def _download(request: urllib.request.Request) -> str:
    """A page of the index, asked for again if the connection breaks."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return str(response.read().decode("utf-8"))
        except (OSError, HTTPException) as problem:
            print(f"{request.full_url}: {problem}, attempt {attempt}", file=sys.stderr)
            time.sleep(attempt)
    sys.exit(f"{request.full_url}: no answer.")


def main() -> None:
    """Write the file."""
    versions = list_packages(ROOTS)
    with ThreadPoolExecutor(4) as pool:
        hashes = list(pool.map(find_hashes, versions, versions.values()))
    lines = [HEADER]
    for (name, version), digests in zip(versions.items(), hashes, strict=True):
        pins = "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests)
        lines.append(f"{name}=={version}{pins}\n")
    OUT.write_text("".join(lines), encoding="utf-8")
    print(f"{OUT}: {len(versions)} packages, {sum(map(len, hashes))} hashes")


if __name__ == "__main__":
    main()
