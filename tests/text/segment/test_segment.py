"""What holds for every way to segment text."""

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

ODD = st.text(alphabet=st.characters(), max_size=80)  # all code points, lone surrogates too
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
WRITTEN = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def words(text: str, how: str) -> list[list[str]]:
    return [[token.text for token in sentence] for sentence in split_sentences(text, how)]


def test_each_segmentation_is_declared_once_and_documented() -> None:
    assert get_args(Segmentation) == tuple(SEGMENTATIONS)
    page = (Path(__file__).parents[3] / "docs" / "segmentation.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", page.partition("\n\n##")[0], re.MULTILINE)[1:] == [*SEGMENTATIONS]


@pytest.mark.parametrize("how", SEGMENTATIONS)
@settings(max_examples=150, deadline=None)
@given(text=ODD | WRITTEN)
def test_every_token_stands_where_it_says(how, text):
    found = tokenize(text, how)
    last = 0
    for token in found:
        assert text[token.start : token.end] == token.text
        assert token.start >= last
        assert token.text
        assert not any(c.isspace() for c in token.text)
        last = token.end
    kept = "".join(token.text for token in found)
    assert kept == "".join(text.split())


@pytest.mark.parametrize("how", SEGMENTATIONS)
@settings(max_examples=150, deadline=None)
@given(text=ODD | WRITTEN)
def test_sentences_are_the_tokens_with_breaks_between(how, text):
    found = split_sentences(text, how)
    assert all(found)
    assert [token for sentence in found for token in sentence] == tokenize(text, how)


@pytest.mark.parametrize("how", SEGMENTATIONS)
@settings(max_examples=150, deadline=None)
@given(text=ODD | WRITTEN)
def test_words_without_places_are_those_of_the_tokens(how, text):
    assert split_token_texts(text, how) == words(text, how)
    assert segmentation.token_texts(text, how) == [token.text for token in tokenize(text, how)]


@settings(max_examples=300, deadline=None)
@given(text=ODD | WRITTEN)
def test_what_was_read_before_changes_nothing(text):
    used = split_token_texts(text, "en")
    english._chunk_cache.clear()
    assert split_token_texts(text, "en") == used


def test_the_cache_of_chunks_is_bounded():
    cache = english._ChunkCache(max_chunks=5)
    chunks = [*(f"w{number}" for number in range(100)), "x" * 1000]
    assert [word for chunk in chunks for word in cache[chunk]] == chunks
    assert 0 < len(cache) <= 5
    assert max(map(len, cache)) <= 20


@pytest.mark.parametrize("how", SEGMENTATIONS)
@pytest.mark.parametrize("text", ["", "   ", "\n\n \t\n"])
def test_text_without_tokens_has_no_sentences(how, text):
    assert split_sentences(text, how) == []
    assert tokenize(text, how) == []


HOSTILE = [
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
HOSTILE += ["I. ", "a-", ".(", "e\u0301", "👨\u200d", "a@b.", " ", "#1", '“a."', "\ud800中"]


@pytest.mark.parametrize("how", SEGMENTATIONS)
def test_time_is_linear_whatever_the_text(how):
    for unit in HOSTILE:
        text = unit * (20_000 // len(unit))
        started = time.process_time()
        split_sentences(text, how)
        assert time.process_time() - started < 3, repr(unit)


@pytest.mark.parametrize("how", SEGMENTATIONS)
def test_a_line_of_200_000_characters_without_spaces_takes_seconds_at_most(how):
    started = time.process_time()
    assert len(split_sentences("a" * 200_000, how)) == 1
    assert time.process_time() - started < 5


def test_an_unknown_segmentation_names_the_choices_and_the_nearest():
    with pytest.raises(UsageError, match=r"split, en, zh, zh-char, auto.*'zh-char'"):
        tokenize("a", "zh_char")
    with pytest.raises(UsageError, match="'english' is not a segmentation"):
        split_sentences("a", "english")


def test_split_takes_a_line_as_a_sentence_and_keeps_the_tokens():
    assert words("He do n't go .\r\n\n  Next  line\u3000here", "split") == [
        ["He", "do", "n't", "go", "."],
        ["Next", "line", "here"],
    ]
    assert tokenize(" a  b", "split") == [Token("a", 1, 2), Token("b", 4, 5)]


def test_auto_reads_chinese_lines_as_chinese_and_wrapped_english_as_english():
    text = "我来到北京。他走了。\nThe book is\nwrapped here. It ends.\n清华大学"
    assert words(text, "auto") == [
        ["我", "来到", "北京", "。"],
        ["他", "走", "了", "。"],
        ["The", "book", "is", "wrapped", "here", "."],
        ["It", "ends", "."],
        ["清华大学"],
    ]


def test_auto_takes_a_chinese_line_with_some_english_as_chinese():
    text = "我用Python写程序。好"
    assert split_sentences(text, "auto") == split_sentences(text, "zh")


def test_auto_takes_an_english_line_with_some_chinese_as_english():
    text = "The game (戦場) began in 2010. It was good."
    assert split_sentences(text, "auto") == split_sentences(text, "en")


def test_auto_gives_a_line_without_letters_to_the_line_before():
    assert words("I go\n* * *\n他走了。", "auto")[0] == ["I", "go", "*", "*", "*"]
