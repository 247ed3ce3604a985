"""Suggestions for visitors of the explorer: a language, and words and sentences of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.search.index import open_index
from polyseme.server.suggestions import guess_language, suggest_examples


@pytest.mark.parametrize(
    ("segment", "words", "language"),
    [
        ("zh", (), "zh"),
        ("en", ("der", "die"), "en"),
        ("auto", ("，", "。", "曰", "曹操", "之"), "zh"),
        ("auto", ("の", "は", "日本", "東京"), None),
        ("split", ("the", ",", "of", "and", "bank"), "en"),
        ("auto", ("der", "die", "und", "of"), None),
        ("auto", (), None),
    ],
)
def test_the_language_is_guessed_from_the_segmentation_or_frequent_words(segment, words, language):
    assert guess_language(segment, words) == language


def test_examples_are_words_and_sentences_of_the_index(folders: tuple[Path, Path, Path]):
    first, second = (open_index(folder) for folder in folders[:2])
    examples = suggest_examples(first)
    assert examples["words"][0] == "将"
    assert len(examples["texts"]) == len(examples["words"])
    assert all(len(word) > 1 for word in examples["words"][1:])  # one character is mostly grammar: 曰, 之
    for index in (first, second):
        examples = suggest_examples(index)
        for word, text in zip(examples["words"], examples["texts"], strict=True):
            assert index.words.count(word) >= 10
            assert word in text
            assert text in Path(index.head["documents"][0]).read_text(encoding="utf-8")
