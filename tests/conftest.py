"""What many tests share: the conformance fixture, models for the program, one thread for tiny products."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from programs import TEXT, Ran, run_program, write_models

torch.set_num_threads(1)  # the tests' products are tiny: threads would only wait for each other
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # how busy a machine is says nothing of the code

WHEEL = "allennlp-0.9.0-py3-none-any.whl"
WHEEL_SHA256 = "353752e7b78e48c450e27889d80a3000c4a9af34f70ff9091b3031ad01320940"
FIXTURE = "allennlp/tests/fixtures/elmo/"
UNREACHABLE = re.compile(r"connection|name resolution|timed out|max retries|proxy|SSLError", re.IGNORECASE)


def fetch_wheel(cache: Path) -> Path:
    """AllenNLP 0.9.0's wheel as a file, from the cache or the package registry; it is never installed."""
    wheel = cache / WHEEL
    if not wheel.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as new:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
            command += ["--retries", "1", "--timeout", "20", "-d", new, "allennlp==0.9.0"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode and UNREACHABLE.search(done.stderr):
                pytest.skip("the package registry, which has the allennlp 0.9.0 fixture, cannot be reached")
            assert done.returncode == 0, done.stderr
            os.replace(Path(new) / WHEEL, wheel)
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert found == WHEEL_SHA256, f"{wheel}: SHA-256 is {found}. Delete the file to fetch it again."
    return wheel


@pytest.fixture(scope="session")
def allennlp_elmo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of AllenNLP's ELMo fixture: a small model, sentences, and the vectors they must get."""
    cache = Path(os.environ.get("POLYSEME_TEST_CACHE", Path.home() / ".cache" / "polyseme" / "tests"))
    folder = tmp_path_factory.mktemp("allennlp")
    with zipfile.ZipFile(fetch_wheel(cache)) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(FIXTURE)])
    return folder / FIXTURE


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def bilm(models: Path) -> str:
    return str(models / "bilm")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    """The program in `tmp_path`, where TEXT is text.txt."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    return run_program
