"""The HTML report of a finished run."""

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
from polyseme.text.corpus.prepared import find_sentence_starts, read_types
from polyseme.training.curves import choose_even_ticks, choose_log_ticks, draw_svg
from polyseme.training.report import compute_word_vectors

NOVEL = ("曹操 大怒 。", "刘备 大喜 。", "却说 曹操 引兵 来攻 荆州 。", "刘备 走了 。")


def validation(tokens: int, forward: float, backward: float) -> dict[str, object]:
    return {"event": "validation", "tokens": tokens, "forward": forward, "backward": backward}


class Cells(HTMLParser):
    """Parses the text of all cells and the languages of all rows."""

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


def test_numbers_are_rounded(tmp_path: Path):
    page = report(tmp_path, story.write(tmp_path / "story.txt", 1500))
    assert not [cell for cell in page.cells if re.search(r"\d\.\d{3}|\d{4}", cell)]
    assert any(re.fullmatch(r"\d,\d{3}", cell) for cell in page.cells)
    assert {"training", "held out"} <= set(page.cells)


def test_rows_with_chinese_words_have_the_language_zh(tmp_path: Path):
    text = tmp_path / "novel.txt"
    text.write_text("\n".join(NOVEL * 60) + "\n", encoding="utf-8")
    page = report(tmp_path, text)
    assert "曹操" in page.cells
    assert "zh" in page.languages


def test_rows_with_english_words_do_not_have_the_language_zh(tmp_path: Path):
    page = report(tmp_path, story.write(tmp_path / "story.txt", 300))
    assert "Bruno" in page.cells
    assert "zh" not in page.languages


def test_the_curve_stays_inside_the_plot_and_skips_values_that_are_not_finite():
    svg = draw_svg([validation(10, inf, 900.0), validation(20, 250.0, 300.0), validation(30, 120.0, 130.0)])
    assert "nan" not in svg
    assert "inf" not in svg
    points = [tuple(map(float, point.split(","))) for point in re.findall(r"[\d.]+,[\d.]+(?=[ \"])", svg)]
    assert len(points) == 5
    assert all(0 < x < 720 and 0 < y < 300 for x, y in points)
    assert svg.count("<circle") == 5


def test_a_curve_is_drawn_with_one_validation_and_with_none():
    assert "No validation" in draw_svg([])
    assert draw_svg([validation(10, 50.0, 50.0)]).count("<circle") == 2


@pytest.mark.parametrize(("low", "high"), [(61.8, 118.0), (1.0, 1.0), (2.9, 8e5), (124.0, 124.5), (30, 2e30)])
def test_ticks_are_few_and_cover_all_values(low: float, high: float):
    ticks = choose_log_ticks(low, high)
    assert len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= low
    assert ticks[-1] >= high


@pytest.mark.parametrize("high", [0.0004, 0.15, 0.176, 1.0, 1.5, 2.9, 10.0, 99.0, 1080.0])
def test_the_token_axis_has_round_ticks(high: float):
    ticks = choose_even_ticks(high)
    assert 3 <= len(ticks) <= 11
    assert ticks[0] == 0
    assert high * 0.6 < ticks[-1] <= high * 1.001
    assert all(len(f"{tick:.12g}".strip("0.").replace(".", "").strip("0")) <= 3 for tick in ticks)


def test_the_word_vectors_of_the_report_are_saved_with_the_model(tmp_path: Path):
    page = report(tmp_path, story.write(tmp_path / "story.txt", 1500))
    words = polyseme.open_words(tmp_path / "model")
    word = next(word for word in words.words if word in page.cells)
    neighbours = [neighbour for neighbour, _ in words.nearest(word, 3, min_chars=2)]
    first, usages = page.cells[page.cells.index(word) + 1].split("), ")[0].removesuffix(")").split(" (")
    assert first in neighbours
    assert int(usages.replace(",", "")) == words.count(first)


def test_the_report_uses_the_model_and_corpus_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the model was read from the disk")

    monkeypatch.setattr("polyseme.formats.models.native.read", fail)
    settings = [*story.SETTINGS, "train.epochs=1"]
    text = story.write(tmp_path / "story.txt", 300)
    run = polyseme.pretrain([text], tmp_path / "model", "tiny", settings=settings)
    assert (tmp_path / "model" / "report.html").exists()
    assert run.model.vocab is not None


def test_mean_vectors_from_ids_equal_mean_vectors_from_words(tmp_path: Path):
    settings = [*story.SETTINGS, "train.epochs=1", "model.words.dim=4", "corpus.max_words=6"]
    text = story.write(tmp_path / "story.txt", 300)
    run = polyseme.pretrain([text], tmp_path / "model", "tiny", settings=settings)
    names = [word for block in read_types(run.corpus.folder) for word in block]
    starts = [*find_sentence_starts(run.corpus.train, run.corpus.begin), len(run.corpus.train)]
    sentences = [[names[t] for t in run.corpus.train[a + 1 : b - 1]] for a, b in pairwise(starts)]
    expected = polyseme.mean_vectors(polyseme.load(tmp_path / "model"), sentences, min_count=5)
    words = compute_word_vectors(run.model, run.corpus)
    assert words.words == expected.words
    np.testing.assert_array_equal(words.counts, expected.counts)
    np.testing.assert_allclose(words.vectors, expected.vectors, rtol=0, atol=1e-5)
    np.testing.assert_allclose(words.centre, expected.centre, rtol=0, atol=1e-5)


def test_a_pretrained_model_can_pool_sentences(tmp_path: Path):
    report(tmp_path, story.write(tmp_path / "story.txt", 300))
    elmo = polyseme.load(tmp_path / "model")
    vectors = elmo.embed(["Bruno sat by the river .", "Bruno sat by the river !"], pool="sentence")
    assert vectors.shape == (2, elmo.config.size)
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()


def test_words_of_the_last_pages_have_vectors_too(tmp_path: Path):
    lines = [f"then {word} came to {city} ." for word, city in (("anna", "paris"), ("boris", "rome"))]
    text = tmp_path / "a.txt"
    text.write_text("\n".join([lines[0]] * 400 + [lines[1]] * 400))
    settings = ["model.segment=split", "train.epochs=1", "corpus.valid_share=0.01", "corpus.valid_tokens=10"]
    run = polyseme.pretrain([text], tmp_path / "model", "tiny", settings=settings)
    words = compute_word_vectors(run.model, run.corpus, tokens=600)
    assert {"anna", "boris", "rome"} <= set(words.words)
    assert words.counts.sum() <= 600
    assert abs(words.count("anna") - words.count("boris")) <= 3
    assert f"means of {words.counts.sum():,} usages" in repr(words)
