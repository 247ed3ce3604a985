"""Finding passages: shared words, stems, Chinese characters, and vectors where no word is shared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyseme.search.passages import PassageIndex, list_terms

PASSAGES = [
    ["The", "river", "rises", "in", "the", "mountains", "of", "the", "north", "."],
    ["Anna", "painted", "the", "church", "and", "its", "tower", "in", "1984", "."],
    ["The", "dog", "barked", ",", "and", "the", "neighbours", "complained", "about", "the", "noise", "."],
]


def test_the_passage_with_the_rare_words_of_the_question_is_first():
    index = PassageIndex(PASSAGES)
    assert index.rank(["Who", "painted", "the", "tower", "?"], 1)[0][0] == 1
    assert index.rank(["What", "happened", "in", "1984", "?"], 3)[0][0] == 1


def test_words_with_the_same_stem_are_shared():
    assert PassageIndex(PASSAGES).rank(["Which", "neighbour", "heard", "barking", "?"], 1)[0][0] == 2


def test_chinese_words_share_characters():
    passages = [["曹操", "大怒", "。"], ["刘备", "大喜", "，", "军师", "在", "荆州", "。"]]
    assert PassageIndex(passages).rank(["军", "在", "哪", "？"], 1)[0][0] == 1


def test_function_words_do_not_count():
    assert list_terms(["The", "of", "?", "1984"]) == ["1984", "1984-"]


def test_a_question_without_shared_words_is_compared_by_vectors():
    def pool(sentences: list[list[str]]) -> NDArray[np.float32]:
        return np.array([[len(tokens), 1.0] for tokens in sentences], np.float32)

    question = ["zebra"] * 12  # as long as the last passage
    ranked = PassageIndex(PASSAGES, pool).rank(question, 3)
    assert ranked[0][0] == 2
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert PassageIndex(PASSAGES).rank(question, 3) == [(0, 0.0), (1, 0.0), (2, 0.0)]


def test_an_index_of_nothing_finds_nothing():
    assert PassageIndex([]).rank(["a"], 3) == []
