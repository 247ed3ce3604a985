"""The table of benchmarks/integrations.py: every row runs, and both of its calls do the same work."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme.elmo import Elmo


@pytest.fixture
def script() -> ModuleType:
    """Not named `benchmark`: langchain-tests brings pytest-benchmark, whose fixture has that name."""
    path = Path(__file__).parents[2] / "benchmarks" / "integrations.py"
    spec = importlib.util.spec_from_file_location("integrations_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config(segment="en")))


def run_rows(script: ModuleType, elmo: Elmo, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Measure every row once on a small model; the lines of the table."""
    script.print_table(elmo, script.make_sentences(4), list(script.ROWS), 1)
    return capsys.readouterr().out.splitlines()[2:]


def test_a_row_is_measured_or_its_missing_library_is_named(script, elmo, capsys):
    lines = run_rows(script, elmo, capsys)
    assert len(lines) == len(script.ROWS)
    assert all(line.count("|") == 5 or "No module named" in line or "needs" in line for line in lines)


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_with_all_libraries_every_row_is_measured(script, elmo, capsys):
    lines = run_rows(script, elmo, capsys)
    assert [line for line in lines if line.count("|") != 5] == []


def test_more_time_of_the_adapter_is_measured_against_the_plain_call(script):
    def work(size: int) -> None:
        np.sort(np.random.default_rng(0).random(size))

    times = script.measure(script.Calls(lambda: work(200_000), lambda: work(800_000)), 5)
    assert times.more > 1
    assert times.plain < times.adapter
