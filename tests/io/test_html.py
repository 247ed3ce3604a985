"""Tables of results: escaped HTML for notebooks, aligned text for the terminal."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from html.parser import HTMLParser
from typing import NamedTuple

import pytest

from polyseme.io.html import Cell, Highlight, format_table, render_table
from polyseme.io.result_list import ResultList

HOSTILE = [
    "<script>alert(1)</script>",
    "</td><img src=x onerror=alert(1)>",
    '" onmouseover="x',
    "&lt;b&gt;",
    "'",
]


class PageParser(HTMLParser):
    """Collects the tags and the text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style", "colspan"}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_escaped_everywhere(hostile: str) -> None:
    rows: list[list[Cell]] = [[hostile, Highlight(hostile, hostile, hostile)]]
    page = PageParser(render_table([hostile, "sentence"], rows, caption=hostile))
    assert set(page.tags) == {"table", "p", "thead", "tbody", "tr", "th", "td", "b"}
    assert page.text == [hostile, hostile, "sentence", hostile, hostile, hostile, hostile]


def test_long_tables_are_truncated_with_a_note() -> None:
    rows = [[number] for number in range(60)]
    assert render_table(["n"], rows).count("<tr>") == 1 + 50 + 1
    assert "… and 10 more" in render_table(["n"], rows)
    assert format_table(["n"], rows, max_rows=1) == "n\n0\n… and 59 more"


def test_text_tables_align_wide_characters_and_numbers() -> None:
    table = format_table(
        ["word", "cosine"], [["曹操", 0.51236], ["he", -12.3], ["a\nb", None]], caption="Near"
    )
    assert table.splitlines() == ["Near", "word  cosine", "曹操    0.51", "he    -12.30", "a b"]


class Scored(NamedTuple):
    word: str
    score: float

    def as_row(self) -> dict[str, Cell]:
        return {"word": self.word, "score": self.score}


def test_a_result_list_is_a_sequence_equal_to_lists_and_tuples() -> None:
    results = ResultList([Scored("a", 0.5), Scored("b", 0.25)], "Nearest to c")
    assert results == [("a", 0.5), ("b", 0.25)] == results
    assert results == (("a", 0.5), ("b", 0.25))
    assert results != [("a", 0.5)]
    assert (len(results), results[0].word, [word for word, _ in results]) == (2, "a", ["a", "b"])
    assert isinstance(results[:1], ResultList)
    assert results[:1].caption == "Nearest to c"
    assert hash(results) == hash(tuple(results))
    assert json.loads(json.dumps(results)) == [["a", 0.5], ["b", 0.25]]
    with pytest.raises(TypeError):
        results[0] = results[1]  # type: ignore[index]


def test_a_result_list_has_a_table_and_survives_pickle_and_copy() -> None:
    results = ResultList([Scored("<b>", 0.5)], "Nearest")
    assert repr(results) == "Nearest\nword   score\n<b>   0.5000"
    assert "&lt;b&gt;" in results._repr_html_()
    assert repr(ResultList()) == "[]"
    assert "<table>" in ResultList()._repr_html_()
    for copied in (pickle.loads(pickle.dumps(results)), copy.copy(results), copy.deepcopy(results)):
        assert copied == results
        assert copied.caption == "Nearest"


def test_the_helpers_load_neither_torch_nor_numpy() -> None:
    code = "import sys, polyseme.io.result_list; print({'torch', 'numpy', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
