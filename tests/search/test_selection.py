"""Parts of an index: documents by number, title and metadata, and groups of them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UnknownWordError, UsageError
from polyseme.search.build import build_index
from polyseme.search.index import Index, open_index
from polyseme.search.selection import group_documents, select_documents, sort_groups
from polyseme.text.corpus.documents import Document

BOOK = """A book

Chapter 1

the bank of the river

Chapter 2: this, the end

the bank failed
the king came
"""
SPEECHES = {
    "1790_Whig.txt": "the war is over",
    "1795_Tory.txt": "the war began",
    "1861_Tory.txt": "peace is here",
}
META = r"(?P<year>\d{4})_(?P<party>\w+)\.txt"


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory, elmo: Elmo) -> Index:
    folder = tmp_path_factory.mktemp("book")
    (folder / "book.txt").write_text(BOOK)
    build_index(elmo, [folder / "book.txt"], folder / "index", documents="chapters-en", block_usages=4)
    return open_index(folder / "index", elmo)


@pytest.fixture(scope="module")
def speeches(tmp_path_factory: pytest.TempPathFactory, elmo: Elmo) -> Index:
    folder = tmp_path_factory.mktemp("speeches")
    for name, text in SPEECHES.items():
        (folder / name).write_text(text)
    return api.index(elmo, sorted(folder.glob("*.txt")), folder / "index", meta=META, progress=False)


def words_of(index: Index) -> dict[str, int]:
    return index.counts()


def test_usages_know_the_title_of_their_chapter(book: Index) -> None:
    titles = [book.usage(number).title for number in book.usage_numbers("bank")]
    assert titles == ["Chapter 1", "Chapter 2: this, the end"]
    assert [document.number for document in book.listed_documents] == [0, 1, 2]


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ("1", {"the": 2, "Chapter": 1, "1": 1, "bank": 1, "of": 1, "river": 1}),
        (1, {"the": 2, "Chapter": 1, "1": 1, "bank": 1, "of": 1, "river": 1}),
        ("0", {"A": 1, "book": 1}),
    ],
)
def test_a_part_has_the_words_of_its_documents(
    book: Index, documents: str | int, words: dict[str, int]
) -> None:
    part = book.restrict(documents)
    assert words_of(part) == words
    assert len(part) == sum(words.values())
    assert part.words.counts_by_word() == words


@pytest.mark.parametrize(
    ("documents", "numbers"),
    [
        ("1-2", [1, 2]),
        ("1-", [1, 2]),
        ("0,2", [0, 2]),
        ([1, "0"], [0, 1]),
        ("Chapter 2: this, the end", [2]),
        ("the END", [2]),
        ("chapter", [1, 2]),
    ],
)
def test_documents_are_selected_by_number_and_title(
    book: Index, documents: str | list[str | int], numbers: list[int]
) -> None:
    chosen = select_documents(book.listed_documents, documents)
    assert [
        d.number for d, is_chosen in zip(book.listed_documents, chosen, strict=True) if is_chosen
    ] == numbers


@pytest.mark.parametrize(
    ("documents", "years"),
    [
        ("year=1790-1800", ["1790", "1795"]),
        ("year=1795-", ["1795", "1861"]),
        ("year=1861", ["1861"]),
        ("party=tory", ["1795", "1861"]),
        ("party=Tory,year=1790-1800", ["1795"]),
        ("year=1790,year=1861", ["1790", "1861"]),
        ("1,2,party=Tory", ["1795"]),
    ],
)
def test_documents_are_selected_by_metadata(speeches: Index, documents: str, years: list[str]) -> None:
    chosen = select_documents(speeches.listed_documents, documents)
    listed = zip(speeches.listed_documents, chosen, strict=True)
    assert [document.meta["year"] for document, is_chosen in listed if is_chosen] == years


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("9", "there is no document 9. The index has documents 1 to 3"),
        ("2-1", "there is no document 2-1"),
        ("nothing", "no title contains 'nothing'"),
        ("year=1800", "no document has year=1800. Its values are 1790, 1795, 1861"),
        ("author=x", "no 'author' of its documents. Its fields are party, year"),
        ("", "documents is empty"),
        ("1,party=Tory", "No document fits"),
        ([True], "expected numbers, titles or conditions"),
    ],
)
def test_a_selection_that_fits_nothing_is_refused(speeches: Index, documents: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        speeches.restrict(documents)


def test_groups_are_values_of_a_field_or_ranges_of_it(speeches: Index) -> None:
    listed = speeches.listed_documents
    assert group_documents(listed, "party") == ["Whig", "Tory", "Tory"]
    assert group_documents(listed, "year/50") == ["1750-1799", "1750-1799", "1850-1899"]
    assert group_documents(listed, "document") == list(SPEECHES)
    assert sort_groups(["1900-1949", "184-190", "1900-1949"]) == ["184-190", "1900-1949"]
    for by, message in (
        ("author", "no 'author'"),
        ("party/10", "'Whig' is not a number"),
        ("a b", "expected"),
    ):
        with pytest.raises(UsageError, match=message):
            group_documents(listed, by)


def test_documents_without_a_field_are_in_no_group() -> None:
    listed = [Document("a", 1, "", {"year": "1900"}), Document("b", 2, "", {})]
    assert group_documents(listed, "year/10") == ["1900-1909", None]


def test_parts_by_a_field_divide_the_usages(speeches: Index) -> None:
    parts = speeches.split("year/50")
    assert {name: part.counts().get("war", 0) for name, part in parts.items()} == {
        "1750-1799": 2,
        "1850-1899": 0,
    }
    assert sum(map(len, parts.values())) == len(speeches)


def test_the_word_of_a_part_is_the_mean_of_its_usages_there(book: Index) -> None:
    part = book.restrict(2)
    expected = book.raw_vectors(book.usage_numbers("the")[[2, 3, 4]]).mean(axis=0)
    np.testing.assert_allclose(part.words_with("the")["the"], expected, atol=1e-5)
    np.testing.assert_allclose(part.words["the"], expected, atol=1e-5)
    assert part.words_with("the").count("the") == 3
    assert "river" not in part.words_with("the")
    np.testing.assert_array_equal(part.words_with("the")["bank"], book.words["bank"])
    with pytest.raises(UnknownWordError, match="'river' has no usages in the documents 2"):
        part.usage_numbers("river")


def test_all_verbs_take_documents(book: Index, speeches: Index) -> None:
    assert {word for word, _ in api.nearest(book, "bank", documents=1)} <= set(words_of(book.restrict(1)))
    usages = api.nearest(book, "bank", 50, context="the bank failed", documents="1")
    assert {usage.title for usage in usages} == {"Chapter 1"}
    groups = api.nearest(speeches, "war", 2, by="year")
    assert [(group.group, group.count, len(group.neighbours)) for group in groups] == [
        ("1790", 1, 2),
        ("1795", 1, 2),
    ]
    usage_map = api.map_usages(speeches, ["the"], by="party", documents="year=1790-1800")
    assert usage_map.groups == ["Whig", "Tory"]


def test_senses_are_counted_by_group(tmp_path: Path, elmo: Elmo) -> None:
    for year in (1900, 1905, 1950):
        (tmp_path / f"{year}.txt").write_text("the bank failed\nthe river bank\n" * 6 + f"in {year}\n")
    index = api.index(elmo, tmp_path, tmp_path / "index", meta=r"(?P<year>\d{4})", progress=False)
    assert api.senses(index, "bank", by="year/10").documents == {"1900-1909": 24, "1950-1959": 12}
    assert api.senses(index, "bank", documents="year=1950").documents == {str(tmp_path / "1950.txt"): 12}
    (change,) = api.change(index, index, "bank", documents="year=1900-1909", against="3")
    assert change.counts == (24, 12)
    assert all(
        min(c.counts) >= 12 for c in api.change(index, index, min_count=12, documents="1-2", against="3")
    )


def test_models_and_contexts_refuse_groups(elmo: Elmo, speeches: Index) -> None:
    with pytest.raises(UsageError, match="`documents` and `by` need an index"):
        api.nearest(speeches.words, "war", documents="1")
    with pytest.raises(UsageError, match="`by` has no effect with `context`"):
        api.nearest(speeches, "war", context="the war", by="year")
    with pytest.raises(UsageError, match="restricted already"):
        speeches.restrict("1").restrict("1")


def test_a_part_survives_pickling(speeches: Index) -> None:
    part = pickle.loads(pickle.dumps(speeches.restrict("party=Tory")))
    assert part.counts() == speeches.restrict("party=Tory").counts()
    assert "party=Tory" in repr(part)


def test_documents_are_numbered_on_when_text_is_added(tmp_path: Path, elmo: Elmo) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"the bank {name} failed")
    build_index(elmo, [tmp_path / "a.txt"], tmp_path / "index")
    build_index(elmo, [tmp_path / "b.txt"], tmp_path / "index", add=True)
    assert [document.number for document in open_index(tmp_path / "index").listed_documents] == [1, 2]


def test_an_index_of_an_older_version_has_numbered_files(book: Index, tmp_path: Path, elmo: Elmo) -> None:
    (tmp_path / "a.txt").write_text("the bank failed")
    build_index(elmo, [tmp_path / "a.txt"], tmp_path / "index")
    head = json.loads((tmp_path / "index" / "index.json").read_text())
    for name in ("titles", "split", "encoding"):
        head.pop(name)
    (tmp_path / "index" / "index.json").write_text(json.dumps(head))
    assert open_index(tmp_path / "index").restrict("1").count("bank") == 1
    build_index(elmo, [tmp_path / "a.txt"], tmp_path / "index")  # is complete


def test_rows_of_metadata_without_a_document_are_named_once(
    tmp_path: Path, elmo: Elmo, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.txt").write_text("the bank failed\n" * 9)
    (tmp_path / "meta.tsv").write_text("file\tyear\na.txt\t1900\nb.txt\t1901\n")
    api.index(elmo, tmp_path / "a.txt", tmp_path / "index", meta=tmp_path / "meta.tsv", progress=False)
    messages = [record.getMessage() for record in caplog.records if "metadata" in record.getMessage()]
    assert messages == ["1 row of the table of metadata fits no document: b.txt."]


def test_a_failed_index_leaves_no_folder(tmp_path: Path, elmo: Elmo) -> None:
    (tmp_path / "good.txt").write_text("the bank failed\n" * 9)
    (tmp_path / "bad.txt").write_bytes("银行\n".encode() * 9 + b"\xff\n")
    texts = [tmp_path / "good.txt", tmp_path / "bad.txt"]
    with pytest.raises(DataError, match=r"bad\.txt:10: not UTF-8"):
        build_index(elmo, texts, tmp_path / "new" / "index", block_usages=1)
    assert not (tmp_path / "new" / "index").exists()
    build_index(elmo, texts[:1], tmp_path / "index", block_usages=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    with pytest.raises(DataError, match=r"bad\.txt:10"):
        build_index(elmo, texts[1:], tmp_path / "index", add=True, block_usages=1)
    after = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    assert set(after) == set(before)
    assert len(open_index(tmp_path / "index")) == 27
    with pytest.raises(UsageError, match="not a kind of document"):
        build_index(elmo, texts[:1], tmp_path / "other", documents="page")
    assert not (tmp_path / "other").exists()


def test_other_documents_or_another_encoding_are_another_index(tmp_path: Path, elmo: Elmo) -> None:
    (tmp_path / "a.txt").write_text("Chapter 1\n\nthe bank\n")
    build_index(elmo, [tmp_path / "a.txt"], tmp_path / "index")
    with pytest.raises(UsageError, match="an index with another split"):
        build_index(elmo, [tmp_path / "a.txt"], tmp_path / "index", documents="auto")
    with pytest.raises(UsageError, match="an index with another encoding"):
        build_index(elmo, [tmp_path / "a.txt"], tmp_path / "index", encoding="latin-1")
