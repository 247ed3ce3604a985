"""Build the C library of polyseme.model.fast.kernels with the wheel.

Without a compiler the wheel is pure Python. $CC and $CFLAGS apply; POLYSEME_NATIVE=0 skips the library.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

FOLDER = Path("src", "polyseme", "model", "fast", "kernels")
LIBRARY = FOLDER / "libpolyseme_native.so"
# One library for all machines: it chooses its instruction set when it runs. No -ffast-math: NaN stays NaN.
FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fPIC", "-shared", "-pthread"]


class NativeHook(BuildHookInterface[Any]):
    """Compiles the library before a wheel is built, also for `pip install -e`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library to the wheel, and the platform to its name."""
        root = Path(self.root)
        why_not = "POLYSEME_NATIVE=0" if os.environ.get("POLYSEME_NATIVE") == "0" else compile_library(root)
        if why_not:
            (root / LIBRARY).unlink(missing_ok=True)  # an old library would not match the sources
            self.app.display_warning(
                f"polyseme is installed without its C library, which is slower: {why_not}"
            )
            return
        linux = (
            "manylinux",
            "musllinux",
        )  # tags that promise a libc version, which only auditwheel can check
        platform = next(tag for tag in platform_tags() if not tag.startswith(linux))
        build_data["artifacts"].append(LIBRARY.as_posix())  # although git ignores it
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def compile_library(root: Path) -> str | None:
    """Compile the library in `root`; return None, or one line that says why it failed."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    flags = [*FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
    with tempfile.TemporaryDirectory(dir=root / FOLDER) as folder:
        made = Path(folder, LIBRARY.name)
        command = [*compiler, *flags, str(root / FOLDER / "native.c"), "-o", str(made)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        except OSError as error:
            return f"{compiler[0]}: {error.strerror}"
        except subprocess.CalledProcessError as error:
            lines = [line for line in error.stderr.splitlines() if "error" in line]
            return (lines or error.stderr.splitlines() or ["the compiler failed"])[0]
        made.replace(root / LIBRARY)  # atomic: running programs keep the library they have loaded
    return None
