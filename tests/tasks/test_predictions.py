"""Predictions of trained models: plain text, blank lines, spans, probabilities."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast

import pytest

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import DataError, PolysemeError
from polyseme.tasks.data.tag_schemes import Span, write_spans
from polyseme.tasks.metrics import Scores
from polyseme.tasks.pairs.example import PairExample, PairPrediction
from polyseme.tasks.task_model import TaskModel


@pytest.fixture(scope="module")
def classifier(files: Path, elmo: Elmo) -> TaskModel:
    return polyseme.train("classification", elmo, train=files / "train.csv", settings=toys.EPOCH)


def tokens(model: TaskModel, path: Path, **options: Any) -> list[list[str]]:
    return [json.loads(line)["tokens"] for line in polyseme.predict(model, path, **options)]


# ---- relations ----


def test_a_relation_has_the_offsets_of_both_entities_in_the_text_without_marks(files: Path, elmo: Elmo):
    model = polyseme.train("relations", elmo, train=files / "train.txt", settings=toys.EPOCH)
    (values,) = (
        prediction.as_dict() for prediction in [model.predict("the <e1>good</e1> film is <e2>bad</e2>.")]
    )
    text = "the good film is bad."
    assert [entity["text"] for entity in values["entities"]] == ["good", "bad"]
    assert [text[slice(*entity["offsets"])] for entity in values["entities"]] == ["good", "bad"]


# ---- plain text ----


def test_each_line_of_plain_text_is_a_text(classifier: TaskModel, tmp_path: Path):
    (tmp_path / "a.txt").write_text("What a film\n\nneg is short\nlovely\n", encoding="utf-8")
    expected = [["What", "a", "film"], [], ["neg", "is", "short"], ["lovely"]]
    assert tokens(classifier, tmp_path / "a.txt") == expected
    assert tokens(classifier, tmp_path / "a.txt", plain_text=True) == expected


def test_labels_at_the_start_of_all_lines_are_removed(classifier: TaskModel, tmp_path: Path):
    (tmp_path / "a.txt").write_text("neg What a film\npos lovely\n", encoding="utf-8")
    assert tokens(classifier, tmp_path / "a.txt") == [["What", "a", "film"], ["lovely"]]
    assert tokens(classifier, tmp_path / "a.txt", plain_text=True)[1] == ["pos", "lovely"]
    (tmp_path / "f.txt").write_text("__label__x __label__y some words\n", encoding="utf-8")
    assert tokens(classifier, tmp_path / "f.txt") == [["some", "words"]]


@pytest.mark.parametrize("text", ["neg a\npos b\nc d e\n", "neg a film\n"])
def test_lines_that_may_or_may_not_have_labels_are_refused(classifier: TaskModel, tmp_path: Path, text: str):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"a\.txt:{text.count(chr(10))}: begins with .*plain_text=True"):
        tokens(classifier, tmp_path / "a.txt")


def test_a_blank_line_gives_a_line_of_output(classifier: TaskModel, files: Path, elmo: Elmo, tmp_path: Path):
    (tmp_path / "a.txt").write_text("good film\n\nbad film\n", encoding="utf-8")
    lines = [json.loads(line) for line in polyseme.predict(classifier, tmp_path / "a.txt", plain_text=True)]
    assert lines[1] == {"tokens": []}
    assert {lines[0]["label"], lines[2]["label"]} <= set(classifier.labels)
    tagger = polyseme.train("tagging", elmo, train=files / "train.conll", settings=toys.EPOCH)
    blocks = list(polyseme.predict(tagger, tmp_path / "a.txt", plain_text=True, format="columns"))
    assert [block.count("\t") for block in blocks] == [2, 0, 2]
    (tmp_path / "a.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="no text in it"):
        list(polyseme.predict(classifier, tmp_path / "a.txt", plain_text=True))


def test_texts_in_a_list_are_predicted_as_those_of_a_file(classifier: TaskModel, tmp_path: Path):
    (tmp_path / "a.txt").write_text("good film\nbad\n", encoding="utf-8")
    lines = list(polyseme.predict(classifier, tmp_path / "a.txt", plain_text=True))
    assert list(polyseme.predict(classifier, ["good film", "bad"], plain_text=True)) == lines
    assert list(polyseme.predict(classifier, iter(["good film", "bad"]), plain_text=True)) == lines
    with pytest.raises(DataError, match=r"question 2: the text is empty\."):
        list(polyseme.predict(classifier, ["good film", " "], plain_text=True))


# ---- tags ----


def sentence_with_names(rng: random.Random) -> tuple[list[str], list[Span]]:
    """A sentence with a name of one token and a name of three."""
    words = [*rng.sample(toys.OTHER, 3), "Anna", "went", "to", "New", "South", "Wales"]
    return words, [Span("PER", 3, 4), Span("LOC", 6, 9)]


@pytest.mark.parametrize("scheme", ["iob1", "bioes", "bilou", "bmes"])
def test_tags_are_predicted_in_the_scheme_of_the_training_file(scheme: str, tmp_path: Path, elmo: Elmo):
    rng = random.Random(1)
    for name, count in (("train", 40), ("test", 10)):
        texts = [sentence_with_names(rng) for _ in range(count)]
        rows = [zip(words, write_spans(spans, len(words), scheme), strict=True) for words, spans in texts]
        blocks = ["\n".join(f"{word} {tag}" for word, tag in row) for row in rows]
        (tmp_path / f"{name}.conll").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    files = {part: tmp_path / f"{part}.conll" for part in ("train", "test")}
    model = polyseme.train("tagging", elmo, settings=toys.QUICK, **files)  # type: ignore[arg-type]
    assert model.task.settings.data.scheme == scheme  # type: ignore[attr-defined]
    assert model.results[0].test["F1"] > 0.9
    prediction = model.predict("the film is Anna went to New South Wales")
    assert prediction.tags == tuple(write_spans(sentence_with_names(rng)[1], 9, scheme))
    assert [span.offsets for span in prediction.spans] == [(12, 16), (25, 40)]


def test_a_prediction_has_the_probability_of_each_tag(files: Path, elmo: Elmo):
    model = polyseme.train("tagging", elmo, train=files / "train.conll", settings=toys.QUICK)
    prediction = model.predict("the film is good").as_dict()
    assert len(prediction["token_probabilities"]) == 4
    assert prediction["probability"] == min(prediction["token_probabilities"])
    assert prediction["spans"][0]["probability"] == prediction["token_probabilities"][3]


def test_the_text_of_chinese_spans_has_no_spaces(tmp_path: Path, elmo: Elmo):
    rows = "刘 B-PER\n备 I-PER\n大 O\n喜 O\n\n曹 B-PER\n操 I-PER\n走 O\n\n" * 10
    (tmp_path / "a.conll").write_text(rows, encoding="utf-8")
    model = polyseme.train("tagging", elmo, train=tmp_path / "a.conll", settings=toys.QUICK)
    (prediction,) = model.predict([["刘", "备", "走"]])
    assert [(span.text, span.offsets) for span in prediction.spans] == [("刘备", None)]
    assert model.predict("刘备走").tokens == ("刘", "备", "走")  # segmented as in training


@pytest.mark.parametrize("token", [5, "", None])
def test_a_token_must_be_a_string_that_is_not_empty(classifier: TaskModel, token: object):
    with pytest.raises(DataError, match="a token is"):
        classifier.predict([["a", token]])


def test_a_folder_of_texts_needs_no_labels(classifier: TaskModel, tmp_path: Path):
    for name in ("1.txt", "2.txt"):
        (tmp_path / name).write_text("a film\n", encoding="utf-8")
    assert tokens(classifier, tmp_path) == [["a", "film"]] * 2


@pytest.fixture(scope="module")
def tagger(files: Path, elmo: Elmo) -> TaskModel:
    return polyseme.train("tagging", elmo, train=files / "train.conll", settings=toys.EPOCH)


def test_a_file_without_tags_is_read_in_the_format_of_the_training_file(tagger: TaskModel, tmp_path: Path):
    path = tmp_path / "a.txt"
    for text in ("a\ngood\n\nfilm\n", "a X\ngood X\n\nfilm X\n"):
        path.write_text(text, encoding="utf-8")
        assert tokens(tagger, path) == [["a", "good"], ["film"]]
    path.write_text("a very good film .\nfine\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"5 columns, the training file had 2 .*plain_text=True"):
        tokens(tagger, path)
    assert tokens(tagger, path, plain_text=True) == [["a", "very", "good", "film", "."], ["fine"]]


def test_a_tagger_trained_with_slashes_reads_words_without_them(tmp_path: Path, elmo: Elmo):
    path = tmp_path / "a.txt"
    path.write_text("迈向/v 充满/v 希望/n\n新/a 世纪/n\n" * 4, encoding="utf-8")
    model = polyseme.train("tagging", elmo, train=path, settings=toys.EPOCH)
    path.write_text("迈向 充满 希望\n\n江 泽民\n", encoding="utf-8")
    sentences = [sentence for sentence in tokens(model, path) if sentence]
    assert sentences == [["迈向", "充满", "希望"], ["江", "泽民"]]
    path.write_text("迈向/v 世纪/n\n", encoding="utf-8")
    assert tokens(model, path) == [["迈向", "世纪"]]


# ---- pairs ----


def rank(elmo: Elmo, path: Path, *settings: str) -> Scores:
    model = polyseme.train("pairs", elmo, train=path, dev=path, settings=(*toys.EPOCH, *settings))
    examples = model.read(path)
    predictions = []
    # For the right candidates both labels are probable, and the wrong label a little more.
    for example in cast(list[PairExample], examples):
        label = str(example.label)
        right = label in ("right", "ja")
        probabilities = {n: (0.9 if n in ("right", "ja") else 0.95) if right else 0.2 for n in model.labels}
        tokens = (example.first.tokens, example.second.tokens)
        predictions.append(PairPrediction(tokens, label, probabilities[label], probabilities))
    return model.task.score(examples, predictions)


def candidates(path: Path, yes: str, no: str) -> Path:
    rows = [
        {"sentence1": f"question {n // 3}", "sentence2": f"answer {n}", "label": yes if n % 3 == 1 else no}
        for n in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_usual_names_of_the_positive_label_are_recognized(tmp_path: Path, elmo: Elmo):
    path = candidates(tmp_path / "a.jsonl", "right", "wrong")
    assert rank(elmo, path).metrics["first is right"] == 1
    assert rank(elmo, path, "data.positive=wrong").metrics["mean 1/rank"] == 0.5


def test_a_setting_names_any_other_positive_label(tmp_path: Path, elmo: Elmo):
    path = candidates(tmp_path / "a.jsonl", "ja", "nein")
    assert "first is right" not in rank(elmo, path).metrics
    assert rank(elmo, path, "data.positive=ja").metrics["first is right"] == 1
    with pytest.raises(PolysemeError, match=r"data\.positive is 'si', the labels are ja, nein"):
        rank(elmo, path, "data.positive=si")


def test_pairs_of_texts_are_learned(tmp_path: Path, elmo: Elmo):
    rng = random.Random(2)
    for name, count in (("train", 150), ("test", 40)):
        rows = []
        for number in range(count):
            words = rng.sample([*toys.GOOD, *toys.BAD, *toys.OTHER], 6)
            second = words[:3] if number % 2 else words[3:]
            label = "within" if number % 2 else "without"
            rows.append({"sentence1": " ".join(words[:3]), "sentence2": " ".join(second), "label": label})
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    files = {part: tmp_path / f"{part}.jsonl" for part in ("train", "test")}
    model = polyseme.train("pairs", elmo, settings=toys.QUICK, **files)  # type: ignore[arg-type]
    assert model.results[0].test["accuracy"] > 0.9
