"""Maps of usages: two dimensions, as a page, a picture or a notebook output."""

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


class TitleParser(HTMLParser):
    """Collects the titles of all dots."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.in_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.in_title = tag == "title"

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.titles.append(data)


def test_a_page_shows_every_sentence(tmp_path: Path, index: Index):
    usage_map = polyseme.map_usages(index, ["曹操", "刘备"], tmp_path / "map.html")
    assert len(usage_map.usages) == 18
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert text.count("<circle") == 18
    assert "http" not in text
    titles = "".join(TitleParser(text).titles)
    assert "[刘备] 走 了 <b> 。" in titles


def test_a_notebook_shows_the_map(index: Index):
    usage_map = make_map(index, ["曹操", "刘备"])
    assert repr(usage_map) == "Map(18 usages of 曹操, 刘备)"
    text = usage_map._repr_html_()
    assert text.count("<circle") == 18
    assert "[刘备] 走 了 <b> 。" in "".join(TitleParser(text).titles)
    assert "<b>" not in text


def test_a_picture_can_be_coloured_by_sense(tmp_path: Path, index: Index):
    usage_map = polyseme.map_usages(index, ["曹操"], tmp_path / "map.png", by="sense")
    assert set(usage_map.groups) <= {"曹操 1", "曹操 2", "曹操 3", "曹操 4"}
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="exists already"):
        usage_map.save(tmp_path / "map.png")
    with pytest.raises(UsageError, match=r"\.png or \.html"):
        usage_map.save(tmp_path / "map.gif")


def test_a_map_can_be_made_with_tsne(index: Index):
    words = [word for word in index.words.words if index.words.count(word) > 1]
    usage_map = make_map(index, words, method="tsne")
    assert usage_map.points.shape == (len(usage_map.usages), 2)
    assert np.isfinite(usage_map.points).all()


def test_groups_are_ordered_by_first_word_and_then_by_sense():
    assert plots.order_groups(["b 2", "b 1", "a 1", "b 2"]) == ["b 1", "b 2", "a 1"]


def test_the_first_component_has_the_largest_variance():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(60, 5)) * [5, 3, 0.1, 0.1, 0.1]).astype(np.float32)
    points = project(vectors)
    np.testing.assert_allclose(np.abs(np.corrcoef(points[:, 0], vectors[:, 0])[0, 1]), 1, atol=0.02)
    assert project(vectors[:1]).shape == (1, 2)


def test_unknown_words_and_no_words_are_refused(index: Index):
    with pytest.raises(KeyError):
        polyseme.map_usages(index, ["孙权"])
    with pytest.raises(UsageError, match="needs a word"):
        polyseme.map_usages(index, [])
