"""What a visitor may begin with: a language that fits, words and sentences that the corpus has."""

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
def test_the_language_is_told_by_the_segmentation_or_by_frequent_words(segment, words, language):
    assert guess_language(segment, words) == language


def test_examples_are_words_and_sentences_of_the_index(folders: tuple[Path, Path, Path]):
    one, other = (open_index(folder) for folder in folders[:2])
    found = suggest_examples(one)
    assert found["words"][0] == "将"
    assert len(found["texts"]) == len(found["words"])
    assert all(len(word) > 1 for word in found["words"][1:])  # one character is mostly grammar: 曰, 之
    for index in (one, other):
        found = suggest_examples(index)
        for word, text in zip(found["words"], found["texts"], strict=True):
            assert index.words.count(word) >= 10
            assert word in text
            assert text in Path(index.head["documents"][0]).read_text(encoding="utf-8")
