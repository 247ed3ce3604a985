"""Concordance lines, collocates and passages: order, text, counts, and log-likelihood by another library."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UnknownWordError, UsageError
from polyseme.search.collocates import measure_association
from polyseme.search.concordance import label_usages
from polyseme.search.corpus_text import join_texts
from polyseme.search.index import Index

CHAPTERS = {
    "a.txt": [
        "the bank of the river was green .",
        "He sat on the old Bank near the bank of the lake .",
        "a boat went by .",
    ],
    "b.txt": ["money in the bank earns money .", "the bank failed ."],
    "c.txt": ["nothing happened here ."],
}


def make_index(folder: Path, texts: dict[str, list[str]], segment: str = "split", **options: Any) -> Index:
    """An index of files with these lines."""
    (folder / "texts").mkdir()
    for name, lines in texts.items():
        (folder / "texts" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    elmo = Elmo(random_model(small_config()))
    return polyseme.index(elmo, folder / "texts", folder / "index", segment=segment, **options)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return make_index(tmp_path_factory.mktemp("concordance"), CHAPTERS)


@pytest.fixture(scope="module")
def random_index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Many sentences of few words, in several blocks."""
    rng = np.random.default_rng(0)
    words = ["bank", "river", "money", "loan", "boat", "the", "of", ","]
    lines = [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(300)]
    return make_index(tmp_path_factory.mktemp("random"), {"one.txt": lines[:200], "two.txt": lines[200:]})


def test_lines_are_in_the_order_of_the_text_and_show_the_sentences_around_the_word(index: Index):
    result = polyseme.concordance(index, "bank")
    assert (result.total, result.start) == (4, 0)
    assert [
        (line.location.rpartition("/")[2], line.left.strip(), line.right.strip()) for line in result.lines[:2]
    ] == [
        ("a.txt:1", "the", "of the river was green . He sat on the old Bank near the"),
        (
            "a.txt:2",
            "of the river was green . He sat on the old Bank near the",
            "of the lake . a boat went by .",
        ),
    ]
    assert result.lines[3].left == "money in the bank earns money . the "  # not of the other document
    assert all(len(line.left) <= 60 and len(line.right) <= 60 for line in result.lines)
    short = polyseme.concordance(index, "bank", width=9).lines[1]
    assert (short.left, short.right) == ("near the ", " of the")  # whole words
    assert polyseme.concordance(index, "bank", width=0).lines[0].left == ""


def test_lines_are_sorted_by_the_words_beside_the_word(index: Index):
    right = polyseme.concordance(index, "bank", sort="right").lines
    assert [line.right.split()[:3] for line in right] == [
        ["earns", "money", "."],
        ["failed", "."],
        ["of", "the", "lake"],
        ["of", "the", "river"],
    ]
    left = polyseme.concordance(index, "bank", sort="left").lines
    assert [line.left.split()[-2:] for line in left] == [
        ["the"],
        [".", "the"],
        ["in", "the"],
        ["near", "the"],
    ]


def test_chinese_neighbours_are_sorted_by_pinyin(tmp_path: Path):
    lines = ["见 赵云 。", "见 曹操 。", "见 刘备 。", "见 Bai 。", "见 张飞 。"]
    index = make_index(tmp_path, {"a.txt": lines})
    right = polyseme.concordance(index, "见", sort="right").lines
    assert [line.right.split()[0] for line in right] == ["Bai", "曹操", "刘备", "张飞", "赵云"]


def test_pages_of_lines_are_the_whole(random_index: Index):
    whole = polyseme.concordance(random_index, "bank", k=1000, sort="left")
    assert whole.total == random_index.count("bank") == len(whole.lines)
    pages = [
        polyseme.concordance(random_index, "bank", k=17, start=start, sort="left").lines
        for start in range(0, whole.total, 17)
    ]
    assert list(itertools.chain(*pages)) == whole.lines
    assert sorted(line.number for line in whole.lines) == random_index.usage_numbers("bank").tolist()
    assert polyseme.concordance(random_index, "bank", start=10**9).lines == []


def test_the_most_similar_usages_come_first(random_index: Index):
    numbers = random_index.usage_numbers("bank")
    chosen = int(numbers[7])
    lines = polyseme.concordance(random_index, "bank", k=1000, sort="similarity", usage=chosen).lines
    cosines = random_index.vectors(numbers) @ random_index.vectors(numbers[7:8])[0]
    assert lines[0].number == chosen
    assert lines[0].cosine == pytest.approx(1, abs=1e-5)
    shown = [line.cosine or 0.0 for line in lines]
    expected = dict(zip(numbers.tolist(), cosines.tolist(), strict=True))
    np.testing.assert_allclose(shown, sorted(expected.values())[::-1], atol=1e-5)
    np.testing.assert_allclose(shown, [expected[line.number] for line in lines], atol=1e-5)


def test_lines_by_sense_have_the_labels_of_senses(random_index: Index):
    senses = polyseme.senses(random_index, "bank", groups=True)
    lines = polyseme.concordance(random_index, "bank", k=1000, sort="sense", groups=True).lines
    labels = dict(zip(senses.numbers.tolist(), senses.labels.tolist(), strict=True))
    assert [line.sense for line in lines] == [labels[line.number] for line in lines]
    assert [line.sense for line in lines] == sorted(labels.values())
    known = polyseme.concordance(random_index, "bank", k=1000, sort="sense", computed=senses)
    assert known.lines == lines
    assert known.senses is senses


def test_usages_that_were_not_clustered_get_the_nearest_sense(random_index: Index):
    senses = polyseme.senses(random_index, "bank", groups=True)
    numbers = random_index.usage_numbers("bank")
    labels = label_usages(random_index, senses, numbers)
    np.testing.assert_array_equal(labels, senses.labels)
    part = vars(senses) | {"numbers": senses.numbers[::2], "labels": senses.labels[::2]}
    guessed = label_usages(random_index, type(senses)(**part), numbers)
    np.testing.assert_array_equal(guessed[::2], senses.labels[::2])
    assert set(guessed.tolist()) <= set(senses.labels.tolist())


def test_a_collocate_selects_lines(index: Index):
    lines = polyseme.concordance(index, "bank", collocate="money", window=2).lines
    assert [line.line for line in lines] == [1]
    assert polyseme.concordance(index, "bank", collocate="river", window=3).total == 1
    with pytest.raises(UsageError, match="No usage has 'lake' within 1 words"):
        polyseme.concordance(index, "bank", collocate="lake", window=1)
    with pytest.raises(UnknownWordError):
        polyseme.concordance(index, "bank", collocate="zebra")


def test_usages_are_counted_over_documents(index: Index):
    counts = polyseme.concordance(index, "bank", k=1).documents
    assert [(row.name, row.count, row.total) for row in counts] == [
        ("a.txt", 2, 26),
        ("b.txt", 2, 11),
        ("c.txt", 0, 4),
    ]
    assert counts[0].per_10_000 == pytest.approx(10_000 * 2 / 26)
    part = polyseme.concordance(index, "bank", documents="b.txt")
    assert [(row.name, row.total) for row in part.documents] == [("b.txt", 11)]
    assert part.total == 2


def test_usages_are_counted_by_a_field_of_the_metadata(tmp_path: Path):
    texts = {"1901_x.txt": ["the bank ."], "1899_y.txt": ["a bank , the bank ."], "1905_z.txt": ["no ."]}
    index = make_index(tmp_path, texts, meta=r"(?P<year>\d{4})")
    counts = polyseme.concordance(index, "bank", by="year/10").documents
    assert [(row.name, row.count, row.total) for row in counts] == [("1890-1899", 2, 6), ("1900-1909", 1, 5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0, expected 1 or more"),
        ({"start": -1}, "start is -1"),
        ({"window": 0}, "window is 0"),
        ({"width": -1}, "width is -1"),
        ({"sort": "size"}, "sort is 'size', expected one of document, left"),
        ({"sort": "similarity"}, "needs `usage`, the number of a line"),
        ({"usage": 3}, "is what `usage` needs"),
        ({"sort": "similarity", "usage": 10**6}, "There is no usage 1000000: the index has usages 0 to 40"),
    ],
)
def test_invalid_arguments_of_a_concordance_are_refused(index: Index, options: dict, message: str):
    with pytest.raises(UsageError, match=message):
        polyseme.concordance(index, "bank", **options)


def test_log_likelihood_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    size, near_total = 5000, 400
    totals = rng.integers(1, 300, 50)
    near = np.minimum(rng.integers(0, 40, 50), totals)
    found = measure_association(near, near_total, totals, size)
    for row in range(50):
        table = np.array(
            [
                [near[row], totals[row] - near[row]],
                [near_total - near[row], size - near_total - totals[row] + near[row]],
            ]
        )
        g, _, _, expected = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
        assert found.log_likelihood[row] == pytest.approx(g, rel=1e-9, abs=1e-9)
        assert found.expected[row] == pytest.approx(expected[0, 0])


def test_collocates_are_counted_once_for_the_nearest_usage(random_index: Index):
    window = 3
    rows: dict[str, list[int]] = {}
    files = [document.file for document in random_index.listed_documents]
    total = near_total = 0
    totals: dict[str, int] = {}
    for line in itertools.chain(*(Path(file).read_text().splitlines() for file in files)):
        words = line.split()
        places = [place for place, word in enumerate(words) if word == "bank"]
        for place, word in enumerate(words):
            if word == "bank":
                continue
            total += 1
            totals[word] = totals.get(word, 0) + 1
            distances = [other - place for other in places if abs(other - place) <= window]
            if distances:
                near_total += 1
                side = min(distances, key=abs)
                counts = rows.setdefault(word, [0, 0])
                counts[side < 0] += 1
    found = polyseme.collocates(random_index, "bank", 100, window=window, min_count=1, all_words=True)
    assert found
    for collocate in found:
        left, right = rows[collocate.word]
        assert (collocate.count, collocate.total) == (left + right, totals[collocate.word])
        assert abs(collocate.left - left) <= sum(rows[collocate.word])  # ties go to either side
        assert collocate.left + collocate.right == collocate.count
        assert collocate.expected == pytest.approx(totals[collocate.word] * near_total / total)
        assert collocate.count > collocate.expected
    assert [row.log_likelihood for row in found] == sorted(
        (row.log_likelihood for row in found), reverse=True
    )


def test_collocates_are_content_words_unless_all_are_asked_for(index: Index):
    words = {row.word for row in polyseme.collocates(index, "bank", min_count=1)}
    assert "river" in words
    assert not words & {"the", ".", "bank"}
    assert "the" in {row.word for row in polyseme.collocates(index, "bank", min_count=1, all_words=True)}
    assert {row.count for row in polyseme.collocates(index, "bank", min_count=2)} <= {2, 3, 4}


def test_collocates_by_sense_add_up(random_index: Index):
    senses = polyseme.senses(random_index, "bank", groups=True)
    found = polyseme.collocates(random_index, "bank", min_count=1, all_words=True, senses=True, groups=True)
    assert all(len(row.senses) == len(senses.senses) and sum(row.senses) == row.count for row in found)
    assert polyseme.collocates(random_index, "bank", min_count=1, all_words=True)[0].senses == ()


def test_collocates_of_a_part_are_counted_in_it(index: Index):
    found = polyseme.collocates(index, "bank", documents="b.txt", window=1, min_count=1, all_words=True)
    assert {row.word: (row.count, row.total) for row in found} == {
        "the": (2, 2),
        "earns": (1, 1),
        "failed": (1, 1),
    }
    with pytest.raises(UsageError, match="min_count is 0"):
        polyseme.collocates(index, "bank", min_count=0)


def test_a_passage_is_the_text_around_a_usage(index: Index):
    number = polyseme.concordance(index, "bank").lines[1].number
    passage = polyseme.passage(index, number, 1)
    assert passage.marked() == "\n".join(
        [
            "the bank of the river was green .",
            "He sat on the old Bank near the [bank] of the lake .",
            "a boat went by .",
        ]
    )
    assert [line for line, _ in passage.paragraphs] == [1, 2, 3]
    assert (passage.before, passage.after, passage.complete) == (False, False, True)
    alone = polyseme.passage(index, number, 0)
    assert (len(alone.paragraphs), alone.before, alone.after) == (1, True, True)
    text = alone.paragraphs[0][1]
    assert text[alone.start : alone.stop] == "bank"
    with pytest.raises(UsageError, match="There is no usage 41: the index has usages 0 to 40"):
        polyseme.passage(index, len(index))
    with pytest.raises(UsageError, match="sentences is -1"):
        polyseme.passage(index, 0, -1)


def test_sentences_of_a_line_or_a_wrapped_paragraph_are_one_paragraph(tmp_path: Path):
    (tmp_path / "zh").mkdir()
    (tmp_path / "en").mkdir()
    zh = make_index(tmp_path / "zh", {"a.txt": ["操大怒。欲斩之。", "玄德走。"]}, segment="zh-char")
    passage = polyseme.passage(zh, 0)
    assert passage.marked() == "[操]大怒。欲斩之。\n玄德走。"
    lines = [
        "He went to the bank of the river, which was",
        "green. She “stayed.”",
        "",
        "It rained. He came back.",
    ]
    en = make_index(tmp_path / "en", {"a.txt": lines}, segment="en")
    passage = polyseme.passage(en, int(en.usage_numbers("rained")[0]))
    assert passage.paragraphs == [
        (1, "He went to the bank of the river, which was green. She “stayed.”"),
        (4, "It rained. He came back."),
    ]


def test_an_index_of_selected_words_says_that_its_text_is_not_complete(tmp_path: Path):
    index = make_index(tmp_path, {"a.txt": ["the bank .", "a boat .", "the bank ."]}, only=["bank"])
    passage = polyseme.passage(index, 0)
    assert not passage.complete
    assert [line for line, _ in passage.paragraphs] == [1, 3]


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("He went.”", "“Oh!", "He went.” “Oh!"),
        ("操曰：“可。”", "玄德走。", "操曰：“可。”玄德走。"),
        ("", "a", "a"),
        ("a ", "b", "a b"),
    ],
)
def test_sentences_are_joined_as_they_are_written(first: str, second: str, joined: str):
    assert join_texts(first, second) == joined
