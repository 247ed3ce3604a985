"""The code of the pages that needs heavy libraries runs: the `py` blocks, after the others.

A `python` block of these pages runs in the fast tests (tests/test_readme.py); a `py` block only here.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from stores import RecordingNode, postgres_server
from test_readme import ROOT, Block, blocks, run_python, working_folder

__all__ = ["working_folder"]  # a fixture

TRANSLATED = sorted((ROOT / "docs").glob("integrations*.md"))
PAGES = [*TRANSLATED, *sorted((ROOT / "docs").glob("scale*.md"))]
STORE_PAGES = sorted((ROOT / "docs").glob("stores*.md"))


def run_page(page: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the blocks of a page, and compare what they print; returns the names that they define."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block, following in pairwise([*blocks(page), Block("", "", 0)]):
        if block.language in ("python", "py"):
            run_python(page, block, namespace)
            printed = capsys.readouterr().out
            if following.language == "text":
                assert printed == following.code, f"{page}:{following.line}"
    return namespace


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_the_page_runs_with_all_libraries(page, working_folder, capsys, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else Spark takes the first python3 of the PATH
    run_page(page, capsys)


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("page", STORE_PAGES, ids=lambda page: page.name)
def test_every_store_of_the_page_finds_the_usages_that_we_find(page, working_folder, capsys, monkeypatch):
    import elasticsearch

    client = partial(elasticsearch.Elasticsearch, node_class=cast(Any, RecordingNode))
    monkeypatch.setattr(elasticsearch, "Elasticsearch", client)
    with postgres_server() as address:
        monkeypatch.setenv("PGUSER", "postgres")
        monkeypatch.setenv("PGDATABASE", "postgres")
        monkeypatch.setenv("PGHOST", address.partition("host=")[2])
        names = run_page(page, capsys)
    expected = [usage.number for usage in names["index"].nearest(names["query"], 3)]
    for store in ("qdrant", "milvus", "elasticsearch"):
        assert names[f"{store}_ids"] == expected, store


@pytest.mark.parametrize("pages", [TRANSLATED, STORE_PAGES], ids=lambda pages: pages[0].stem)
def test_both_pages_have_the_same_code(pages) -> None:
    english, chinese = ([block[:2] for block in blocks(page)] for page in pages)
    assert english == chinese
