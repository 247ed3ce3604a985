"""`train`, `predict` and `evaluate` take DataFrames, lists, generators and arrays as well as paths."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.tasks.task_model import TaskModel
from polyseme.text.reading import EncodedPath

ROWS = [(f"{word} film", "pos" if word in toys.GOOD else "neg") for word in (*toys.GOOD, *toys.BAD)] * 3
TAGGED = [(["a", word], ["O", "B-X" if word in toys.GOOD else "O"]) for word in (*toys.GOOD, *toys.BAD)] * 3
PAIRS = [(a, b, "same" if b in toys.GOOD else "other") for a in toys.GOOD for b in (*toys.GOOD, *toys.BAD)]


class PandasFrame:
    """The part of a pandas DataFrame that we use."""

    def __init__(self, **columns: list[Any]) -> None:
        self.columns = list(columns)
        self._rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self._rows


class Frame:
    """The attributes that tell a DataFrame from a Series."""

    columns, shape = ("text",), (1, 1)


def train(task: str, elmo: Elmo, rows: Any, *settings: str, **named: Any) -> TaskModel:
    return polyseme.train(task, elmo, train=rows, settings=(*toys.EPOCH, *settings), **named)


def test_every_task_takes_rows(elmo: Elmo):
    assert train("classification", elmo, ROWS).labels == ("neg", "pos")
    assert train("tagging", elmo, TAGGED).labels == ("O", "B-X", "I-X", "E-X", "S-X")
    assert train("pairs", elmo, iter(PAIRS)).labels == ("other", "same")
    rows = [(f"<e1>{w}</e1> and <e2>b</e2>", "R" if w in toys.GOOD else "S") for w in (*toys.GOOD, *toys.BAD)]
    assert train("relations", elmo, rows * 2).labels == ("R", "S")


def test_rows_and_files_give_the_same_model(tmp_path: Path, elmo: Elmo):
    text = "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS)
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    texts, labels = zip(*ROWS, strict=True)
    models = [
        train("classification", elmo, source)
        for source in (
            tmp_path / "a.csv",
            (row for row in ROWS),
            [{"label": label, "text": text} for text, label in ROWS],
            PandasFrame(label=list(labels), text=list(texts)),
            pa.table({"text": texts, "label": labels}),
        )
    ]
    expected = models[0].predict("great film")
    assert all(model.predict("great film") == expected for model in models)
    assert all(model.evaluate(ROWS) == models[0].evaluate(tmp_path / "a.csv") for model in models)


def test_settings_name_the_columns_of_a_data_frame(elmo: Elmo):
    frame = PandasFrame(review=[text for text, _ in ROWS], stars=[int(label == "pos") for _, label in ROWS])
    model = train("classification", elmo, frame, "data.text=review", "data.label=stars")
    assert model.labels == ("0", "1")
    with pytest.raises(DataError, match=r"train:1: no field 'text', 'label'; there are review, stars"):
        train("classification", elmo, frame)
    tokens, tags = zip(*TAGGED, strict=True)
    tagged = PandasFrame(id=list(range(len(tags))), words=[np.array(t) for t in tokens], ner=list(tags))
    assert "B-X" in train("tagging", elmo, tagged, "data.word=words", "data.tag=ner").labels
    with pytest.raises(DataError, match=r"train:1: .*expected a tuple \(tokens, tags\)"):
        train("tagging", elmo, [("a b", "O O")])


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (5, UsageError, "train is of type int, expected a path, a DataFrame or an iterable of rows"),
        ("label,text\n1,a\n", UsageError, "train is a text of several lines, expected a path"),
        (["a film", "b film"], DataError, r"train:1: 'a film', expected a tuple \(text, label\)"),
        ([("a", "1"), ("b", "0", "c")], DataError, r"train:2: .*expected a tuple"),
        ([({"a": 1}, "1"), ("b", "0")], DataError, r"train:1: text is .*expected text"),
        ([("a", None), ("b", "0")], DataError, r"train:1: 0 labels"),
    ],
)
def test_sources_of_other_types_are_refused(elmo: Elmo, rows: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        train("classification", elmo, rows)


def test_missing_values_are_neither_labels_nor_texts(elmo: Elmo, caplog: pytest.LogCaptureFixture):
    nan = float("nan")
    with pytest.raises(DataError, match="train:31: 0 labels"):
        train("classification", elmo, [*ROWS, ("a film", nan)])
    with pytest.raises(DataError, match="train:31: 0 labels"):
        train(
            "classification", elmo, [*({"text": t, "label": y} for t, y in ROWS), {"text": "a", "label": nan}]
        )
    with caplog.at_level(logging.WARNING, "polyseme"):
        assert train("classification", elmo, [*ROWS, (nan, "pos")]).labels == ("neg", "pos")
    assert "1 of 31 examples have no text" in caplog.text


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_tag_is_refused(elmo: Elmo, missing: object):
    with pytest.raises(DataError, match="train:31: the tag of token 2 is missing"):
        train("tagging", elmo, [*TAGGED, (["a", "film"], ["O", missing])])


def test_rows_may_be_arrays_and_hold_arrays(elmo: Elmo):
    assert train("classification", elmo, np.array(ROWS)).labels == ("neg", "pos")
    assert train("classification", elmo, dict(ROWS).items()).labels == ("neg", "pos")
    tagged = [{"tokens": np.array(tokens), "tags": np.array(tags)} for tokens, tags in TAGGED]
    assert train("tagging", elmo, tagged, 'data.word="tokens"', 'data.tag="tags"').labels[0] == "O"


class HubSplit(list):
    """The attribute that tells a data set of Hugging Face from a list."""

    column_names = ("text", "label")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (set(ROWS), "train is a set, which has no order"),
        ({"train": HubSplit(), "test": HubSplit()}, r"pass one, such as `train\['train'\]`"),
        ("a text " * 1000, "train is a text of 7,000 characters, expected a path, a DataFrame or"),
        (PandasFrame(text=["a"], label=["x"], **{"text ": ["b"]}), None),
    ],
    ids=["set", "dict of splits", "text", "frame with two such columns"],
)
def test_what_holds_no_rows_is_refused(elmo: Elmo, rows: Any, message: str | None):
    if message is None:
        rows.columns = ["text", "label", "text"]
        message = "train has two columns named 'text'. Rename one."
    with pytest.raises(UsageError, match=message):
        train("classification", elmo, rows)


def test_questions_may_come_in_any_container(elmo: Elmo):
    model = train("classification", elmo, ROWS)
    texts = ["good film", "bad film"]
    expected = model.predict(texts)
    for container in (iter, np.array, pa.array):
        assert model.predict(container(texts)) == expected
    assert list(polyseme.predict(model, [(text,) for text in texts])) == list(polyseme.predict(model, texts))
    with pytest.raises(UsageError, match=r'expected one column of it, such as `questions\["text"\]`'):
        model.predict(Frame())  # type: ignore[call-overload]
    with pytest.raises(DataError, match="question 2: the text is empty"):
        model.predict(["a", " "])


# ---- examples without text ----


def test_examples_without_text_are_skipped_with_a_warning(elmo: Elmo, caplog: pytest.LogCaptureFixture):
    rows = [*ROWS, ("", "pos"), (" ", ""), (None, "neg")]
    with caplog.at_level(logging.WARNING):
        model = train("classification", elmo, rows, dev=ROWS)
    (warning,) = [record.message for record in caplog.records if "no text" in record.message]
    assert warning.startswith(
        f"train: 3 of {len(rows)} examples have no text and were skipped; the first is at "
    )
    assert f"train:{len(ROWS) + 1}." in warning
    assert model.results[0].examples == len(ROWS)
    with pytest.raises(DataError, match=rf"train:{len(ROWS) + 1}: the text is empty"):
        train("classification", elmo, rows, "data.empty=error")


def test_pairs_with_an_empty_text_are_skipped(elmo: Elmo, caplog: pytest.LogCaptureFixture):
    train("pairs", elmo, [*PAIRS, ("a", "", "same")])
    assert "train: 1 of 51 examples have no text" in caplog.text


def test_a_question_without_text_has_no_prediction(elmo: Elmo, tmp_path: Path):
    model = train("classification", elmo, ROWS)
    (tmp_path / "a.csv").write_text('text\ngood film\n""\nbad film\n', encoding="utf-8")
    lines = list(polyseme.predict(model, tmp_path / "a.csv"))
    assert len(lines) == 3
    assert lines[1] == '{"tokens": []}'


# ---- display of results ----


def test_predictions_scores_and_models_have_a_short_repr_and_html(elmo: Elmo):
    model = train("classification", elmo, [*ROWS, ("<b> film", "pos")])
    predictions = model.predict(["<b> film", "bad"])
    values = [model, predictions, predictions[0], model.evaluate(ROWS)]
    assert all(len(repr(value)) < 300 for value in values)
    assert all(value._repr_html_().count("<table>") for value in values)
    assert "&lt;b&gt; film" in predictions._repr_html_()
    assert repr(model) == "TaskModel(classification: neg, pos)"
    assert repr(predictions[1]).startswith("ClassificationPrediction(text='bad', label=")
    assert repr(values[-1]).startswith("Scores(accuracy: ")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "txt", "folder"])
def test_a_named_encoding_is_used_for_every_kind_of_file(form: str, elmo: Elmo, tmp_path: Path):
    rows = [("très bon", "pos"), ("très mauvais", "neg")] * 4
    path = tmp_path / f"a.{form}"
    if form == "folder":
        for number, (text, label) in enumerate(rows):
            (path / label).mkdir(parents=True, exist_ok=True)
            (path / label / f"{number}.txt").write_text(text, encoding="cp037")
    else:
        lines = {
            "csv": ["text,label", *(f"{text},{label}" for text, label in rows)],
            "tsv": ["text\tlabel", *(f"{text}\t{label}" for text, label in rows)],
            "jsonl": [f'{{"text": "{text}", "label": "{label}"}}' for text, label in rows],
            "txt": [f"{label} {text}" for text, label in rows],
        }
        path.write_text("\n".join(lines[form]) + "\n", encoding="cp037")  # EBCDIC: never detected
    trained = train("classification", elmo, path, encoding="cp037")
    assert trained.labels == ("neg", "pos")
    (example, *_) = trained.read(EncodedPath(path, "cp037"))
    assert example.sentences[0][0] == "très"
    lines_predicted = list(polyseme.predict(trained, path, encoding="cp037"))
    assert len(lines_predicted) == len(rows)
    assert polyseme.evaluate(trained, path, encoding="cp037").metrics["accuracy"] >= 0


def test_an_encoding_is_refused_for_rows_and_if_it_is_unknown(elmo: Elmo, files: Path):
    with pytest.raises(UsageError, match="`encoding` is for files"):
        train("classification", elmo, ROWS, encoding="gb18030")
    with pytest.raises(UsageError, match="not an encoding"):
        train("classification", elmo, files / "train.csv", encoding="gbx")
