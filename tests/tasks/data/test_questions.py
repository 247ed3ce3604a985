"""Reading questions: SQuAD 1.1 and 2.0, JSON lines, records, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import DataError
from polyseme.tasks.data.questions import LabelledAnswer, QuestionRecord, read_questions
from polyseme.tasks.data.sources import Records

TEXT = "Anna flew to Rio . Rio is warm ."


def make_squad(*questions: dict[str, Any], text: str = TEXT) -> dict[str, Any]:
    return {
        "version": "2.0",
        "data": [{"title": "Rio", "paragraphs": [{"context": text, "qas": [*questions]}]}],
    }


def make_question(start: Any = 13, answer: Any = "Rio", **other: Any) -> dict[str, Any]:
    answers = [{"text": answer, "answer_start": start}]
    return {"id": "q1", "question": "Where to ?", "answers": answers, **other}


def read(path: Path, *, labelled: bool = True) -> list[QuestionRecord]:
    return list(read_questions(str(path), "auto", labelled=labelled))


def write(path: Path, value: Any) -> Path:
    path.write_text(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8"
    )
    return path


def test_squad_is_read_with_ids_titles_and_offsets(tmp_path: Path):
    path = write(tmp_path / "a.json", make_squad(make_question()))
    (record,) = read(path)
    assert record.id == "q1"
    assert record.article == "Rio"
    assert record.location == f"{path}: question q1"
    assert record.answers == (LabelledAnswer("Rio", ((13, 16),)),)


def test_an_impossible_question_of_squad_2_has_no_answers(tmp_path: Path):
    question = {"id": 7, "question": "Who ?", "is_impossible": True, "answers": [], "plausible_answers": []}
    (record,) = read(write(tmp_path / "a.json", make_squad(question)))
    assert record.answers == ()
    assert record.id == "7"


def test_the_same_answer_of_several_annotators_is_kept_once(tmp_path: Path):
    question = make_question()
    question["answers"] *= 3
    (record,) = read(write(tmp_path / "a.json", make_squad(question)))
    assert record.answers is not None
    assert len(record.answers) == 1


@pytest.mark.parametrize(
    ("answers", "spans"),
    [
        ([{"text": "Rio", "answer_start": 19}], ((19, 22),)),
        ({"text": ["Rio"], "answer_start": [19]}, ((19, 22),)),  # as Hugging Face writes it
        (["Rio"], ((13, 16), (19, 22))),  # without an offset, wherever it occurs
    ],
)
def test_json_lines_take_answers_in_three_forms(tmp_path: Path, answers: Any, spans: Any):
    row = {"question": "Where ?", "context": TEXT, "answers": answers}
    (record,) = read(write(tmp_path / "a.jsonl", json.dumps(row) + "\n"))
    assert record.answers == (LabelledAnswer("Rio", spans),)
    assert record.article == TEXT


def test_records_are_tuples_or_dicts():
    source = Records(
        "train", (("Where ?", TEXT, "Rio"), {"question": "Who ?", "context": TEXT, "answers": ["Anna"]})
    )
    first, second = read_questions(source, "auto", labelled=True)
    assert first.answers == (LabelledAnswer("Rio", ((13, 16), (19, 22))),)
    assert (second.location, second.id) == ("train:2", "train:2")
    (unlabelled,) = read_questions(Records("data", (("Where ?", TEXT),)), "auto", labelled=False)
    assert unlabelled.answers is None


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            make_question(start=14),
            "question q1: the answer 'Rio' does not stand at offset 14, where the text has 'io '",
        ),
        (
            make_question(start=-1),
            "question q1: answer_start is -1, expected an offset in the text of 32 characters",
        ),
        (make_question(start=10**30), "question q1: answer_start is a huge number, expected an offset"),
        (make_question(start="13"), "question q1: answer_start is '13', expected an offset"),
        (make_question(start=True), "question q1: answer_start is True, expected an offset"),
        (make_question(start=1e300), "question q1: answer_start is 1e[+]300, expected an offset"),
        (make_question(start=0, answer=""), "question q1: an answer is empty"),
        (make_question(answer=None), "question q1: text is None, expected text"),
        (make_question(answers=7), "question q1: answers is 7, expected a list"),
        (make_question(answers={"text": ["Rio"]}), "question q1: answers needs two lists"),
        (make_question(answers=["Bonn"]), "question q1: the answer 'Bonn' does not occur in the text"),
        (make_question(question=None), "question q1: question is None, expected text"),
        ({"id": "q1", "question": "Who ?"}, "question q1: no answers"),
        ({"question": "Who ?"}, "article 1, paragraph 1, question 1: no id"),
    ],
)
def test_a_bad_question_is_named(tmp_path: Path, question: dict[str, Any], message: str):
    path = write(tmp_path / "a.json", make_squad(question))
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_duplicate_id_is_named(tmp_path: Path):
    path = write(tmp_path / "a.json", make_squad(make_question(), make_question()))
    with pytest.raises(DataError, match=r"a\.json: question q1: a second question with this id"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"data": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"data": [{"paragraphs": 3}]}', "article 1: no list 'paragraphs'"),
        (
            '{"data": [{"paragraphs": [{"qas": [], "context": 3}]}]}',
            "paragraph 1: context is 3, expected text",
        ),
        ('{"data": [3]}', "article 1: no list 'paragraphs'"),
        ('{"data": 3}', "not SQuAD"),
        ("[]", "not SQuAD"),
        ('{"data": [', "not valid JSON"),
        ('{"data": ' + "9" * 10_000 + "}", "not valid JSON"),
        ('{"question": "a"}\n{"question": "b"}', 'not valid JSON .*Set data.format="jsonl"'),
    ],
)
def test_a_hostile_file_gives_one_line(tmp_path: Path, content: str, message: str):
    path = write(tmp_path / "a.json", content)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_bad_line_of_json_lines_is_named(tmp_path: Path):
    good = json.dumps({"id": "x", "question": "Where ?", "context": TEXT, "answers": ["Rio"]})
    for bad, message in (
        ("[" * 100_000, "a.jsonl:2: not valid JSON"),
        ('{"question": "a"}', "a.jsonl:2: context is None, expected text"),
        (good, "a.jsonl:2: question x: a second question with this id"),
        ("7", "a.jsonl:2: "),
    ):
        path = write(tmp_path / "a.jsonl", f"{good}\n{bad}\n")
        with pytest.raises(DataError, match=message):
            read(path)


def test_a_folder_of_files_is_read(tmp_path: Path):
    write(tmp_path / "a.json", make_squad(make_question()))
    write(tmp_path / "b.jsonl", json.dumps({"question": "Where ?", "context": TEXT, "answers": ["Rio"]}))
    assert [record.id for record in read(tmp_path)] == ["q1", f"{tmp_path / 'b.jsonl'}:1"]
