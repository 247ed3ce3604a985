"""The persons of an index: found, counted by document, with companions, nearest persons and passages."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.books.cast import WRAPPED, _goes_on
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.search.index import Index
from polyseme.search.usage_store import StoredSentence
from wuxia import NAMES, write_novel

CHAPTERS = (
    "Anna said that Peter was ill.\n\nPeter said nothing, and Anna said no more.\n\nThe rain fell.\n\n",
    "Anna said hello to Marie.\n\nMarie said that Anna was right, and Marie said so again.\n\n",
    "But Peter said that he was tired.\n\nThen Peter said that Anna was late.\n\nMarie said no.\n\n",
)


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("novel")
    text = "\n".join(f"Chapter {number}\n\n{chapter * 3}" for number, chapter in enumerate(CHAPTERS, start=1))
    (folder / "novel.txt").write_text(text)
    elmo = Elmo(random_model(small_config()))
    text_file, out = folder / "novel.txt", folder / "index"
    return api.index(elmo, text_file, out, documents="chapters-en", segment="en", progress=False)


def test_persons_are_counted_by_chapter(novel: Index):
    cast = api.characters(novel, progress=False)
    assert cast.language == "en"
    assert cast.documents == ["Chapter 1", "Chapter 2", "Chapter 3"]
    assert {person.name for person in cast.persons} == {"Anna", "Peter", "Marie"}
    anna = cast.find("Anna")
    assert anna.documents == {0: 6, 1: 6, 2: 3}
    assert anna.count == 15
    assert [person.count for person in cast.persons] == sorted(
        (person.count for person in cast.persons), reverse=True
    )


def test_companions_share_paragraphs_and_pairs_are_those_of_the_list(novel: Index):
    cast = api.characters(novel, progress=False)
    companions = dict(cast.find("Anna").companions)
    names = [person.name for person in cast.persons]
    pairs = {frozenset((names[a], names[b])): count for a, b, count, _ in cast.pairs}
    assert companions["Peter"] == pairs[frozenset(("Anna", "Peter"))]
    assert companions["Marie"] == pairs[frozenset(("Anna", "Marie"))]
    assert all(a < b for a, b, _, _ in cast.pairs)


def test_the_nearest_persons_are_those_of_the_mean_vectors(novel: Index):
    for name, cosine in api.characters(novel, progress=False).find("Anna").nearest:
        assert cosine == pytest.approx(novel.similarity("Anna", name), abs=1e-5)


def test_passages_mention_the_person_and_say_where(novel: Index):
    for passage in api.characters(novel, progress=False).find("Marie").passages:
        assert "Marie" in passage.text
        assert passage.document in ("Chapter 2", "Chapter 3")
        assert passage.line > 1


def test_a_part_has_only_its_chapters(novel: Index):
    cast = api.characters(novel, documents="2", progress=False)
    assert cast.documents == ["Chapter 2"]
    assert "Peter" not in {person.name for person in cast.persons}


def test_aliases_are_merged(novel: Index, tmp_path: Path):
    (tmp_path / "alias.tsv").write_text("Anna\tMarie\n")
    cast = api.characters(novel, alias=tmp_path / "alias.tsv", progress=False)
    assert cast.find("Marie") is cast.find("Anna")
    assert cast.find("Anna").aliases == ("Marie",)


def test_the_largest_number_and_unknown_names_are_checked(novel: Index):
    assert len(api.characters(novel, k=1, progress=False).persons) == 1
    with pytest.raises(UsageError, match="k is 0, expected 1 or more"):
        api.characters(novel, k=0, progress=False)
    with pytest.raises(UsageError, match="'Paul' is none of the 3 persons"):
        api.characters(novel, progress=False).find("Paul")


def test_paragraphs_are_lines_or_lines_without_a_blank_one():
    first = StoredSentence("Anna said that she was going home, and that nobody should wait.", [], 0, 1)
    wrapped = [first._replace(line=line, text=first.text * 2) for line in (1, 3, 6)]
    assert [_goes_on(a, b, WRAPPED) for a, b in pairwise(wrapped)] == [True, False]
    assert _goes_on(first, first._replace(line=2), 0)
    assert not _goes_on(first, first._replace(line=3), 0)  # one paragraph a line, with blank lines between
    assert not _goes_on(first, first._replace(line=2), None)  # Chinese: a line is a paragraph
    assert _goes_on(first, first, None)
    assert not _goes_on(first, first._replace(document=1), WRAPPED)


def test_names_of_a_chinese_text_are_discovered_without_a_word_list(tmp_path: Path):
    (tmp_path / "text.txt").write_text(write_novel(sentences=900), encoding="utf-8")
    index = api.index("zh-classic", tmp_path / "text.txt", tmp_path / "index", progress=False)
    cast = api.characters(index, progress=False)
    assert cast.language == "zh"
    assert {person.name for person in cast.persons} == set(NAMES)
    text = (tmp_path / "text.txt").read_text(encoding="utf-8")
    # Names that the segmentation of the index glued to a verb are counted, too.
    assert all(person.count == text.count(person.name) for person in cast.persons)


def test_the_command_prints_a_row_per_person(
    novel: Index, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    from polyseme.cli import books

    moved = json.loads((novel.folder / "index.json").read_text())
    novel.elmo.save(tmp_path / "model")
    (novel.folder / "index.json").write_text(json.dumps(moved | {"name": str(tmp_path / "model")}))
    books.characters(novel.folder, k=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["name", "mentions", "documents", "with", "used alike"]
    assert len(lines) == 3
    books.characters(novel.folder, k=2, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["persons"]) == 2
