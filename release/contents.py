"""What an sdist and a wheel must contain, and what they must not.

    OUT/*.tar.gz, OUT/*.whl, the files of the project  ->  release.contents  ->  one line per problem

A wheel has every file of src/polyseme but C sources, the bundled models with the checksums of SHA256SUMS, the
licence and the bill of materials; no tests, no caches; and the C library if and only if its name has a
platform.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

LARGEST_WHEEL, LARGEST_SDIST = 60_000_000, 100_000_000  # bytes; PyPI takes 100 MB
LIBRARY = "polyseme/model/fast/kernels/libpolyseme_native.so"
SUMS = "polyseme/bundled/SHA256SUMS"
CACHES = re.compile(r"(^|/)(__pycache__|\.[a-z_]+_cache|\.venv[^/]*)(/|$)|\.pyc$")


def check_wheel(path: Path, project_files: list[str]) -> list[str]:
    """The problems of a wheel, one line each; none if it can be published.

    Args:
        path: The wheel.
        project_files: The files of the project, relative to its folder.

    """
    _, version, *_, platform = path.name.removesuffix(".whl").split("-")
    info = f"polyseme-{version}.dist-info/"
    pure = platform == "any"
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        expected = {
            name.removeprefix("src/")
            for name in project_files
            if name.startswith("src/polyseme/") and not name.endswith((".c", ".h"))
        } | ({LIBRARY} if not pure else set())
        files = {f"{info}{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
        files |= {f"{info}licenses/LICENSE", f"{info}sboms/sbom.cdx.json"}
        inside = {name for name in names if not name.startswith(info)}
        problems = [f"lacks {name}" for name in sorted((expected | files) - names)]
        problems += [f"has {name}, which does not belong there" for name in sorted(inside - expected)]
        problems += [f"has {name}" for name in sorted(names) if CACHES.search(name)]
        if SUMS in names:
            problems += _check_models(wheel, names)
        if f"{info}METADATA" in names:
            metadata = message_from_bytes(wheel.read(f"{info}METADATA"))
            if metadata["Version"] != version:
                problems.append(f"is version {metadata['Version']}, unlike its name")
    if platform.startswith("linux"):
        problems.append(f"has the platform {platform}, which promises nothing: run auditwheel")
    if path.stat().st_size > LARGEST_WHEEL:
        problems.append(f"has {path.stat().st_size:,} bytes; the limit is {LARGEST_WHEEL:,}")
    return [f"{path.name} {problem}" for problem in problems]


def _check_models(wheel: zipfile.ZipFile, names: set[str]) -> list[str]:
    """Compare the models in a wheel with their checksums, which are in it."""
    problems = []
    for line in wheel.read(SUMS).decode("utf-8").splitlines():
        expected, _, file = line.partition("  ")
        name = f"polyseme/bundled/{file}"
        if name not in names:
            problems.append(f"lacks {name}")
        elif hashlib.sha256(wheel.read(name)).hexdigest() != expected:
            problems.append(f"has a {name} that differs from its checksum")
    return problems


def check_sdist(path: Path, project_files: list[str]) -> list[str]:
    """The problems of an sdist, one line each: it has all that builds, tests and documents the package."""
    root = path.name.removesuffix(".tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.removeprefix(f"{root}/") for member in archive if member.isfile()}
    # Hidden files are of the repository: of continuous integration, of git and of editors.
    expected = {name for name in project_files if not name.startswith(".")}
    problems = [f"lacks {name}" for name in sorted(expected - names)]
    problems += [
        f"has {name}, which is no file of the project"
        for name in sorted(names - set(project_files) - {"PKG-INFO"})
    ]
    if path.stat().st_size > LARGEST_SDIST:
        problems.append(f"has {path.stat().st_size:,} bytes; the limit is {LARGEST_SDIST:,}")
    return [f"{path.name} {problem}" for problem in problems]
