"""Parsing text with one word in brackets."""

from __future__ import annotations

import pytest

from polyseme.errors import UsageError
from polyseme.text.brackets import parse_brackets


def test_brackets_split_the_text() -> None:
    assert parse_brackets("He sat on the [bank] .") == ("He sat on the ", "bank", " .")
    assert parse_brackets("他去[ 银行 ]!") == ("他去", "银行", "!")
    assert parse_brackets("a [] gap").marked == ""


def test_escaped_brackets_are_text() -> None:
    assert parse_brackets(r"a \[1\] [b] c\d") == (r"a [1] ", "b", r" c\d")
    assert parse_brackets(r"[\[]") == ("", "[", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the bank", "no word is marked"),
        (r"the \[bank\]", "no word is marked"),
        ("", "no word is marked"),
        ("[the] [bank]", "not one pair"),
        ("the [bank", "not one pair"),
        ("]the[ bank", "not one pair"),
        ("[[the]]", "not one pair"),
        ("[the bank] failed", "more than one word"),
    ],
)
def test_invalid_brackets_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"{message}.*Put one word in brackets"):
        parse_brackets(text)


def test_several_words_may_be_allowed() -> None:
    assert parse_brackets("in [New York] .", allow_several_words=True).marked == "New York"
