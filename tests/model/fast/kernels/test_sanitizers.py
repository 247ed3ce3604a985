"""The C library stays within its buffers for all shapes: a driver program under the sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from polyseme.model.fast.kernels import native

COMPILER = os.environ.get("CC") or "cc"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("sanitizer", "threads", "runs"), [("address,undefined", [], 150), ("thread", ["8"], 8)]
)
def test_random_shapes_and_threads_pass_the_sanitizers(tmp_path, sanitizer, threads, runs):
    sources, program = Path(native.__file__).parent, tmp_path / "driver"
    flags = ["-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-pthread"]
    driver = Path(__file__).with_name("driver.c")
    subprocess.run([COMPILER, *flags, f"-I{sources}", str(driver), "-o", str(program)], check=True)
    done = subprocess.run([str(program), *threads], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= runs
