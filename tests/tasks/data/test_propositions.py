"""Readers of predicates and roles: JSON lines, CoNLL-2012, CoNLL-U Plus, records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import DataError
from polyseme.tasks.data.propositions import Proposition, read_propositions
from polyseme.tasks.data.sources import Records
from polyseme.tasks.data.tag_schemes import Span

WORDS = ["He", "sat", "on", "the", "bank"]
TAGS = ["B-ARG0", "B-V", "B-ARGM-LOC", "I-ARGM-LOC", "I-ARGM-LOC"]
SAT = Proposition(1, (Span("ARG0", 0, 1), Span("V", 1, 2), Span("ARGM-LOC", 2, 5)))
ROLES_2012 = ["(ARG0*)", "(V*)", "(ARGM-LOC*", "*", "*)"]
COLUMNS = "# global.columns = ID FORM UP:PRED UP:ARGHEADS UP:ARGSPANS\n"


def write(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def record(**changes: Any) -> dict[str, Any]:
    return {"words": WORDS, "frames": [{"predicate_index": 1, "tags": TAGS}]} | changes


def conll2012(roles: list[str]) -> str:
    rows = [
        f"doc 0 {n} {word} X * - - - - * {role} -"
        for n, (word, role) in enumerate(zip(WORDS, roles, strict=True))
    ]
    return "\n".join(["#begin document (doc); part 000", *rows, "", "#end document", ""])


def conllup(spans: str) -> str:
    rows = [f"{n}\t{word}\t_\t_\t_" for n, word in enumerate(WORDS, start=1)]
    rows[1] = f"2\tsat\tsit.01\t_\t{spans}"
    return COLUMNS + "\n".join(["# sent_id = 1", rows[0], "1.1\tghost\t_\t_\t_", *rows[1:], "", ""])


def test_all_formats_give_the_same_frames(tmp_path: Path):
    sources: list[str | Records] = [
        write(tmp_path, "a.jsonl", json.dumps(record()) + "\n"),
        write(tmp_path, "a.conll", conll2012(ROLES_2012)),
        write(tmp_path, "a.conllup", conllup("ARG0:1-1|ARGM-LOC:3-5")),
        Records("train", (record(),)),
    ]
    for source in sources:
        ((_, words, propositions),) = read_propositions(source, "auto", labelled=True)
        assert words == WORDS
        assert propositions == (SAT,)


def test_a_sentence_without_frames_has_no_predicates_but_is_kept(tmp_path: Path):
    path = write(tmp_path, "a.jsonl", json.dumps({"tokens": ["Huh", "?"], "frames": []}) + "\n")
    ((_, words, propositions),) = read_propositions(path, "auto", labelled=True)
    assert (words, propositions) == (["Huh", "?"], ())


def test_frames_may_be_missing_when_labels_are_not_needed(tmp_path: Path):
    path = write(tmp_path, "a.jsonl", json.dumps({"words": WORDS}) + "\n")
    ((_, _, propositions),) = read_propositions(path, "auto", labelled=False)
    assert propositions is None
    with pytest.raises(DataError, match=r"a\.jsonl:1: \"frames\" is None"):
        list(read_propositions(path, "auto", labelled=True))


def test_an_argument_around_the_predicate_stops_before_it(tmp_path: Path):
    path = write(tmp_path, "a.conllup", conllup("ARG1:1-4"))
    ((_, _, propositions),) = read_propositions(path, "auto", labelled=True)
    assert propositions == (Proposition(1, (Span("ARG1", 0, 1), Span("V", 1, 2))),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": "He sat"}, '"words" is'),
        ({"words": ["He", ""]}, '"words" is'),
        ({"frames": [3]}, "frame 1 is 3"),
        ({"frames": [{"predicate_index": 5, "tags": TAGS}]}, "predicate of frame 1 is 5, outside"),
        ({"frames": [{"predicate_index": -1, "tags": TAGS}]}, "predicate of frame 1 is -1, outside"),
        ({"frames": [{"predicate_index": True, "tags": TAGS}]}, "predicate of frame 1 is True"),
        ({"frames": [{"predicate_index": 1, "tags": TAGS[:-1]}]}, "4 tags for 5 words"),
        ({"frames": [{"predicate_index": 1, "tags": ["I-A", *TAGS[1:]]}]}, "word 1: I-A cannot follow"),
        ({"frames": [{"predicate_index": 1, "tags": [None] * 5}]}, '"tags" of frame 1'),
        ({"frames": [{"predicate_index": 1, "tags": TAGS}] * 2}, "two frames for the predicate at word 2"),
    ],
)
def test_a_bad_record_is_refused_with_its_line(tmp_path: Path, changes: dict[str, Any], message: str):
    path = write(tmp_path, "a.jsonl", json.dumps(record()) + "\n" + json.dumps(record(**changes)) + "\n")
    with pytest.raises(DataError) as problem:
        list(read_propositions(path, "auto", labelled=True))
    assert str(problem.value).startswith(f"{path}:2: ")
    assert message in str(problem.value)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (["(ARG0*)", "(V*)", "(ARGM-LOC*", "*", "*"], ":4: (ARGM-LOC* in column 12 does not close"),
        (["(ARG0*", "(V*)", "*", "*", "*)"], ":3: '(V*)' in column 12"),
        (["*)", "(V*)", "*", "*", "*"], ":2: '*)' in column 12"),
        (["(ARG0*)", "*", "*", "*", "*"], ":2: column 12 marks 0 predicates"),
        (["(ARG0", "(V*)", "*", "*", "*"], ":2: '(ARG0' in column 12"),
    ],
)
def test_bad_brackets_are_refused_with_their_line(tmp_path: Path, roles: list[str], message: str):
    path = write(tmp_path, "a.conll", conll2012(roles))
    with pytest.raises(DataError) as problem:
        list(read_propositions(path, "auto", labelled=True))
    assert message in str(problem.value)


def test_too_few_columns_are_refused(tmp_path: Path):
    path = write(tmp_path, "a.conll", "He sat\n")
    with pytest.raises(
        DataError, match=r"a\.conll:1: 2 columns, expected 12 or more\. Is this a file of CoNLL"
    ):
        list(read_propositions(path, "auto", labelled=True))


@pytest.mark.parametrize("spans", ["ARG0", "ARG0:9", "ARG0:4-3", "ARG0:x-y"])
def test_bad_arguments_are_refused_with_their_line(tmp_path: Path, spans: str):
    path = write(tmp_path, "a.conllup", conllup(spans))
    with pytest.raises(DataError, match=r"a\.conllup:5: the argument"):
        list(read_propositions(path, "auto", labelled=True))


def test_universal_propbank_without_words_is_refused(tmp_path: Path):
    text = "# global.columns = ID UP:PRED UP:ARGHEADS UP:ARGSPANS\n1\t_\t_\t_\n\n"
    with pytest.raises(DataError, match="merge it with its UD treebank"):
        list(read_propositions(write(tmp_path, "a.conllup", text), "auto", labelled=True))
