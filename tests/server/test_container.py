"""The steps of the Dockerfile without a container engine: installed from a wheel, and run as the image would.

Its commands run in a folder instead of the root. The server then runs as another user, with a file system
that it cannot write to and without a compiler, and the health check of the image asks it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_wheel import build

ROOT = Path(__file__).parents[2]
USER = "10001"


def read_instructions() -> dict[str, str]:
    """The instructions of the Dockerfile by name, joined lines as one; each occurs once."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return {name: value for name, _, value in (line.partition(" ") for line in lines if line)}


INSTRUCTIONS = read_instructions()


def test_the_image_has_no_compiler_an_unprivileged_user_and_a_health_check() -> None:
    assert set(INSTRUCTIONS) == {
        *("FROM", "ARG", "RUN", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD")
    }
    assert INSTRUCTIONS["FROM"] == "python:3.11-slim"
    assert INSTRUCTIONS["USER"] == USER
    assert f"--uid {USER}" in INSTRUCTIONS["RUN"]
    assert not re.search(r"gcc|build-essential|apt", INSTRUCTIONS["RUN"])
    port = json.loads(INSTRUCTIONS["CMD"])[-1]
    assert INSTRUCTIONS["EXPOSE"] == port
    assert f"127.0.0.1:{port}/health" in INSTRUCTIONS["HEALTHCHECK"]


def test_only_the_wheels_reach_the_image() -> None:
    assert (ROOT / ".dockerignore").read_text().splitlines() == ["*", "!dist", "dist/*.tar.gz"]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with what the RUN instruction installs, which any user can read."""
    folder = tmp_path_factory.mktemp("image")
    build(folder / "dist", folder / "source")
    commands = INSTRUCTIONS["RUN"].replace("--mount=type=bind,source=dist,target=/dist", "")
    commands = commands.replace("/opt/polyseme", str(folder / "polyseme")).replace(
        "/dist", str(folder / "dist")
    )
    # The builds of torch for the CPU come from the index that is configured here.
    commands = commands.replace('--index-url "$TORCH_INDEX"', "").partition("&& useradd")[0]
    commands = commands.replace("python -m venv", f"{sys.executable} -m venv")
    done = subprocess.run(["sh", "-euc", commands], capture_output=True, text=True)
    if done.returncode and re.search("connection|resolution|No matching distribution", done.stderr):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    for path in (folder, *folder.parents):  # pytest's folders are private
        if path.stat().st_mode & 0o005 != 0o005:
            path.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root on Linux")
def test_the_server_runs_as_the_image_says_and_its_health_check_passes(image: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    scratch, held, base = image / "tmp", image / "python", Path(sys.base_prefix)
    scratch.mkdir()
    held.mkdir()
    environment = dict(pair.split("=", 1) for pair in shlex.split(INSTRUCTIONS["ENV"]))
    environment |= {"PATH": str(image / "polyseme" / "bin"), "TMPDIR": str(scratch)}
    environment["POLYSEME_CACHE"] = str(scratch / "polyseme")

    def as_user(*command: str) -> list[str]:
        """A command as the user of the image, with every file system read-only but the scratch folder."""
        mounts = f"mount --make-rprivate / && mount -t tmpfs -o mode=1777 tmpfs {scratch}"
        if private := next((path for path in base.parents[-2::-1] if not path.stat().st_mode & 1), None):
            # This Python lies below a folder of root: show nothing of that folder but the Python.
            mounts += f" && mount --bind {base} {held} && mount -t tmpfs -o mode=755 tmpfs {private}"
            mounts += f" && mkdir -p {base} && mount --bind {held} {base}"
        mounts += " && mount -o remount,bind,ro /"
        drop = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs"]
        variables = [f"{name}={value}" for name, value in environment.items()]
        step = shlex.join([*drop, "env", "-i", *variables, *command])
        return ["unshare", "--mount", "sh", "-euc", f"{mounts}; cd /; exec {step}"]

    written = subprocess.run(as_user("/bin/sh", "-c", "echo x > /opt/x"), capture_output=True, text=True)
    assert written.returncode != 0
    compilers = [name for name in ("cc", "gcc", "clang") if shutil.which(name, path=environment["PATH"])]
    assert not compilers

    program, arguments = json.loads(INSTRUCTIONS["ENTRYPOINT"]), json.loads(INSTRUCTIONS["CMD"])
    server = subprocess.Popen(as_user(*program, *arguments[:-1], port), stderr=subprocess.PIPE, text=True)
    check = json.loads(INSTRUCTIONS["HEALTHCHECK"].partition("CMD ")[2])
    check = [part.replace(":8000/", f":{port}/") for part in check]
    try:
        for _ in range(120):
            healthy = subprocess.run(as_user(*check), capture_output=True, text=True).returncode == 0
            if healthy or server.poll() is not None:
                break
            time.sleep(1)
        assert healthy, server.stderr.read() if server.poll() is not None else "not healthy"
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{USER}\s", status, re.MULTILINE)
    finally:
        server.terminate()
        code = server.wait(30)
        server.stderr.close()
    assert code == 0
