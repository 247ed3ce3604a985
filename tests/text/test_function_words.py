"""Content words and function words."""

from __future__ import annotations

from polyseme.text.function_words import find_frequent_function_words, is_content_word


def test_function_words_numbers_and_punctuation_are_no_content_words():
    words = ["The", "of", "bank", "'s", ",", "1984", "的", "之", "将军", "曹操", "B2B"]
    assert [word for word in words if is_content_word(word)] == ["bank", "将军", "曹操", "B2B"]


def test_frequent_words_of_an_unlisted_language_are_function_words():
    rare = {f"mot{number}": 3 for number in range(2000)}
    assert find_frequent_function_words(rare | {"le": 900, "chat": 5}) == {"le"}
    assert find_frequent_function_words(rare | {"the": 2000, "cat": 900}) == frozenset()
    assert find_frequent_function_words({"le": 900, "chat": 5}) == frozenset()
