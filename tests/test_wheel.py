"""The wheel is built with and without a C compiler, and its name says which."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIBRARY = "polyseme/model/fast/kernels/libpolyseme_native.so"


def build(target: Path, source: Path, **environment: str) -> Path:
    """Build the wheel from a copy of the project, so that the library in use stays."""
    files = ("src", "release", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
    source.mkdir()
    for name in files:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    (source / "src" / LIBRARY).unlink(missing_ok=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(target), str(source)]
    subprocess.run(command, check=True, env=os.environ | environment)
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{"CC": "no-such-compiler"}, {"CC": "false"}, {"POLYSEME_NATIVE": "0"}]
)
def test_without_a_compiler_the_wheel_is_pure_python(tmp_path, environment):
    wheel = build(tmp_path / "wheel", tmp_path / "source", **environment)
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert LIBRARY not in names
    assert {"polyseme/presets/novel.toml", "polyseme/bundled/zh-classic/metrics.jsonl"} <= set(names)


@pytest.mark.slow
def test_bundled_models_open_from_the_wheel_without_a_network(tmp_path):
    wheel = build(tmp_path / "wheel", tmp_path / "source", POLYSEME_NATIVE="0")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(tmp_path / "installed"),
    ]
    subprocess.run([*command, str(wheel)], check=True)
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "import polyseme\n"
        "assert polyseme.__file__.startswith(sys.argv[1]), polyseme.__file__\n"
        "texts = {'en': 'The river bank.', 'zh': '经济发展。'}\n"
        "texts |= {'en-classic': 'The river bank.', 'zh-classic': '曹操大怒。'}\n"
        "for name, text in texts.items():\n"
        "    print(polyseme.load(name).embed(text).shape, polyseme.nearest(name, text.split()[0][:2], 1)"
        " if name.startswith('zh') else '')\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert result.stdout.count("256)") == result.stdout.count("384)") == 2
    assert wheel.stat().st_size < 60_000_000


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(os.environ.get("CC") or "cc") is None, reason="needs a C compiler")
def test_with_a_compiler_the_wheel_contains_the_library(tmp_path):
    wheel = build(tmp_path / "wheel", tmp_path / "source")
    assert not wheel.name.endswith("-any.whl")
    zipfile.ZipFile(wheel).extract(LIBRARY, tmp_path)
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).polyseme_interface())"
    command = [sys.executable, "-c", code, str(tmp_path / LIBRARY)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    from polyseme.model.fast.kernels import native

    assert int(output) == native.INTERFACE
