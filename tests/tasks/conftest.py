"""Small files and a small ELMo, shared by the tests of tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

import task_files as toys
from polyseme.elmo import Elmo


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.write(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return toys.elmo()
