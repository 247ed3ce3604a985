"""Byte pairs, and units of text."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import DataError, FormatError
from polyseme.tasks.examples import Segmenter, TokenizedText, tokenize_text
from polyseme.tasks.seq2seq.byte_pairs import PairEncoder, learn_merges, merge_pair
from polyseme.tasks.seq2seq.units import MARKS, UNKNOWN, TextUnits, UnitKind, mark_spaces, mark_tokens

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 9), min_size=1, max_size=12)


def learn_slowly(counts: dict[str, int], size: int) -> list[tuple[str, str]]:
    """Count all pairs again after each merge."""
    words = {tuple(word): count for word, count in counts.items()}
    merges: list[tuple[str, str]] = []
    while len(merges) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs or max(pairs.values()) < 2:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = {tuple(merge_pair(word, best)): count for word, count in words.items()}
    return merges


def test_the_most_frequent_pair_is_merged_first() -> None:
    assert learn_merges({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 3) == [
        ("e", "s"),
        ("es", "t"),
        ("l", "o"),
    ]


@given(WORDS, st.integers(0, 12))
def test_merges_equal_those_of_counting_all_pairs_each_time(counts: dict[str, int], size: int) -> None:
    assert learn_merges(counts, size) == learn_slowly(counts, size)


@given(WORDS, st.text("abcd", max_size=9))
def test_the_parts_of_a_word_spell_it(counts: dict[str, int], word: str) -> None:
    assert "".join(PairEncoder(learn_merges(counts, 20)).split(word)) == word


@pytest.mark.parametrize("kind", ["bpe", "words", "characters"])
@pytest.mark.parametrize(
    "text",
    ["ein mann , der &apos;s liest .", "Don't! (He said so.)", "他们去北京了。", "用 Python 写的", "3 < 4"],
)
def test_units_restore_a_text_of_any_script(kind: UnitKind, text: str) -> None:
    units = TextUnits.learn(kind, "auto", 300, [text])
    assert units.decode(units.encode(text)) == text


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_byte_pairs_restore_texts_with_single_spaces(texts: list[str]) -> None:
    if not any(mark_spaces(text, Segmenter("auto")) for text in texts):
        with pytest.raises(DataError, match="nothing to learn from"):
            TextUnits.learn("bpe", "auto", 10_000, texts)
        return
    units = TextUnits.learn("bpe", "auto", 10_000, texts)
    for text in texts:
        tokens = mark_spaces(text, Segmenter("auto"))
        assert units.decode(units.encode(text)) == "".join(tokens).replace("▁", " ").strip()


def test_unknown_characters_have_an_id_and_no_text() -> None:
    units = TextUnits.learn("bpe", "auto", 100, ["abc abd"])
    assert UNKNOWN in units.encode("abz")
    assert units.decode(units.encode("abz")) == "ab"
    assert len(units) == len(MARKS) + len(units.units)


def test_units_are_saved_as_json_values() -> None:
    units = TextUnits.learn("bpe", "auto", 30, ["the cat sat", "the mat"])
    loaded = TextUnits.from_dict(units.as_dict())
    assert loaded.encode("the cat") == units.encode("the cat")
    damaged = [None, {}, units.as_dict() | {"units": [1]}, units.as_dict() | {"merges": [["a"]]}]
    for values in damaged:
        with pytest.raises(FormatError, match="damaged"):
            TextUnits.from_dict(values)


@pytest.mark.parametrize("text", ["He didn't (go) .", "我们去 Paris 。"])
def test_tokens_of_a_source_are_marked_like_those_of_a_target(text: str) -> None:
    segmenter = Segmenter("auto")
    assert mark_tokens(tokenize_text(text, segmenter, "here")) == mark_spaces(text, segmenter)
    assert mark_tokens(TokenizedText(("a", "b"))) == ["▁a", "▁b"]
