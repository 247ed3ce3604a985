"""Word lists: reading, writing, and what they change in the segmentation."""

import pickle
from pathlib import Path

import pytest
import rjieba

from polyseme.errors import DataError
from polyseme.text.segment import WordList, split_sentences, split_token_texts, token_texts

WORDS = WordList.parse(["郭芙 850 nr", "杨过", "小龙女 300"])


def test_listed_names_lose_the_verbs_that_jieba_glues_to_them():
    text = "郭芙道：“杨过笑了。”郭芙见杨过来了。"
    assert "郭芙道" in token_texts(text, "zh")
    assert " ".join(token_texts(text, "zh", WORDS)) == "郭芙 道 ： “ 杨过 笑 了 。 ” 郭芙 见 杨过 来 了 。"


def test_text_without_listed_words_is_segmented_as_before():
    text = "我来到北京清华大学，副部长特别强调产品和管理。他来到了网易杭研大厦！"
    many = WordList.parse([f"{chr(0x4E00 + n)}郭芙{chr(0x5E00 + n)} 100000" for n in range(500)])
    assert token_texts(text, "zh", many) == rjieba.cut(text)


def test_a_count_of_zero_makes_a_word_of_the_dictionary_none():
    assert token_texts("玄德曰：善。", "zh")[0] == "玄德曰"
    assert token_texts("玄德曰：善。", "zh", WordList.parse(["玄德曰 0", "玄德 9"]))[:2] == ["玄德", "曰"]


def test_tokens_with_a_word_list_keep_their_offsets():
    text = "  郭芙道：\n\n杨过 笑了👍。hello 郭芙!"
    for sentence in split_sentences(text, "auto", WORDS):
        assert all(text[token.start : token.end] == token.text for token in sentence)


def test_many_sentences_at_once_are_segmented_as_each_of_them():
    lines = ["郭芙道：“你来。”", "", "杨过 笑\0了", "他去银行取钱👨‍👩‍👧。", "\u3000小龙女不说话"] * 40
    whole = split_token_texts("\n".join(lines), "zh", WORDS)
    assert whole == [sentence for line in lines for sentence in split_token_texts(line, "zh", WORDS)]


def test_a_list_is_read_back_as_it_was_written(tmp_path: Path):
    words = WordList.parse(["# 人物", "郭芙 850 nr", "", "杨过", "小龙女 300", "玄德曰\t0\tx"])
    words.write(tmp_path / "words.txt")
    assert (tmp_path / "words.txt").read_text("utf-8").splitlines() == [
        "郭芙 850 nr",
        "杨过",
        "小龙女 300",
        "玄德曰 0 x",
    ]
    assert WordList.read(tmp_path / "words.txt") == words


def test_a_list_can_be_pickled_after_use():
    WORDS.cut("郭芙道")
    copy = pickle.loads(pickle.dumps(WORDS))
    assert copy == WORDS
    assert copy.cut("郭芙道") == ["郭芙", "道"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("郭 芙 850 nr", "words.txt:2: '郭 芙 850 nr' is not a word"),
        ("郭" * 51, "words.txt:2: .* is not a word"),
        ("郭芙 9999999999", "words.txt:2: count 9999999999 is above"),
    ],
)
def test_an_invalid_line_is_refused_with_its_location(line: str, message: str):
    with pytest.raises(DataError, match=message):
        WordList.parse(["杨过", line], "words.txt")


def test_an_empty_list_is_refused():
    with pytest.raises(DataError, match=r"words\.txt: no words in it"):
        WordList.parse(["", "# nothing"], "words.txt")


def test_listed_words_are_found_in_traditional_characters_too():
    assert token_texts("楊過笑了", "zh", WORDS) == ["楊過", "笑", "了"]
    assert token_texts("楊過笑了。郭芙道", "auto", WordList.parse(["楊過"]))[:2] == ["楊過", "笑"]
