"""The comparison with other programs: medians, noise, and what could not be measured."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def rivals() -> ModuleType:
    path = Path(__file__).parent.parent / "benchmarks" / "rivals.py"
    spec = importlib.util.spec_from_file_location("rivals", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rivals"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


def entry(**values: float | str) -> dict[str, float | str]:
    return {"calibration": 0.01, "load": 1.0} | values


def test_a_row_has_the_median_and_the_spread_of_the_rounds(rivals):
    rounds = [entry(speed=speed) for speed in (90.0, 100.0, 120.0)]
    measured = {"embedding / small / BERT-mini fp32": {"1": rounds, "32": [entry(speed=2000.0)]}}
    lines = list(rivals.tables(measured))
    assert "| small | BERT-mini fp32 | 100 | 2,000 | 30% | 0% | 1.0 |" in lines


def test_noise_is_relative_to_the_quietest_run(rivals):
    quiet, noisy = entry(speed=10.0), entry(speed=5.0, calibration=0.015)
    lines = list(
        rivals.tables({"training / small / a": {"0": [quiet]}, "training / small / b": {"0": [noisy]}})
    )
    assert "| small | b | 5 | 0% | 50% | 1.0 |" in lines


def test_a_program_that_cannot_run_is_named_with_the_reason(rivals):
    lines = list(rivals.tables({"training / small / bilm-tf": {"0": [entry(problem="no TensorFlow")]}}))
    assert "training / small / bilm-tf: no TensorFlow." in lines
    assert not any(line.startswith("| small | bilm-tf") for line in lines)


def test_tables_replace_what_stands_between_the_marks(rivals, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- rivals -->\nold\n<!-- end -->\nafter\n")
    rivals.write(page, ["new"])
    assert page.read_text() == "before\n<!-- rivals -->\nnew\n<!-- end -->\nafter\n"


def test_every_program_belongs_to_one_table_and_has_a_name_of_its_own(rivals, tmp_path: Path):
    programs = list(rivals.programs(tmp_path / "text.txt"))
    assert {program.table for program in programs} == {"embedding", "training"}
    assert len({program.key for program in programs}) == len(programs) > 20
