"""Characters of a book: names, aliases, chapters, pairs, and the page."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

import polyseme
from polyseme.books.characters import Character, find_characters, read_aliases
from polyseme.books.mentions import BookMentions, Paragraph, count_mentions
from polyseme.books.network import find_groups, list_companions
from polyseme.errors import DataError, UsageError
from polyseme.text.segment import WordList, split_token_texts
from polyseme.text.segment.english_names import discover_names
from polyseme.text.segment.word_list import ListedWord
from wuxia import NAMES, write_novel

TINY = ["train.tokens=500", "model.segment=zh"]


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("book") / "novel.txt"
    lines = write_novel(sentences=900).split("\n")
    chapters = [lines[start : start + 75] for start in range(0, len(lines), 75)]
    text = "\r\n".join(
        f"第{number}回\r\n" + "\r\n".join(chapter) for number, chapter in enumerate(chapters, start=1)
    )
    path.write_bytes(text.encode("gb18030"))
    return path


@pytest.fixture(scope="module")
def result(novel: Path) -> polyseme.api.BookResult:
    return polyseme.book(novel, novel.parent / "out", "tiny", settings=TINY, progress=False)


def test_the_characters_of_a_gbk_novel_are_found_and_counted_by_chapter(
    result: polyseme.api.BookResult, novel: Path
):
    text = novel.read_bytes().decode("gb18030")
    counts = {c.name: result.mentions.counts[n] for n, c in enumerate(result.characters)}
    assert counts == {name: text.count(name) for name in NAMES}
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert result.mentions.chapters == [f"第{n}回" for n in range(1, len(result.mentions.chapters) + 1)]
    assert all(
        sum(result.mentions.by_chapter[n, c] for c in range(len(result.mentions.chapters)))
        == result.mentions.counts[n]
        for n in range(len(NAMES))
    )


def test_the_page_is_one_chinese_file_that_loads_nothing(result: polyseme.api.BookResult):
    page = result.page.read_text("utf-8")
    assert '<html lang="zh-CN">' in page
    assert page.count("<svg") == 2
    assert all(name in page for name in NAMES)
    assert not [mark for mark in ("src=", "href=", "url(", "@import", "<script") if mark in page]


def test_the_tables_hold_what_the_page_shows(result: polyseme.api.BookResult):
    def read(name: str) -> list[dict[str, str]]:
        with (result.folder / name).open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    assert [row["name"] for row in read("characters.csv")] == [c.name for c in result.characters]
    assert len(read("chapters.csv")) == len(result.mentions.chapters)
    pairs = read("pairs.csv")
    assert len(pairs) == len(result.mentions.in_paragraph)
    assert int(pairs[0]["paragraphs"]) == max(result.mentions.in_paragraph.values())
    graph = ElementTree.parse(result.folder / "network.graphml").getroot()
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert len(graph.findall(f".//{space}node")) == len(NAMES)
    assert len(graph.findall(f".//{space}edge")) == len(pairs)


def test_aliases_are_merged_without_training_again(
    result: polyseme.api.BookResult, novel: Path, tmp_path: Path
):
    weights = (result.folder / "model" / "model.safetensors").read_bytes()
    (tmp_path / "aliases.tsv").write_text("郭大小姐\t郭芙,程英\n", encoding="utf-8")
    merged = polyseme.book(
        novel,
        result.folder,
        "tiny",
        settings=TINY,
        alias=tmp_path / "aliases.tsv",
        language="en",
        title="<A novel>",
        progress=False,
    )
    counts = {c.name: merged.mentions.counts[n] for n, c in enumerate(merged.characters)}
    text = novel.read_bytes().decode("gb18030")
    assert counts["郭大小姐"] == text.count("郭芙") + text.count("程英")
    assert "郭芙" not in counts
    assert "&lt;A novel&gt;" in merged.page.read_text("utf-8")
    assert '<html lang="en">' in merged.page.read_text("utf-8")
    assert (result.folder / "model" / "model.safetensors").read_bytes() == weights


def test_a_folder_with_other_files_is_refused(novel: Path, tmp_path: Path):
    (tmp_path / "letter.txt").write_text("Dear Anna")
    with pytest.raises(UsageError, match="exists already and is no book"):
        polyseme.book(novel, tmp_path, "tiny", progress=False)


def test_a_text_without_words_leaves_no_folder(tmp_path: Path):
    (tmp_path / "empty.txt").write_text(" \n\u3000\n", encoding="utf-8")
    with pytest.raises(DataError, match="contains no words"):
        polyseme.book(tmp_path / "empty.txt", tmp_path / "out", "tiny", progress=False)
    assert not (tmp_path / "out").exists()


def test_a_title_page_is_no_chapter(novel: Path, tmp_path: Path):
    text = novel.read_bytes().decode("gb18030")
    (tmp_path / "novel.txt").write_text("《小说》佚名\n\n" + text, encoding="utf-8")
    book = polyseme.book(tmp_path / "novel.txt", tmp_path / "out", "tiny", settings=TINY, progress=False)
    assert book.mentions.chapters[0] == "第1回"


def find_chinese(text: str, *entries: str) -> list[str]:
    words = WordList.parse(list(entries)) if entries else None
    return [c.name for c in find_characters(split_token_texts(text, "zh", words), "zh", words)]


def test_chinese_surnames_that_are_everyday_characters_are_names():
    text = (
        "张辽曰：“可。”众人见张辽，皆喜。方腊道：“不可。”众人问方腊，方腊不语。方欲说时，方欲走时，方欲问时。"
        * 9
    )
    assert find_chinese(text, "张辽 18 nr", "方腊 27 nr", "方欲 27 nr") == ["方腊", "张辽"]


def test_heroes_without_a_surname_are_found_by_number_and_title():
    text = (
        "行者道：“快走。”八戒道：“师父饿了。”行者见八戒，笑了。长老道：“一日无饭。”八戒来寻行者，行者说：“来了。”"
        "有甚话说？有甚话说。"
    ) * 9
    listed = ("行者 36 nr", "八戒 27 nr", "长老 9 nr", "有甚话 18 nr")
    assert find_chinese(text, *listed) == ["行者", "八戒"]


def test_names_in_the_dictionary_are_found_in_the_text():
    text = "武松道：“拿酒来。”店家看武松，武松把桌子一拍。店家施礼说话，又施礼说话。" * 9
    assert find_chinese(text) == ["武松"]


def test_english_characters_speak_or_have_a_title():
    text = (
        "“It is late,” said Elizabeth. Then Elizabeth smiled at Mr. Darcy in London. Mr. Darcy replied. "
        "They walked to London on a Monday, and the Horse followed. The horse was old. "
    ) * 6
    characters = find_characters(split_token_texts(text, "en"), "en", None)
    assert {character.name for character in characters} == {"Elizabeth", "Mr. Darcy"}


def test_places_and_kinds_are_no_english_characters():
    text = (
        "“Yes,” London said. He lived in London, far from London. A Lakeman said so; some Lakeman asked. "
        "Sam Clark said no. They met at Sam Clark's. “Why?” asked Sam Clark. "
    ) * 6
    words = WordList.parse(["Sam Clark 18 nr"])
    characters = find_characters(split_token_texts(text, "en", words), "en", words)
    assert [character.name for character in characters] == ["Sam Clark"]


def test_institutions_offices_and_rivers_of_speeches_are_no_persons():
    text = (
        "The General Government said that the Missouri rose. Mr. Speaker, the Bank of Ohio said no.\n"
        "General Taylor said that Abraham Lincoln knew the Bill of Rights. The boats went up the Missouri.\n"
        "Vice President Biden said so, and then the Missouri turned. Abraham Lincoln stood by the General "
        "Land Office, and Mr. President, the Post Office Department saw it.\n"
    ) * 8
    names = discover_names([text])
    words = WordList(tuple(ListedWord(new.word, new.count, new.tag) for new in names))
    found = {c.name for c in find_characters(split_token_texts(text, "en", words), "en", words)}
    assert found == {"General Taylor", "Abraham Lincoln", "President Biden"}


def test_a_name_inside_a_longer_name_is_no_mention_of_its_own():
    characters = [Character("玉"), Character("宝玉", ("贾宝玉",)), Character("Ann")]
    paragraphs = [Paragraph(0, ["贾宝玉见了宝玉。", "玉在此。"]), Paragraph(1, ["Anna and Ann met."])]
    mentions = count_mentions(paragraphs, ["一", "二"], characters)
    assert dict(mentions.counts) == {1: 2, 0: 1, 2: 1}
    assert dict(mentions.in_sentence) == {}
    assert dict(mentions.in_paragraph) == {(0, 1): 1}


def test_groups_are_those_who_occur_together():
    mentions = BookMentions(["one"])
    mentions.in_paragraph.update({(0, 1): 9, (1, 2): 8, (0, 2): 9, (3, 4): 7, (2, 3): 1})
    assert find_groups(mentions, 6) == [0, 0, 0, 1, 1, 2]
    assert [c.character for c in list_companions(mentions, 2)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("宝玉\t贾宝玉\n贾宝玉\n", ":2: '贾宝玉' is a name of '宝玉' already"),
        ("\n# none\n", "no characters in it"),
    ],
)
def test_an_invalid_alias_file_is_refused(text: str, message: str, tmp_path: Path):
    path = tmp_path / "aliases.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_aliases(path)
