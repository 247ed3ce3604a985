"""Shared fixtures: the AllenNLP conformance model and models for the command line."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from browsing import CHROMIUM, TIMEOUT_MS
from programs import TEXT, Ran, run_program, write_models

torch.set_num_threads(1)  # products are small in tests: more threads would only wait for each other
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # a busy machine must not fail a test

READS_PROC = [
    "formats/test_hostile.py",
    "io/test_memory_map.py",
    "server/jobs/test_processes.py",
    "server/test_run.py",
    "test_bundled_models.py",
    "training/test_distributed.py",
]
USES_POSIX = [  # fork, SIGKILL, file descriptors, rlimits, symbolic links, paths without a drive
    "faults",
    "formats/models/test_open.py",
    "formats/vectors/test_readers.py",
    "integrations/test_ray.py",
    "io/test_atomic.py",
    "server",
    "test_bulk_embedding.py",
    "test_cli_errors.py",
    "test_elmo_fork.py",
    "test_elmo_input.py",
    "test_examples.py",
    "text/corpus/test_counts.py",
    "text/corpus/test_documents.py",
    "training/test_resume.py",
]
if sys.platform == "win32":
    collect_ignore = READS_PROC + USES_POSIX
elif sys.platform != "linux":
    collect_ignore = READS_PROC

WHEEL = "allennlp-0.9.0-py3-none-any.whl"
WHEEL_SHA256 = "353752e7b78e48c450e27889d80a3000c4a9af34f70ff9091b3031ad01320940"
FIXTURE = "allennlp/tests/fixtures/elmo/"
UNREACHABLE = re.compile(r"connection|name resolution|timed out|max retries|proxy|SSLError", re.IGNORECASE)


def fetch_wheel(cache: Path) -> Path:
    """The wheel of AllenNLP 0.9.0, from the cache or the package registry. It is never installed."""
    wheel = cache / WHEEL
    if not wheel.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as download:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
            command += ["--retries", "1", "--timeout", "20", "-d", download, "allennlp==0.9.0"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode and UNREACHABLE.search(done.stderr):
                pytest.skip("cannot reach the package registry, which has the allennlp 0.9.0 fixture")
            assert done.returncode == 0, done.stderr
            os.replace(Path(download) / WHEEL, wheel)
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert sha256 == WHEEL_SHA256, f"{wheel}: SHA-256 is {sha256}. Delete the file to fetch it again."
    return wheel


@pytest.fixture(scope="session")
def allennlp_elmo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of AllenNLP's ELMo fixture: a small model, sentences and their expected vectors."""
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
    """Run the program in `tmp_path`, which contains TEXT as text.txt."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    return run_program


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """Chromium; see `browsing.Visit`."""
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=TIMEOUT_MS)
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
