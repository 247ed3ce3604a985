"""Documents begin at headings; titles and metadata are kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from polyseme.errors import DataError, UsageError
from polyseme.text.corpus.documents import read_documents, read_pieces
from polyseme.text.corpus.headings import HeadingFinder, check_documents, split_at_headings
from polyseme.text.corpus.metadata import Metadata
from polyseme.text.corpus.prepared import prepare_corpus
from polyseme.text.corpus.settings import CorpusSettings, CorpusSpec
from polyseme.text.reading import Line

CHINESE = """三国演义
罗贯中

目录
第一回　宴桃园豪杰三结义
第二回　张翼德怒鞭督邮

第一回　宴桃园豪杰三结义
　　话说天下大势，分久必合。
　　他第一次见面时说道。
第二回　张翼德怒鞭督邮
　　且说董卓字仲颖。
第三回见面，他笑道：“好！”这一句不是标题。
"""
ENGLISH = """MOBY DICK

CHAPTER 1. Loomings.

Call me Ishmael. Some years ago I read
Part one of the story.
Chapter two was long.

CHAPTER II

He said that
book one day would matter.

EPILOGUE

The drama's done.
"""


def titles(path: Path, documents: str) -> list[tuple[int, str, str]]:
    rows = []
    for document, lines in read_documents([path], documents):
        text = " ".join(line.text.strip() for line in lines if line.text.strip())
        rows.append((document.number, document.title, text))
    return rows


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    (tmp_path / "zh.txt").write_text(CHINESE, encoding="utf-8")
    return tmp_path / "zh.txt"


@pytest.fixture
def english(tmp_path: Path) -> Path:
    (tmp_path / "en.txt").write_text(ENGLISH, encoding="utf-8")
    return tmp_path / "en.txt"


@pytest.mark.parametrize("documents", ["chapters-zh", "auto", "第.{1,4}回(?!见)"])
def test_chinese_chapters_are_documents_and_a_table_of_contents_is_not(chinese: Path, documents: str) -> None:
    front, first, second = titles(chinese, documents)
    assert front[:2] == (0, "")
    assert first[:2] == (1, "第一回 宴桃园豪杰三结义")
    assert first[2].endswith("他第一次见面时说道。")
    assert second[:2] == (2, "第二回 张翼德怒鞭督邮")
    assert "不是标题" in second[2]


@pytest.mark.parametrize("documents", ["chapters-en", "auto"])
def test_english_chapters_are_documents_and_prose_is_not(english: Path, documents: str) -> None:
    assert [(number, title) for number, title, _ in titles(english, documents)] == [
        (0, ""),
        (1, "CHAPTER 1. Loomings."),
        (2, "CHAPTER II"),
        (3, "EPILOGUE"),
    ]


def test_a_numbered_chapter_may_have_a_long_title(tmp_path: Path) -> None:
    title = f"CHAPTER 56. Of the Less Erroneous Pictures of Whales, {'and the True Pictures ' * 3}of Scenes."
    prose = f"Chapter two of the book was about the whale and the men{', who went to sea in ships' * 2} once."
    assert 100 < len(title) <= 150
    assert 100 < len(prose) <= 150
    (tmp_path / "a.txt").write_text(f"{title}\n\nIn connexion with it.\n\n{prose}\n\nThe end.\n")
    titles = [document.title for document, _ in read_documents([tmp_path / "a.txt"], "auto")]
    assert titles == [title]


def test_a_file_without_headings_is_one_numbered_document(tmp_path: Path, english: Path) -> None:
    (tmp_path / "plain.txt").write_text("Just text.\n" * 3)
    numbers = [document.number for document, _ in read_documents([tmp_path / "plain.txt", english], "auto")]
    assert numbers == [1, 0, 2, 3, 4]


def test_pieces_of_a_corpus_have_the_same_documents(chinese: Path) -> None:
    pieces = list(read_pieces([chinese], "chapters-zh", "zh"))
    assert [(piece.document, piece.title) for piece in pieces] == [
        (0, ""),
        (1, "第一回 宴桃园豪杰三结义"),
        (2, "第二回 张翼德怒鞭督邮"),
    ]
    assert "".join(piece.text for piece in pieces).split() == CHINESE.split()


def test_a_prepared_corpus_keeps_the_titles(chinese: Path, tmp_path: Path) -> None:
    spec = CorpusSpec(CorpusSettings(documents="chapters-zh", min_count=1, valid_share=0), segment="zh")
    corpus = prepare_corpus([chinese], tmp_path / "corpus", spec)
    documents = corpus.documents()
    assert [document.title for document in documents] == [
        "",
        "第一回 宴桃园豪杰三结义",
        "第二回 张翼德怒鞭督邮",
    ]
    assert sum(document.words for document in documents) == corpus.report.tokens
    assert {document.file for document in documents} == {"zh.txt"}


def test_the_settings_of_a_corpus_take_patterns_and_refuse_mistakes() -> None:
    assert CorpusSettings(documents=r"第.{1,4}回|Chapter \d+").documents == r"第.{1,4}回|Chapter \d+"
    with pytest.raises(ValueError, match="not a kind of document"):
        CorpusSettings(documents="chapter")
    with pytest.raises(ValueError, match="is not an encoding"):
        CorpusSettings(encoding="klingon")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("page", "is not a kind of document"),
        ("(", "not a regular expression"),
        ("x*", "matches an empty line"),
        ("(a+)+b", "may take very long"),
        ("(a|a)*b", "may take very long"),
        ("(?:a?){30}b", "may take very long"),
        ("a?" * 40 + "a" * 40, "may take very long"),
        (".*" * 6 + "x", "may take very long"),
        (r"(.)\1", "refers back"),
        ("a{99999999999}", "not a regular expression"),
    ],
)
def test_invalid_and_dangerous_patterns_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_documents(pattern)


def test_a_slow_pattern_is_stopped() -> None:
    finder = HeadingFinder(".*a.*a.*a.*b", max_seconds=0.05)
    start = time.process_time()
    lines = (Line("x.txt", number, "a" * 100) for number in range(1, 1000))
    with pytest.raises(UsageError, match=r"x\.txt:\d+: documents: .* takes too long"):
        list(split_at_headings(lines, finder))
    assert time.process_time() - start < 20


# ---- metadata ----


def test_metadata_comes_from_file_names(tmp_path: Path) -> None:
    meta = Metadata.parse(r"(?P<year>\d{4})_(?P<author>.*)\.txt")
    assert meta.find("speeches/1861_Lincoln.txt", "") == {"year": "1861", "author": "Lincoln"}
    assert meta.find("notes.txt", "") == {}


def test_metadata_comes_from_a_table_by_file_or_title(tmp_path: Path) -> None:
    table = tmp_path / "meta.tsv"
    table.write_text("file\tyear\tparty\na.txt\t1861\tRepublican\nb\t1913\t\n第一回 宴桃园\t184\t\n", "utf-8")
    meta = Metadata.parse(table)
    assert meta.find("x/a.txt", "") == {"year": "1861", "party": "Republican"}
    assert meta.find("x/b.txt", "") == {"year": "1913"}
    assert meta.find("c.txt", "第一回 宴桃园") == {"year": "184"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("file\tyear\na.txt\n", r"meta\.tsv:2: 1 columns, expected 2"),
        ("file\tyear\na\t1\na\t2\n", r"meta\.tsv:3: 'a' comes twice"),
        ("file\n", r"meta\.tsv:1: one column"),
        ("file\tsense\na\t1\n", "'sense' has a meaning of its own"),
        ("file\t1st\na\t1\n", "'1st' is not a word"),
        ("", "needs a header and a row"),
    ],
)
def test_a_damaged_table_is_reported_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "meta.tsv").write_text(content)
    with pytest.raises(DataError, match=message):
        Metadata.parse(tmp_path / "meta.tsv")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"\d+", "neither a file nor a regular expression with names"),
        (r"(?P<a>", "not a regular expression"),
        (r"(?P<a>(x+)+)y", "may take very long"),
    ],
)
def test_an_invalid_pattern_of_metadata_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Metadata.parse(pattern)
