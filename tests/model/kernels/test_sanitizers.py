"""The C library touches no memory but its own, whatever the shapes: a driver under the sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from polyseme.model.kernels import native

COMPILER = os.environ.get("CC") or "cc"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler")
def test_random_shapes_stay_within_their_memory(tmp_path):
    sources, program = Path(native.__file__).parent, tmp_path / "driver"
    flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    driver = Path(__file__).with_name("driver.c")
    subprocess.run([COMPILER, *flags, f"-I{sources}", str(driver), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 150
