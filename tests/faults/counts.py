"""Print the numbers of cases in "How it is tested" of docs/threat-model.md.

tests/faults, tests/server  ->  pytest's collection  ->  numbers; with --kills also the kills of a run

PYTHONPATH=src:tests python -m faults.counts [--kills]
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import kill_points
from faults import test_index_states
from faults.readers import READERS
from faults.test_mutations import CASES, EXPENSIVE, MANY
from faults.verbs import VERBS

ROOT = Path(__file__).parents[2]
FILES = (
    "tests/faults/test_findings.py",
    "tests/faults/test_full_disk.py",
    "tests/faults/test_locks.py",
    "tests/faults/test_signals.py",
)
KILLS = ("tests/faults/test_kills.py", "tests/faults/test_index_states.py")


class Collected:
    """Counts the tests that pytest collects, by file."""

    def __init__(self) -> None:
        self.tests: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Count them."""
        self.tests.update(item.nodeid.partition("::")[0] for item in items)


def run(*arguments: str) -> tuple[int, Counter[str]]:
    """Run pytest without its output; returns its exit code and the numbers of tests."""
    collected = Collected()
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        options = ("-p", "no:cacheprovider", "--rootdir", str(ROOT), "-W", "ignore:Module already imported")
        code = pytest.main([*arguments, *options], [collected])
    return int(code), collected.tests


def count_cases() -> tuple[int, int]:
    """Cases of damaged input in `make test` and in `make test-slow`."""
    cases = [EXPENSIVE.get(name, (CASES, MANY)) for name in READERS]
    return sum(fast for fast, _ in cases), sum(slow for _, slow in cases)


def count_sequences() -> int:
    """Random sequences of the state machines."""
    from server.jobs import test_queue_states

    machines = (test_index_states.TestAdditions, test_queue_states.TestRequests)
    return sum(machine.settings.max_examples for machine in machines)


def main() -> None:
    """Print all numbers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kills", action="store_true", help="also kill the verbs, and count (minutes)")
    arguments = parser.parse_args()
    fast, slow = count_cases()
    print(f"{'readers':36} {len(READERS):,}")
    print(f"{'damaged inputs':36} {fast:,}; slow {slow:,}")
    print(f"{'sequences of state machines':36} {count_sequences():,}")
    print(f"{'commands that write':36} {len(VERBS):,}")
    _, tests = run("--collect-only", *(str(ROOT / file) for file in FILES))
    for file in FILES:
        print(f"{file:36} {tests[file]:,}")
    if arguments.kills:
        before = kill_points.points
        code, _ = run(*(str(ROOT / file) for file in KILLS), "-m", "not slow")
        print(f"{'kills':36} {kill_points.points - before:,}; exit code {code}")


if __name__ == "__main__":
    main()
