"""Read questions about texts: SQuAD 1.1 and 2.0, JSON lines.

    text.reading, tasks.data.sources  ->  tasks.data.questions  ->  tasks.answers

SQuAD: one JSON document of articles, paragraphs and questions (DRCD, CMRC 2018 and XQuAD have the same form).
JSON lines and records: {"question": …, "context": …, "answers": [{"text": …, "answer_start": …}]}, where
`answers` may also be {"text": […], "answer_start": […]}, as Hugging Face writes it, or a list of texts, each
of which then stands wherever it occurs. No answers, or `is_impossible`, means that the text has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from polyseme.errors import DataError
from polyseme.json_text import parse_json
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.data.tables import guess_format, read_json_records
from polyseme.text.reading import EncodedPath, expand_path, list_inputs, open_text, resolve_encoding

FORMATS = {".json": "squad", ".jsonl": "jsonl", ".ndjson": "jsonl"}
EXPECTED = '{"question": …, "context": …, "answers": [{"text": …, "answer_start": …}]}'


class LabelledAnswer(NamedTuple):
    """An answer, and where it stands in the text: start and stop in characters."""

    text: str
    spans: tuple[tuple[int, int], ...]


class QuestionRecord(NamedTuple):
    """A question about a text.

    Attributes:
        location: `file: question ID`.
        id: The id of the question.
        question: The question.
        text: The text that has the answer.
        answers: All labelled answers; empty if the text has none, None if they are not known.
        article: What the text belongs to: the title of an article, or the text itself.

    """

    location: str
    id: str
    question: str
    text: str
    answers: tuple[LabelledAnswer, ...] | None
    article: str


def read_questions(source: Source, file_format: str, *, labelled: bool) -> Iterator[QuestionRecord]:
    """Read questions with their texts and answers.

    Args:
        source: A path (a file, or a folder of them), or records.
        file_format: "squad", "jsonl", or "auto": by the name of the file.
        labelled: Whether the answers must be there.

    Raises:
        DataError: If the source cannot be read as such a file; the message names the file and the question.

    """
    seen: set[str] = set()
    for record in _read_records(source, file_format, labelled=labelled):
        if record.id in seen:
            raise DataError(f"{record.location}: a second question with this id. Ids must be unique.")
        seen.add(record.id)
        yield record


def _read_records(source: Source, file_format: str, *, labelled: bool) -> Iterator[QuestionRecord]:
    if isinstance(source, Records):
        yield from _read_rows(source, labelled=labelled)
        return
    for file in list_inputs(expand_path(source)):
        path = EncodedPath(file, resolve_encoding(source))
        chosen = guess_format(path, FORMATS, "jsonl") if file_format == "auto" else file_format
        if chosen == "jsonl":
            yield from _read_rows(path, labelled=labelled)
        else:
            yield from _read_squad(path, labelled=labelled)


def _read_rows(source: Source, *, labelled: bool) -> Iterator[QuestionRecord]:
    """JSON lines and records; the location of a row without an id is its id."""
    for location, row in read_json_records(source):
        if isinstance(row, tuple | list) and len(row) in (2, 3):
            question, text, *answer = row
            row = {"question": question, "context": text}
            if answer:
                row["answers"] = answer
        if not isinstance(row, Mapping):
            raise DataError(f"{location}: {row!r:.60}, expected {EXPECTED}.")
        identifier = str(row["id"]) if row.get("id") is not None else ""
        question_location = f"{location}: question {identifier}" if identifier else location
        text = _take_text(row, "context", question_location)
        article = row.get("title")
        yield QuestionRecord(
            question_location,
            identifier or location,
            _take_text(row, "question", question_location),
            text,
            _take_answers(row, text, question_location, labelled=labelled),
            article if isinstance(article, str) and article else text,
        )


def _read_squad(path: str, *, labelled: bool) -> Iterator[QuestionRecord]:
    articles = _load_json(path)
    if not isinstance(articles, Mapping) or not isinstance(articles.get("data"), list):
        raise DataError(
            f'{path}: not SQuAD, which is {{"data": [{{"paragraphs": […]}}, …]}}. '
            'Set data.format="jsonl" if it has a question per line.'
        )
    for number, article in enumerate(articles["data"], start=1):
        paragraphs = _take_list(article, "paragraphs", f"{path}: article {number}")
        title = article.get("title")
        for order, paragraph in enumerate(paragraphs, start=1):
            location = f"{path}: article {number}, paragraph {order}"
            questions = _take_list(paragraph, "qas", location)
            text = _take_text(paragraph, "context", location)
            for position, question in enumerate(questions, start=1):
                if not isinstance(question, Mapping) or not isinstance(question.get("id"), str | int):
                    raise DataError(f"{location}, question {position}: no id.")
                question_location = f"{path}: question {question['id']!s:.80}"
                yield QuestionRecord(
                    question_location,
                    str(question["id"]),
                    _take_text(question, "question", question_location),
                    text,
                    _take_answers(question, text, question_location, labelled=labelled),
                    title if isinstance(title, str) and title else f"{path} {number}",
                )


def _load_json(path: str) -> Any:
    """The value of a JSON file, whatever is in it."""
    with open_text(path, resolve_encoding(path)) as stream:
        raw = stream.read()
    try:
        return parse_json(raw)
    except UnicodeDecodeError as problem:
        raise DataError(f"{path}: not UTF-8 at byte {problem.start:,}.") from None
    except RecursionError:
        raise DataError(f"{path}: not SQuAD: its JSON is nested too deeply.") from None
    except ValueError as problem:
        raise DataError(
            f'{path}: not valid JSON ({problem}). Set data.format="jsonl" if it has a question per line.'
        ) from None


def _take_list(value: Any, name: str, location: str) -> list[Any]:
    items = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(items, list):
        raise DataError(f"{location}: no list {name!r}.")
    return items


def _take_text(value: Any, name: str, location: str) -> str:
    text = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(text, str):
        raise DataError(f"{location}: {name} is {text!r:.40}, expected text.")
    return text


def _take_answers(
    record: Mapping[str, Any], text: str, location: str, *, labelled: bool
) -> tuple[LabelledAnswer, ...] | None:
    """The answers of a question, checked: each stands where it says."""
    if record.get("is_impossible") is True:
        return ()
    answers = record.get("answers")
    if answers is None:
        if labelled:
            raise DataError(f"{location}: no answers. Expected {EXPECTED}.")
        return None
    if isinstance(answers, Mapping):
        columns = [_as_list(answers.get(name)) for name in ("text", "answer_start")]
        if any(column is None for column in columns) or len({len(column or ()) for column in columns}) > 1:
            raise DataError(f"{location}: answers needs two lists of the same length, text and answer_start.")
        answers = [
            {"text": answer, "answer_start": start}
            for answer, start in zip(columns[0] or (), columns[1] or (), strict=True)
        ]
    checked = _as_list(answers)
    if checked is None:
        raise DataError(f"{location}: answers is {answers!r:.40}, expected a list.")
    return tuple(dict.fromkeys(_take_answer(answer, text, location) for answer in checked))


def _take_answer(answer: Any, text: str, location: str) -> LabelledAnswer:
    if isinstance(answer, str):
        spans = _find_all(answer, text) if answer.strip() else ()
        if not spans:
            raise DataError(f"{location}: the answer {answer!r:.60} does not occur in the text.")
        return LabelledAnswer(answer, spans)
    words = _take_text(answer, "text", location)
    start = answer.get("answer_start")
    if not words.strip():
        raise DataError(f"{location}: an answer is empty. Set is_impossible if the text has no answer.")
    if not isinstance(start, int) or isinstance(start, bool) or not 0 <= start <= len(text):
        shown = repr(start) if not isinstance(start, int) or abs(start) < 10**18 else "a huge number"
        raise DataError(
            f"{location}: answer_start is {shown:.40}, expected an offset in the text of {len(text):,} "
            "characters."
        )
    if text[start : start + len(words)] != words:
        raise DataError(
            f"{location}: the answer {words!r:.60} does not stand at offset {start:,}, where the text has "
            f"{text[start : start + len(words)]!r:.60}."
        )
    return LabelledAnswer(words, ((start, start + len(words)),))


def _find_all(words: str, text: str) -> tuple[tuple[int, int], ...]:
    """Where words occur in a text, without overlaps."""
    return tuple(match.span() for match in re.finditer(re.escape(words), text))


def _as_list(value: Any) -> list[Any] | None:
    """A list, a tuple or an array of a DataFrame as a list; None for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    return list(value.tolist()) if hasattr(value, "tolist") else None
