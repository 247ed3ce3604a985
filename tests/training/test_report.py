"""The page of a finished run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest

import polyseme
import training_story as story
from polyseme.text.corpus.prepared import read_types, sentence_starts
from polyseme.training.curves import draw_svg, even_ticks, log_ticks
from polyseme.training.report import compute_word_vectors

NOVEL = ("曹操 大怒 。", "刘备 大喜 。", "却说 曹操 引兵 来攻 荆州 。", "刘备 走了 。")


def line(tokens: int, forward: float, backward: float) -> dict[str, object]:
    return {"event": "validation", "tokens": tokens, "forward": forward, "backward": backward}


class Cells(HTMLParser):
    """The text of all cells, and the languages of all rows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.languages: list[str | None] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag in ("td", "th")
        if self.inside:
            self.cells.append("")
        if tag == "tr":
            self.languages.append(dict(attributes).get("lang"))

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells[-1] += data.strip()


def report(tmp_path: Path, text: Path) -> Cells:
    settings = [*story.SETTINGS, "train.epochs=1"]
    polyseme.pretrain([text], tmp_path / "model", "tiny", settings=settings)
    return Cells((tmp_path / "model" / "report.html").read_text(encoding="utf-8"))


def test_figures_are_rounded_for_people(tmp_path: Path):
    page = report(tmp_path, story.write(tmp_path / "story.txt", 1500))
    assert not [cell for cell in page.cells if re.search(r"\d\.\d{3}|\d{4}", cell)]
    assert any(re.fullmatch(r"\d,\d{3}", cell) for cell in page.cells)
    assert {"training", "held out"} <= set(page.cells)


def test_chinese_words_are_marked_as_chinese(tmp_path: Path):
    text = tmp_path / "novel.txt"
    text.write_text("\n".join(NOVEL * 60) + "\n", encoding="utf-8")
    page = report(tmp_path, text)
    assert "曹操" in page.cells
    assert "zh" in page.languages


def test_english_words_are_not(tmp_path: Path):
    page = report(tmp_path, story.write(tmp_path / "story.txt", 300))
    assert "Bruno" in page.cells
    assert "zh" not in page.languages


def test_the_drawing_keeps_within_its_frame_and_leaves_out_what_is_not_finite():
    drawn = draw_svg([line(10, inf, 900.0), line(20, 250.0, 300.0), line(30, 120.0, 130.0)])
    assert "nan" not in drawn
    assert "inf" not in drawn
    places = [tuple(map(float, place.split(","))) for place in re.findall(r"[\d.]+,[\d.]+(?=[ \"])", drawn)]
    assert len(places) == 5
    assert all(0 < x < 720 and 0 < y < 300 for x, y in places)
    assert drawn.count("<circle") == 5


def test_a_run_without_validations_or_with_one_has_a_page_too():
    assert "No validation" in draw_svg([])
    assert draw_svg([line(10, 50.0, 50.0)]).count("<circle") == 2


@pytest.mark.parametrize(("low", "high"), [(61.8, 118.0), (1.0, 1.0), (2.9, 8e5), (124.0, 124.5), (30, 2e30)])
def test_ticks_are_few_and_hold_all_values(low: float, high: float):
    ticks = log_ticks(low, high)
    assert len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= low
    assert ticks[-1] >= high


@pytest.mark.parametrize("high", [0.0004, 0.15, 0.176, 1.0, 1.5, 2.9, 10.0, 99.0, 1080.0])
def test_the_axis_of_tokens_has_round_marks(high: float):
    ticks = even_ticks(high)
    assert 3 <= len(ticks) <= 11
    assert ticks[0] == 0
    assert high * 0.6 < ticks[-1] <= high * 1.001
    assert all(len(f"{tick:.12g}".strip("0.").replace(".", "").strip("0")) <= 3 for tick in ticks)


def test_the_vectors_behind_the_neighbours_stay_with_the_model(tmp_path: Path):
    page = report(tmp_path, story.write(tmp_path / "story.txt", 1500))
    words = polyseme.open_words(tmp_path / "model")
    word = next(word for word in words.words if word in page.cells)
    near = [other for other, _ in words.nearest(word, 3, min_chars=2)]
    assert page.cells[page.cells.index(word) + 1].split(", ")[0] in near


def test_the_report_takes_model_and_text_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the model was read from the disk")

    monkeypatch.setattr("polyseme.formats.models.native.read", refuse)
    settings = [*story.SETTINGS, "train.epochs=1"]
    text = story.write(tmp_path / "story.txt", 300)
    run = polyseme.pretrain([text], tmp_path / "model", "tiny", settings=settings)
    assert (tmp_path / "model" / "report.html").exists()
    assert run.model.vocab is not None


def test_the_mean_vectors_by_ids_are_those_by_words(tmp_path: Path):
    settings = [*story.SETTINGS, "train.epochs=1", "model.words.dim=4", "corpus.max_words=6"]
    text = story.write(tmp_path / "story.txt", 300)
    run = polyseme.pretrain([text], tmp_path / "model", "tiny", settings=settings)
    names = [word for block in read_types(run.corpus.folder) for word in block]
    starts = sentence_starts(run.corpus.train, run.corpus.begin)
    sentences = [[names[t] for t in run.corpus.train[a + 1 : b - 1]] for a, b in pairwise(starts)]
    expected = polyseme.mean_vectors(polyseme.load(tmp_path / "model"), sentences, min_count=5)
    words = compute_word_vectors(run.model, run.corpus)
    assert words.words == expected.words
    np.testing.assert_array_equal(words.counts, expected.counts)
    np.testing.assert_allclose(words.vectors, expected.vectors, rtol=0, atol=1e-5)
    np.testing.assert_allclose(words.centre, expected.centre, rtol=0, atol=1e-5)
