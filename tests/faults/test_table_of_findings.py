"""The table of findings in docs/threat-model.md names a test that exists for each, in both languages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
FINDINGS = 15


def read_table(page: str) -> dict[int, list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return {int(number): re.findall(r"`([^`]+)`", tests) for number, tests in ROW.findall(text)}


def test_each_finding_has_a_test_that_exists():
    table = read_table("threat-model.md")
    assert list(table) == list(range(1, FINDINGS + 1))
    for tests in table.values():
        assert tests
        for test in tests:
            file, _, name = test.partition("::")
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_both_languages_have_the_same_table():
    assert read_table("threat-model.zh-CN.md") == read_table("threat-model.md")
