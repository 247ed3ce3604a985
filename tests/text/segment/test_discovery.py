"""Finding names and new words in a text that no dictionary knows."""

from itertools import pairwise

import pytest

from polyseme.text.segment import WordList, token_texts
from polyseme.text.segment.discovery import BLOCK_CHARACTERS, SampledText, discover_words
from polyseme.text.segment.word_list import ListedWord
from wuxia import FILLER, NAMES, write_novel

GIVEN_NAMES_OF_WORDS = ["霍云中", "叶镜湖", "方明月", "司马长风", "沈青山", "马如意"]


def as_list(text: str) -> WordList:
    return WordList(tuple(ListedWord(new.word, new.count, new.tag) for new in discover_words([text])))


def test_names_of_a_novel_are_found_and_marked_as_persons():
    words = {new.word: new for new in discover_words([write_novel()])}
    assert set(NAMES) <= words.keys() | {"慕容", "独孤"}
    assert {words[name].tag for name in NAMES} == {"nr"}
    assert all(words[name].count == write_novel().count(name) for name in NAMES)


def test_no_verb_is_glued_to_a_name_that_was_found():
    words = [new.word for new in discover_words([write_novel()]) if new.count]
    assert not [word for word in words if any(word != name and name in word for name in NAMES)]


@pytest.mark.parametrize("seed", [2, 3])
def test_nearly_all_mentions_become_tokens_of_their_own(seed: int):
    text = write_novel(seed=seed)
    tokens = token_texts(text, "zh", as_list(text))
    for name in NAMES:
        assert tokens.count(name) >= 0.97 * text.count(name)


def test_the_result_does_not_depend_on_how_the_text_was_divided():
    text = write_novel(sentences=600)
    lines = text.split("\n")
    assert discover_words([text]) == discover_words(lines)


def test_text_without_names_and_text_in_other_scripts_have_no_new_words():
    assert discover_words(["。".join(FILLER)]) == []
    assert discover_words(["He said: it is late. " * 500]) == []
    assert discover_words([]) == []


def test_a_long_text_is_sampled_evenly_and_within_bounds():
    sample = SampledText(max_characters=8 * BLOCK_CHARACTERS)
    for number in range(100):
        sample.add(chr(0x4E00 + number) * BLOCK_CHARACTERS)
    assert 4 <= len(sample.blocks) <= 8
    numbers = [ord(block[0]) - 0x4E00 for block in sample.blocks]
    assert len({b - a for a, b in pairwise(numbers)}) == 1
    assert numbers[-1] >= 80


def test_names_whose_given_name_is_a_word_of_the_dictionary_are_found():
    text = write_novel(GIVEN_NAMES_OF_WORDS, seed=4)
    words = as_list(text)
    assert {w.word for w in words.entries if w.tag == "nr" and w.count} >= set(GIVEN_NAMES_OF_WORDS)
    tokens = token_texts(text, "zh", words)
    assert all(tokens.count(name) >= 0.97 * text.count(name) for name in GIVEN_NAMES_OF_WORDS)


def test_names_without_a_usual_surname_are_found_if_their_parts_never_stand_alone():
    names = ["魂天帝", "萧十一郎", "司理理", "连城璧", "海波东", "练霓裳"]
    text = write_novel(names, seed=5)
    assert {new.word for new in discover_words([text]) if new.tag == "nr"} == set(names)


def test_a_word_of_the_dictionary_that_is_a_name_and_the_next_character_is_none():
    turns = ["身", "过头", "向他", "念一想", "眼看", "头", "回去", "了个圈", "脸"]
    lines = [f"郭襄转{turn}，天色已晚。" for turn in turns] * 2
    words = as_list("\n".join([write_novel(["郭襄", "赵志敬", "程英"], seed=6), *lines]))
    assert "郭襄转" not in {entry.word for entry in words.entries if entry.count}
    assert token_texts("郭襄转身", "zh")[0] == "郭襄转"  # by jieba's dictionary alone
    assert token_texts("郭襄转身", "zh", words)[0] == "郭襄"


def test_a_surname_before_a_word_is_no_name_without_evidence():
    lines = [f"敌军于城{noun}扎营，马{verb}来。" for noun in "中外上" for verb in ("赶", "前")] * 40
    words = {new.word for new in discover_words(["\n".join(lines)])}
    assert not words & {"于城中", "于城外", "于城上", "马赶来", "马前来"}


def test_a_name_that_always_has_a_title_behind_it_is_found():
    lines = [
        f"{before}秦清流同志{after}。"
        for before in ("会上，", "中央决定由", "大家怀念", "当时，", "据", "这是")
        for after in ("讲了话", "主持会议", "十分高兴", "到了延安", "的意见", "回忆")
    ] * 3
    assert "秦清流" in {new.word for new in discover_words([write_novel(), *lines])}
