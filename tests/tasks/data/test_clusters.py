"""Readers of clusters: CoNLL-2012, LitBank, CorefUD, JSON lines, records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import DataError
from polyseme.tasks.data.clusters import read_clusters
from polyseme.tasks.data.sources import Records

SENTENCES = [["Anna", "met", "her", "old", "friend"], ["She", "smiled"]]
CLUSTERS = [[(0, 1), (2, 3), (5, 6)], [(2, 5)]]
COLUMN = ["(0)", "-", "(1|(0)", "-", "1)", "(0)", "-"]
ENTITIES = ["(e1-person)", "_", "(e2-person(e1-person)", "_", "e2)", "(e1-person)", "_"]


def write(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def conll2012(column: list[str], separator: str = " ") -> str:
    lines = ["#begin document (anna); part 000"]
    values = iter(column)
    for sentence in SENTENCES:
        for number, word in enumerate(sentence):
            columns = ["anna", "0", str(number), word, "X", "*", "-", "-", "-", "Bob", "*"]
            lines.append(separator.join([*columns, next(values)]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def corefud(entities: list[str]) -> str:
    lines = ["# global.Entity = eid-etype", "# newdoc id = anna"]
    values = iter(entities)
    for sentence in SENTENCES:
        for number, word in enumerate(sentence, start=1):
            entity = next(values)
            misc = "_" if entity == "_" else f"SpaceAfter=No|Entity={entity}"
            lines.append("\t".join([str(number), word, *["_"] * 7, misc]))
        lines.append("")
    return "\n".join([*lines, ""])


def record(**changes: Any) -> dict[str, Any]:
    clusters = [[list(mention) for mention in cluster] for cluster in CLUSTERS]
    return {"sentences": SENTENCES, "clusters": clusters} | changes


def test_all_formats_give_the_same_clusters(tmp_path: Path):
    empty = ["" if value == "-" else value for value in COLUMN]
    sources: list[str | Records] = [
        write(tmp_path, "a.conll", conll2012(COLUMN)),
        write(tmp_path, "litbank.conll", conll2012(empty, "\t")),
        write(tmp_path, "a.conllu", corefud(ENTITIES)),
        write(tmp_path, "a.jsonl", json.dumps(record()) + "\n"),
        Records("train", (record(),)),
    ]
    for source in sources:
        (document,) = read_clusters(source, "auto", labelled=True)
        assert document.sentences == SENTENCES
        assert document.clusters == CLUSTERS


def test_speakers_are_read_from_conll_2012(tmp_path: Path):
    (document,) = read_clusters(write(tmp_path, "a.conll", conll2012(COLUMN)), "auto", labelled=True)
    assert document.speakers == ["Bob", "Bob"]
    assert document.name == "anna part 000"


def test_a_folder_has_a_document_for_each_begin(tmp_path: Path):
    write(tmp_path, "a.conll", conll2012(COLUMN))
    write(tmp_path, "b.conll", conll2012(COLUMN) + conll2012(["-"] * 7))
    documents = list(read_clusters(str(tmp_path), "conll2012", labelled=True))
    assert [document.clusters for document in documents] == [CLUSTERS, CLUSTERS, []]


def test_mentions_of_corefud_may_begin_at_words_that_are_not_written(tmp_path: Path):
    text = corefud(["_", "_", "e3)", *["_"] * 4])
    lines = text.splitlines()
    lines.insert(3, "1.1\tghost" + "\t_" * 7 + "\tEntity=(e3-person(e4-person)")
    (document,) = read_clusters(write(tmp_path, "a.conllu", "\n".join(lines) + "\n"), "auto", labelled=True)
    assert document.clusters == [[(1, 3)]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["(0", *["-"] * 6], ":2: (0 does not close in anna part 000"),
        (["0)", *["-"] * 6], ":2: 0) closes a mention that is not open"),
        (["(0)|x", *["-"] * 6], ":2: 'x' is no cluster"),
    ],
)
def test_bad_brackets_are_refused_with_their_line(tmp_path: Path, column: list[str], message: str):
    with pytest.raises(DataError) as problem:
        list(read_clusters(write(tmp_path, "a.conll", conll2012(column)), "auto", labelled=True))
    assert message in str(problem.value)


def test_too_few_columns_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"a\.conll:1: 2 columns, expected 5 or more"):
        list(read_clusters(write(tmp_path, "a.conll", "Anna met\n"), "auto", labelled=True))
    with pytest.raises(DataError, match=r"a\.conllu:1: 1 columns, expected 10"):
        list(read_clusters(write(tmp_path, "a.conllu", "Anna met\n"), "auto", labelled=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sentences": "Anna"}, '"sentences" is'),
        ({"sentences": [["Anna", 3]]}, '"sentences" is'),
        ({"clusters": None}, '"clusters" is None'),
        ({"clusters": [[]]}, "cluster 1 is []"),
        ({"clusters": [[[0, 8]]]}, "the mention [0, 8]"),
        ({"clusters": [[[3, 3]]]}, "the mention [3, 3]"),
        ({"clusters": [[[0, 1.5]]]}, "the mention [0, 1.5]"),
        ({"clusters": [[[0, 1]], [[0, 1]]]}, "[0, 1] occurs twice"),
        ({"speakers": ["Bob"]}, "expected one for each of 2 sentences"),
    ],
)
def test_a_bad_record_is_refused_with_its_line(tmp_path: Path, changes: dict[str, Any], message: str):
    path = write(tmp_path, "a.jsonl", json.dumps(record(**changes)) + "\n")
    with pytest.raises(DataError) as problem:
        list(read_clusters(path, "auto", labelled=True))
    assert str(problem.value).startswith(f"{path}:1: ")
    assert message in str(problem.value)
