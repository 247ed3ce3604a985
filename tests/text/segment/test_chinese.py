"""Chinese text: words, characters and sentences."""

import pytest
import rjieba

from polyseme.text.segment import split_sentences, tokenize


def lines(text: str, segment: str = "zh") -> list[str]:
    return [" ".join(token.text for token in sentence) for sentence in split_sentences(text, segment)]


def test_words_agree_with_jieba():
    text = "我来到北京清华大学，hello world 3.14%。他来到了网易杭研大厦！"
    assert [token.text for token in tokenize(text, "zh")] == [w for w in rjieba.cut(text) if not w.isspace()]


def test_sentences_end_at_chinese_marks_and_at_ascii_marks_after_han():
    assert lines("分久必合；合久必分。好!是吗?hi!是", "zh-char") == [
        "分 久 必 合 ；",
        "合 久 必 分 。",
        "好 !",
        "是 吗 ?",
        "hi ! 是",
    ]


@pytest.mark.parametrize("closing", "」』”’）】》")
def test_a_closing_quote_stays_with_its_sentence(closing):
    assert lines(f"走！{closing}他说。", "zh-char") == [f"走 ！ {closing}", "他 说 。"]


def test_a_straight_quote_closes_an_open_quote():
    assert lines('他说："走。"然后走。"好"', "zh-char") == ['他 说 ： " 走 。 "', "然 后 走 。", '" 好 "']
    assert lines('他说：“走。"好。', "zh-char") == ['他 说 ： “ 走 。 "', "好 。"]


def test_a_comma_after_a_quote_continues_the_sentence():
    assert lines("“走！”，他说。", "zh-char") == ["“ 走 ！ ” ， 他 说 。"]


def test_several_end_marks_end_one_sentence():
    assert lines("真的？！走了……好", "zh-char") == ["真 的 ？ ！", "走 了 … …", "好"]


def test_marks_without_a_word_start_the_next_sentence():
    assert lines("……他走。\n？？？", "zh-char") == ["… … 他 走 。", "？ ？ ？"]


def test_a_line_break_ends_a_sentence():
    assert lines("第一回\r\n他走\n\n\u3000\u3000好", "zh-char") == ["第 一 回", "他 走", "好"]


def test_han_characters_are_tokens_and_latin_words_and_numbers_are_whole():
    assert lines("用Python写3.14，𠀋々x1", "zh-char") == ["用 Python 写 3.14 ， 𠀋 々 x1"]


@pytest.mark.parametrize("segment", ["zh", "zh-char"])
@pytest.mark.parametrize("character", ["\ud800", "👨‍👩‍👧", "\0", "1️⃣", "🇨🇳"])
def test_unusual_characters_are_separate_tokens(segment, character):
    assert [token.text for token in tokenize(f"我{character}你", segment)] == ["我", character, "你"]


def test_a_full_width_dot_ends_a_sentence_but_not_a_number():
    assert lines("他走．价３．５元", "zh-char")[0] == "他 走 ．"
    assert len(lines("价３．５元", "zh-char")) == 1
