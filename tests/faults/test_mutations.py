"""Every reader refuses damaged input in one line, or reads it: no traceback, hang, crash or NaN."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.attack import attack
from faults.readers import READERS, has_only_finite_numbers

CASES, MANY = 7, 400  # of each reader
EXPENSIVE = {
    "task-run": (1, 40),
    "checkpoint": (2, 60),
    "native-zh": (2, 60),
    "book": (1, 40),
    **dict.fromkeys((name for name in READERS if name.startswith("task-") and name != "task-run"), (3, 150)),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_input_is_refused_in_one_line_or_read(name: str, tmp_path: Path, capsys):
    cases, _ = EXPENSIVE.get(name, (CASES, MANY))
    ends, failures = attack([name], tmp_path, cases, limited=False)
    with capsys.disabled():
        print(f" {name}: {dict(ends)}", end="")
    assert not failures, "\n".join(map(str, failures)) + failures[0].trace
    assert ends.total() == cases


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_thousands_of_damaged_inputs_stay_within_time_and_memory(name: str, tmp_path: Path, capsys):
    _, cases = EXPENSIVE.get(name, (CASES, MANY))
    ends, failures = attack([name], tmp_path, cases, seed=1000, limited=True)
    with capsys.disabled():
        print(f" {name}: {dict(ends)}", end="")
    assert not failures, "\n".join(map(str, failures)) + failures[0].trace
    assert ends.total() == cases


@pytest.mark.parametrize("name", [name for name in READERS if not name.startswith("file-")])
def test_the_intact_input_of_a_reader_is_read(name: str, tmp_path: Path):
    reader = READERS[name]
    reader.make(tmp_path)
    assert has_only_finite_numbers(reader.read(tmp_path))
