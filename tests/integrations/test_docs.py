"""The code of docs that needs heavy libraries runs: the `py` blocks of a page, after the others.

A `python` block runs in the fast tests (tests/test_readme.py); a `py` block only here.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest

from test_readme import ROOT, Block, blocks, run_python, working_folder

__all__ = ["working_folder"]  # a fixture

TRANSLATED = sorted((ROOT / "docs").glob("integrations*.md"))
PAGES = [*TRANSLATED, ROOT / "docs" / "scale.md"]


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_the_page_runs_with_all_libraries(page, working_folder, capsys, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else Spark takes the first python3 of the PATH
    namespace: dict[str, object] = {"__name__": page.stem}
    for block, following in pairwise([*blocks(page), Block("", "", 0)]):
        if block.language in ("python", "py"):
            run_python(page, block, namespace)
            printed = capsys.readouterr().out
            if following.language == "text":
                assert printed == following.code, f"{page}:{following.line}"


def test_both_pages_have_the_same_code() -> None:
    english, chinese = ([block[:2] for block in blocks(page)] for page in TRANSLATED)
    assert english == chinese
