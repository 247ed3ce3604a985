"""Properties of all segmentations."""

import re
import time
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import UsageError
from polyseme.segmentations import SEGMENTATIONS, Segmentation
from polyseme.text import segment as segmentation
from polyseme.text.segment import Token, english, split_sentences, split_token_texts, tokenize

ANY_TEXT = st.text(alphabet=st.characters(), max_size=80)  # all code points, including lone surrogates
PIECES = [
    *"aA zZ.?!…,;:'’\"“”()[]-—_@#$%/&1290\n\t\r",
    *"。！？；，「」中文我字",
    "Mr. ",
    "I",
    "http://",
    "n't",
    "No. ",
    "J. ",
    "am I.",
    "\n\n",
    "\f",
]
PIECES += ["\u0301", "👨", "\u200d", "\ufe0f", "ж", "ह", "\u093f", "\u00a0", "\u3000", "．", "e.g. ", "www."]
TYPICAL_TEXT = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def words(text: str, segment: str) -> list[list[str]]:
    return [[token.text for token in sentence] for sentence in split_sentences(text, segment)]


def test_each_segmentation_is_declared_once_and_documented() -> None:
    assert get_args(Segmentation) == tuple(SEGMENTATIONS)
    page = (Path(__file__).parents[3] / "docs" / "segmentation.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", page.partition("\n\n##")[0], re.MULTILINE)[1:] == [*SEGMENTATIONS]


@pytest.mark.parametrize("segment", SEGMENTATIONS)
@settings(max_examples=150, deadline=None)
@given(text=ANY_TEXT | TYPICAL_TEXT)
def test_tokens_have_the_right_offsets_and_cover_the_text(segment, text):
    tokens = tokenize(text, segment)
    last = 0
    for token in tokens:
        assert text[token.start : token.end] == token.text
        assert token.start >= last
        assert token.text
        assert not any(c.isspace() for c in token.text)
        last = token.end
    assert "".join(token.text for token in tokens) == "".join(text.split())


@pytest.mark.parametrize("segment", SEGMENTATIONS)
@settings(max_examples=150, deadline=None)
@given(text=ANY_TEXT | TYPICAL_TEXT)
def test_sentences_contain_all_tokens_in_order(segment, text):
    sentences = split_sentences(text, segment)
    assert all(sentences)
    assert [token for sentence in sentences for token in sentence] == tokenize(text, segment)


@pytest.mark.parametrize("segment", SEGMENTATIONS)
@settings(max_examples=150, deadline=None)
@given(text=ANY_TEXT | TYPICAL_TEXT)
def test_texts_without_offsets_are_those_of_the_tokens(segment, text):
    assert split_token_texts(text, segment) == words(text, segment)
    assert segmentation.token_texts(text, segment) == [token.text for token in tokenize(text, segment)]


@settings(max_examples=300, deadline=None)
@given(text=ANY_TEXT | TYPICAL_TEXT)
def test_the_cache_does_not_change_the_result(text):
    with_cache = split_token_texts(text, "en")
    english._chunk_cache.clear()
    assert split_token_texts(text, "en") == with_cache


def test_the_cache_of_chunks_is_bounded():
    cache = english._ChunkCache(max_chunks=5)
    chunks = [*(f"w{number}" for number in range(100)), "x" * 1000]
    assert [word for chunk in chunks for word in cache[chunk]] == chunks
    assert 0 < len(cache) <= 5
    assert max(map(len, cache)) <= 20


@pytest.mark.parametrize("segment", SEGMENTATIONS)
@pytest.mark.parametrize("text", ["", "   ", "\n\n \t\n"])
def test_text_without_tokens_has_no_sentences(segment, text):
    assert split_sentences(text, segment) == []
    assert tokenize(text, segment) == []


SLOW_UNITS = [
    "a",
    "a+",
    "a.",
    "a'",
    "n't",
    "1,",
    "http://",
    "www.",
    "@",
    ".",
    ". ",
    '?"',
    "中",
    "中!",
    '。"',
    "\n ",
]
SLOW_UNITS += ["I. ", "a-", ".(", "e\u0301", "👨\u200d", "a@b.", " ", "#1", '“a."', "\ud800中"]


@pytest.mark.parametrize("segment", SEGMENTATIONS)
def test_time_is_linear_for_any_text(segment):
    for unit in SLOW_UNITS:
        text = unit * (20_000 // len(unit))
        started = time.process_time()
        split_sentences(text, segment)
        assert time.process_time() - started < 3, repr(unit)


@pytest.mark.parametrize("segment", SEGMENTATIONS)
def test_a_line_of_200_000_characters_without_spaces_takes_a_few_seconds(segment):
    started = time.process_time()
    assert len(split_sentences("a" * 200_000, segment)) == 1
    assert time.process_time() - started < 5


def test_an_unknown_segmentation_lists_the_choices_and_a_suggestion():
    with pytest.raises(UsageError, match=r"split, en, zh, zh-char, letters, auto.*'zh-char'"):
        tokenize("a", "zh_char")
    with pytest.raises(UsageError, match="'english' is not a segmentation"):
        split_sentences("a", "english")


def test_split_reads_a_line_as_a_sentence_and_keeps_the_tokens():
    assert words("He do n't go .\r\n\n  Next  line\u3000here", "split") == [
        ["He", "do", "n't", "go", "."],
        ["Next", "line", "here"],
    ]
    assert tokenize(" a  b", "split") == [Token("a", 1, 2), Token("b", 4, 5)]


def test_auto_segments_each_line_by_its_script():
    text = "我来到北京。他走了。\nThe book is\nwrapped here. It ends.\n清华大学"
    assert words(text, "auto") == [
        ["我", "来到", "北京", "。"],
        ["他", "走", "了", "。"],
        ["The", "book", "is", "wrapped", "here", "."],
        ["It", "ends", "."],
        ["清华大学"],
    ]


def test_auto_segments_a_chinese_line_with_some_english_as_chinese():
    text = "我用Python写程序。好"
    assert split_sentences(text, "auto") == split_sentences(text, "zh")


def test_auto_segments_an_english_line_with_some_chinese_as_english():
    text = "The game (戦場) began in 2010. It was good."
    assert split_sentences(text, "auto") == split_sentences(text, "en")


def test_auto_joins_a_line_without_letters_to_the_line_before():
    assert words("I go\n* * *\n他走了。", "auto")[0] == ["I", "go", "*", "*", "*"]
