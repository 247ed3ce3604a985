"""Usages on a plane."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.io import plots
from polyseme.search.index import Index
from polyseme.search.maps import make_map, project

LINES = ["刘备 走 了 <b> 。", "曹操 大怒 & 走 。", "曹操 引 兵"] * 6


@pytest.fixture
def index(tmp_path: Path) -> Index:
    (tmp_path / "a.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return polyseme.index(Elmo(random_model(small_config())), tmp_path / "a.txt", tmp_path / "index")


class Titles(HTMLParser):
    """The titles of all dots."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = tag == "title"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found.append(data)


def test_a_page_shows_every_sentence(tmp_path: Path, index: Index):
    found = polyseme.map_usages(index, ["曹操", "刘备"], tmp_path / "map.html")
    assert len(found.usages) == 18
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert text.count("<circle") == 18
    assert "http" not in text
    titles = "".join(Titles(text).found)
    assert "[刘备] 走 了 <b> 。" in titles


def test_a_map_shows_itself_in_a_notebook(index: Index):
    found = make_map(index, ["曹操", "刘备"])
    assert repr(found) == "Map(18 usages of 曹操, 刘备)"
    text = found._repr_html_()
    assert text.count("<circle") == 18
    assert "[刘备] 走 了 <b> 。" in "".join(Titles(text).found)
    assert "<b>" not in text


def test_a_picture_is_drawn_by_sense(tmp_path: Path, index: Index):
    found = polyseme.map_usages(index, ["曹操"], tmp_path / "map.png", by="sense")
    assert set(found.groups) <= {"曹操 1", "曹操 2", "曹操 3", "曹操 4"}
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="exists already"):
        found.save(tmp_path / "map.png")
    with pytest.raises(UsageError, match=r"\.png or \.html"):
        found.save(tmp_path / "map.gif")


def test_a_map_by_neighbours(index: Index):
    words = [word for word in index.words.words if index.words.count(word) > 1]
    found = make_map(index, words, method="tsne")
    assert found.points.shape == (len(found.usages), 2)
    assert np.isfinite(found.points).all()


def test_legends_have_words_as_they_come_and_senses_order_groups():
    assert plots.order_groups(["b 2", "b 1", "a 1", "b 2"]) == ["b 1", "b 2", "a 1"]


def test_components_keep_the_largest_spread():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(60, 5)) * [5, 3, 0.1, 0.1, 0.1]).astype(np.float32)
    points = project(vectors)
    np.testing.assert_allclose(np.abs(np.corrcoef(points[:, 0], vectors[:, 0])[0, 1]), 1, atol=0.02)
    assert project(vectors[:1]).shape == (1, 2)


def test_words_must_be_there(index: Index):
    with pytest.raises(KeyError):
        polyseme.map_usages(index, ["孙权"])
    with pytest.raises(UsageError, match="needs a word"):
        polyseme.map_usages(index, [])
