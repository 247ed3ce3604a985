"""Lines of one or more files are segmented into sentences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polyseme.errors import UsageError
from polyseme.segmentations import SEGMENTATIONS
from polyseme.text.reading import Line, read_lines
from polyseme.text.segment import split_sentences
from polyseme.text.segment.stream import group_lines, segment_lines

ENGLISH = "The bank\nfailed. He left\nfor Paris.\n\nIt rained.\n \t\nNo end here\n"
CHINESE = "他走了。下雨了！\n第二\n段。\n\n完"


def lines(text: str, source: str = "x") -> list[Line]:
    return [Line(source, number, line) for number, line in enumerate(text.split("\n"), start=1)]


def words(text: str, segment: str) -> list[str]:
    return [" ".join(sentence) for sentence in segment_lines(lines(text), segment)]


def test_split_gives_one_sentence_per_line_and_an_empty_one_for_a_blank_line():
    text = "the  bank\n\n \tfailed .\n\u3000\nx"
    assert list(segment_lines(lines(text), "split")) == [["the", "bank"], [], ["failed", "."], [], ["x"]]


def test_english_sentences_cross_line_breaks_but_not_blank_lines():
    expected = ["The bank failed .", "He left for Paris .", "It rained .", "No end here"]
    assert words(ENGLISH, "en") == expected
    assert words(ENGLISH, "auto") == expected


@pytest.mark.parametrize("segment", ["zh", "zh-char"])
def test_chinese_sentences_end_with_their_line(segment):
    sentences = words(CHINESE, segment)
    assert [sentence.replace(" ", "") for sentence in sentences] == [
        "他走了。",
        "下雨了！",
        "第二",
        "段。",
        "完",
    ]


def test_auto_segments_each_paragraph_by_its_script():
    assert words("The bank\nfailed.\n\n他走了。下雨了！", "auto") == [
        "The bank failed .",
        "他 走 了 。",
        "下雨 了 ！",
    ]


@pytest.mark.parametrize("segment", SEGMENTATIONS)
@pytest.mark.parametrize("text", [ENGLISH, CHINESE, ENGLISH + CHINESE])
def test_a_stream_of_lines_has_the_sentences_of_the_whole_text(segment, text):
    whole = [[token.text for token in sentence] for sentence in split_sentences(text, segment)]
    assert [sentence for sentence in segment_lines(lines(text), segment) if sentence] == whole


@pytest.mark.parametrize("segment", SEGMENTATIONS)
@pytest.mark.parametrize("text", ["", "\n", " \n\t\n\u3000"])
def test_blank_text_has_no_tokens(segment, text):
    sentences = list(segment_lines(lines(text), segment))
    assert not any(sentences)
    assert len(sentences) == (len(text.split("\n")) if segment == "split" else 0)
    assert list(segment_lines([], segment)) == []


def test_a_sentence_does_not_cross_the_end_of_a_file(tmp_path):
    (tmp_path / "a.txt").write_text("The bank")
    (tmp_path / "b.txt").write_text("failed . He left")
    assert [" ".join(s) for s in segment_lines(read_lines(tmp_path), "en")] == [
        "The bank",
        "failed .",
        "He left",
    ]


@pytest.mark.parametrize("segment", SEGMENTATIONS)
def test_no_more_lines_are_read_than_a_sentence_needs(segment):
    lines_read = 0

    def endless_lines() -> Iterator[Line]:
        nonlocal lines_read
        while True:
            lines_read += 1
            yield Line("x", lines_read, "" if lines_read % 3 == 0 else "The bank failed.")

    sentences = segment_lines(endless_lines(), segment)
    for _ in range(4):
        next(sentences)
    assert lines_read <= 10


def test_a_very_long_paragraph_is_split_at_line_breaks():
    text = "\n".join(["a b c d"] * 50 + ["e" * 100] + ["f"])
    sentences = segment_lines(lines(text), "en", max_characters=20)
    assert [token for sentence in sentences for token in sentence] == text.split()
    sizes = [len(unit.text) for unit in group_lines(lines(text), "en", max_characters=20)]
    # A line is never split; short lines are segmented together, up to the limit.
    assert max(sizes) == 100
    assert sizes.count(len("a b c d\na b c d")) == 25


@pytest.mark.parametrize("text", [[], [Line("x", 1, "The bank failed.")]])
def test_an_unknown_segmentation_is_refused_before_a_line_is_read(text):
    with pytest.raises(UsageError, match=r"'english' is not a segmentation\. Choose one of split, en"):
        segment_lines(iter(text), "english")
