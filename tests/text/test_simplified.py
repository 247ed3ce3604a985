"""Traditional Chinese characters are read as simplified ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import polyseme
from builders import ROUNDING, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.text.chars import SPECIALS, CodepointAlphabet
from polyseme.text.segment import token_texts, tokenize
from polyseme.text.simplified import simplify
from polyseme.text.vocab import Vocab


def test_traditional_characters_become_simplified_ones_of_the_same_length():
    assert simplify("中華民國的經濟發展，裡面") == "中华民国的经济发展，里面"


def test_simplified_text_is_not_changed():
    text = "乾隆年间的著名画家，瞭望塔与甚么，于是以后里面干净。"
    assert simplify(text) == text


def test_words_of_traditional_text_are_those_of_the_simplified_text_with_their_own_characters():
    text = "經濟發展需要軟體工程師。"
    tokens = tokenize(text, "zh")
    assert [simplify(token.text) for token in tokens] == token_texts(simplify(text), "zh")
    assert [text[token.start : token.end] for token in tokens] == [token.text for token in tokens]
    assert "經濟" in [token.text for token in tokens]


def test_the_more_frequent_form_of_a_word_is_looked_up():
    words = ["<S>", "</S>", "<UNK>", "经济", "後", "经", "經", "后"]
    vocab = Vocab(words, simplify=True)
    assert vocab.ids(["經濟", "经济", "後", "书", "經"]).tolist() == [4, 4, 5, 3, 6]
    assert "經濟" in vocab
    assert vocab.id("經濟") == 4
    assert Vocab(words).ids(["經濟"]).tolist() == [3]


def test_the_more_frequent_form_of_a_character_is_looked_up():
    characters = [*SPECIALS, "经", "後", "經", "济", "后"]
    both = CodepointAlphabet(characters, 6, simplify=True)
    np.testing.assert_array_equal(both.encode(["經濟"]), both.encode(["经济"]))
    assert (both.encode(["後"]) != both.encode(["后"])).any()  # the more frequent form stays as it is
    assert (CodepointAlphabet(characters, 6).encode(["經"]) != both.encode(["經"])).any()


def test_a_chinese_model_gives_traditional_text_the_vectors_of_simplified_text(tmp_path: Path):
    config = small_config(
        segment="zh",
        chars={"encoding": "codepoints", "max_chars": 8, "dim": 3, "filters": [[1, 2]], "highways": 1},
        words={"dim": 4},
    )
    Elmo(random_model(config, words=["经济", "发展", "，"])).save(tmp_path / "model")
    elmo = polyseme.load(tmp_path / "model")
    traditional, simplified = elmo.embed("經濟，發展"), elmo.embed("经济，发展")
    np.testing.assert_allclose(traditional, simplified, rtol=0, atol=ROUNDING)
