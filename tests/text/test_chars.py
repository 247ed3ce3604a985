"""Tokens are encoded as character ids."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import UsageError
from polyseme.text.chars import SPECIALS, Alphabet, ByteAlphabet, CodepointAlphabet

ANY_WORDS = st.lists(st.text(alphabet=st.characters(), max_size=12) | st.sampled_from(["<S>", "</S>", "ab"]))


def letters(max_chars: int = 6) -> CodepointAlphabet:
    return CodepointAlphabet([*SPECIALS, "a", "b", "中"], max_chars)


def byte_row(token: str, max_chars: int) -> list[int]:
    """A simple implementation of section 2.1 of the published format."""
    inside = list(token.encode("utf-8", "ignore")[: max_chars - 2])
    inside = {"<S>": [256], "</S>": [257]}.get(token, inside)
    row = [258, *inside, 259]
    return [raw + 1 for raw in row + [260] * (max_chars - len(row))]


@given(tokens=ANY_WORDS, max_chars=st.integers(3, 12))
def test_byte_ids_agree_with_the_published_format(tokens, max_chars):
    ids = ByteAlphabet(max_chars).encode(tokens)
    assert ids.shape == (len(tokens), max_chars)
    assert ids.dtype == np.int64
    assert ids.tolist() == [byte_row(token, max_chars) for token in tokens]


def test_byte_ids_agree_with_rows_written_by_hand():
    assert ByteAlphabet(6).encode(["é"]).tolist() == [[259, 0xC3 + 1, 0xA9 + 1, 260, 261, 261]]
    assert ByteAlphabet(6).encode(["", "\0", "\ud800"]).tolist() == [
        [259, 260, 261, 261, 261, 261],
        [259, 1, 260, 261, 261, 261],
        [259, 260, 261, 261, 261, 261],
    ]


def test_bytes_are_truncated_inside_a_character_as_in_the_published_format():
    assert ByteAlphabet(4).encode(["中"]).tolist() == [[259, 0xE4 + 1, 0xB8 + 1, 260]]


def test_byte_boundaries_are_the_rows_of_the_special_tokens():
    alphabet = ByteAlphabet(5)
    assert alphabet.boundaries().tolist() == [[259, 257, 260, 261, 261], [259, 258, 260, 261, 261]]
    assert (alphabet.encode(["<S>", "</S>"]) == alphabet.boundaries()).all()
    assert (alphabet.size, alphabet.padding) == (262, 261)


def codepoint_row(token: str, max_chars: int) -> list[int]:
    ids = {c: i for i, c in enumerate([*SPECIALS, "a", "b", "中"], start=1)}
    inside = [ids.get(c, ids["<oov>"]) for c in token[: max_chars - 2]]
    inside = {"<S>": [ids["<bos>"]], "</S>": [ids["<eos>"]]}.get(token, inside)
    row = [ids["<bow>"], *inside, ids["<eow>"]]
    return row + [ids["<pad>"]] * (max_chars - len(row))


@given(tokens=ANY_WORDS, max_chars=st.integers(3, 12))
def test_code_points_have_ids_and_other_characters_are_unknown(tokens, max_chars):
    ids = letters(max_chars).encode(tokens)
    assert ids.shape == (len(tokens), max_chars)
    assert ids.tolist() == [codepoint_row(token, max_chars) for token in tokens]


def test_the_special_characters_may_be_at_any_position():
    alphabet = CodepointAlphabet(["<bos>", "a", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"], 5)
    assert alphabet.encode(["a", "x", "<bos>", "<eos>"]).tolist() == [
        [6, 2, 7, 5, 5],
        [6, 4, 7, 5, 5],
        [6, 1, 7, 5, 5],
        [6, 3, 7, 5, 5],
    ]
    assert alphabet.boundaries().tolist() == [[6, 1, 7, 5, 5], [6, 3, 7, 5, 5]]
    assert (alphabet.size, alphabet.padding) == (8, 5)


def test_in_an_alphabet_of_specials_every_character_is_unknown():
    assert CodepointAlphabet(SPECIALS, 3).encode(["a"]).tolist() == [[2, 6, 3]]


def test_an_alphabet_from_counts_is_sorted_by_frequency():
    alphabet = CodepointAlphabet.from_counts({"ab": 2, "b": 5, "ca": 1, "\ud800": 9}, 10)
    assert alphabet.characters == (*SPECIALS, "b", "a", "c")
    assert CodepointAlphabet.from_counts({"zy": 1, "x": 1}, 10).characters[6:] == ("x", "y", "z")
    assert CodepointAlphabet.from_counts({"ab": 2, "c": 1}, 10, min_count=2).characters[6:] == ("a", "b")


def test_truncated_tokens_are_counted_by_bytes_or_by_characters():
    assert ByteAlphabet(5).count_truncated(["中", "中a", "<S>", "</S>", ""]) == 1
    assert letters(5).count_truncated(["中中中", "中中中a", "<bos>", "</S>"]) == 1


@pytest.mark.parametrize("build", [ByteAlphabet, letters])
def test_a_row_must_have_space_for_a_character(build):
    with pytest.raises(UsageError, match="max_chars is 2"):
        build(2)


def test_a_missing_or_repeated_special_character_is_reported():
    with pytest.raises(UsageError, match="lacks <eow> <oov>"):
        CodepointAlphabet(["<pad>", "<bow>", "<bos>", "<eos>", "a"])
    with pytest.raises(UsageError, match="'a' more than once"):
        CodepointAlphabet([*SPECIALS, "a", "a"])


@pytest.mark.parametrize("alphabet", [ByteAlphabet(), letters(50)])
def test_a_hundred_thousand_tokens_are_encoded_in_two_seconds(alphabet: Alphabet):
    tokens = ["banana", "中文", "<S>", "a"] * 25_000
    started = time.process_time()
    assert alphabet.encode(tokens).shape == (100_000, 50)
    assert time.process_time() - started < 2  # well under one second on an idle machine
