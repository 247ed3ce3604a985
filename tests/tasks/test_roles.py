"""Semantic roles: scores, training, predictions, given and predicted predicates."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.examples import TokenizedText
from polyseme.tasks.roles.example import bracket_spans
from polyseme.tasks.roles.scores import join_parts, score_roles
from polyseme.tasks.task_model import TaskModel

NOUNS, VERBS = ("dog", "cat", "man", "bird"), ("saw", "bit", "met")
SETTINGS = (
    "train.epochs=12",
    "train.rate=0.02",
    "train.batch=8",
    "input.words=16",
    "input.dropout=0",
    "input.elmo_dropout=0",
    "encoder.layers=2",
    "encoder.size=16",
    "encoder.dropout=0",
    "encoder.recurrent_dropout=0",
    "head.predicate_size=8",
    "head.dropout=0",
)


def make_rows(count: int) -> list[dict[str, Any]]:
    """Sentences of two clauses, each with a predicate between its two arguments."""
    rng = random.Random(count)
    rows = []
    for _ in range(count):
        a, b, c, d = (rng.choice(NOUNS) for _ in range(4))
        words = [a, rng.choice(VERBS), b, "and", c, rng.choice(VERBS), d]
        first = ["B-A0", "B-V", "B-A1", "O", "O", "O", "O"]
        second = ["O", "O", "O", "O", "B-A0", "B-V", "B-A1"]
        frames = [{"predicate_index": 1, "tags": first}, {"predicate_index": 5, "tags": second}]
        rows.append({"words": words, "frames": frames})
    return rows


@pytest.fixture(scope="module")
def model(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> TaskModel:
    out = tmp_path_factory.mktemp("roles") / "task"
    polyseme.train("roles", elmo, train=make_rows(30), dev=make_rows(9), out=out, settings=SETTINGS)
    return polyseme.load_task(out)


def test_roles_are_learned_for_given_predicates(model: TaskModel):
    assert model.evaluate(make_rows(5)).metrics["F1"] > 0.95


def test_a_plain_text_gets_its_predicates_and_their_roles(model: TaskModel):
    prediction = model.predict("the dog saw a cat and a man met the bird")
    assert [frame.predicate for frame in model.predict("dog saw cat and man met bird").frames] == [1, 5]
    for frame in prediction.frames:
        assert frame.probability is not None
        for role in frame.roles:
            assert role.offsets is not None
            start, stop = role.offsets
            assert "the dog saw a cat and a man met the bird"[start:stop] == role.text


def test_given_predicates_are_used_and_no_others(model: TaskModel):
    question = {"text": ["dog", "saw", "cat", "and", "man", "met", "bird"], "predicates": [5]}
    (prediction,) = model.predict([question])
    (frame,) = prediction.frames
    assert (frame.predicate, frame.probability) == (5, None)
    assert frame.text == "dog saw cat and [A0 man] [V met] [A1 bird]"
    assert prediction.as_dict()["frames"][0]["roles"][1]["label"] == "V"


def test_the_format_frames_prints_a_line_per_predicate(model: TaskModel):
    prediction = model.predict("dog saw cat and man met bird")
    assert model.task.format(prediction, "frames") == (
        "[A0 dog] [V saw] [A1 cat] and man met bird\ndog saw cat and [A0 man] [V met] [A1 bird]\n"
    )


def test_predicates_of_a_file_can_be_predicted(elmo: Elmo):
    settings = (*SETTINGS, "data.predicates=predicted", "train.epochs=2")
    result = polyseme.train("roles", elmo, train=make_rows(20), dev=make_rows(5), settings=settings).results[
        0
    ]
    assert result.dev["predicate F1"] >= 0


@pytest.mark.parametrize(
    "question",
    [{"text": "dog saw cat"}, {"text": "dog saw cat", "predicates": [3]}, {"text": 3, "predicates": []}, 3],
)
def test_a_bad_question_is_refused(model: TaskModel, question: Any):
    with pytest.raises(UsageError, match="question 1: "):
        model.predict([question])


def test_a_rare_role_that_was_not_trained_counts_as_missed(
    model: TaskModel, caplog: pytest.LogCaptureFixture
):
    rows = make_rows(5)
    rows[1]["frames"][0]["tags"][0] = "B-A7"
    scores = model.evaluate(rows)
    assert "data:2: the role 'A7' is not in the training data" in caplog.text
    assert "Of 30 roles 1 are such ones and count as missed." in caplog.text
    assert scores.metrics["recall"] <= 19 / 20


def test_a_file_of_other_roles_is_refused(model: TaskModel):
    rows = make_rows(2)
    for row in rows:
        for frame in row["frames"]:
            frame["tags"] = [tag.replace("-A", "-X") for tag in frame["tags"]]
    with pytest.raises(DataError, match="data:1: the label 'X0' is not in the training data"):
        model.evaluate(rows)


def test_parts_that_continue_a_role_are_one_argument():
    spans = [Span("A1", 0, 2), Span("V", 2, 3), Span("C-A1", 3, 5), Span("C-V", 5, 6), Span("C-A2", 6, 7)]
    assert join_parts(spans) == {("A1", ((0, 2), (3, 5))), ("A2", ((6, 7),))}


def test_an_argument_counts_only_with_all_its_parts():
    labels = {2: [Span("A1", 0, 2), Span("V", 2, 3), Span("C-A1", 3, 5), Span("A0", 5, 6)]}
    predicted = {2: [Span("A1", 0, 2), Span("V", 2, 3), Span("A0", 5, 6), Span("AM-TMP", 6, 7)]}
    scores = score_roles([labels], [predicted])
    assert scores.metrics == pytest.approx({"F1": 0.4, "precision": 1 / 3, "recall": 0.5})


def test_arguments_of_a_missed_predicate_are_missed():
    labels = {1: [Span("A0", 0, 1), Span("V", 1, 2)], 4: [Span("A1", 3, 4), Span("V", 4, 5)]}
    predicted = {1: [Span("A0", 0, 1), Span("V", 1, 2)]}
    metrics = score_roles([labels], [predicted]).metrics
    assert metrics["recall"] == 0.5
    assert metrics["predicate F1"] == pytest.approx(2 / 3)


def test_brackets_keep_the_white_space_of_the_text():
    text = TokenizedText(("他", "坐", "在", "岸边"), "他坐在岸边", ((0, 1), (1, 2), (2, 3), (3, 5)))
    assert bracket_spans(text, [Span("A0", 0, 1), Span("V", 1, 2)]) == "[A0 他][V 坐]在岸边"


def write_props(path: Path, sentences: list[tuple[list[str], list[list[Span]]]]) -> None:
    """Write the columns of the CoNLL-2005 scorer: the predicate or -, then a column of brackets for each."""
    lines: list[str] = []
    for words, frames in sentences:
        verbs = {span.start: words[span.start] for spans in frames for span in spans if span.label == "V"}
        for position in range(len(words)):
            row = [verbs.get(position, "-")]
            for spans in frames:
                opened = "".join(f"({span.label}" for span in spans if span.start == position)
                closed = ")" * sum(span.stop == position + 1 for span in spans)
                row.append(f"{opened}*{closed}")
            lines.append(" ".join(row))
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw_spans(rng: random.Random, length: int, predicate: int) -> list[Span]:
    """Random arguments on both sides of a predicate, some of which continue others."""
    spans = [Span("V", predicate, predicate + 1)]
    for low, high in ((0, predicate), (predicate + 1, length)):
        position = low
        while position < high:
            stop = rng.randint(position + 1, min(high, position + 3))
            label = rng.choice(["A0", "A1", "A2", "AM-TMP", "C-A1", "R-A0", ""])
            if label:
                spans.append(Span(label, position, stop))
            position = stop
    return sorted(spans, key=lambda span: span.start)


@pytest.mark.peers
def test_scores_agree_with_the_scorer_of_conll_2005(tmp_path: Path):
    if shutil.which("perl") is None:
        pytest.skip("perl is missing")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    done = subprocess.run([*command, "allennlp-models==2.10.1"], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("allennlp-models cannot be downloaded")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("srl-eval.pl"))
        (tmp_path / "srl-eval.pl").write_bytes(wheel.read(name))
    rng = random.Random(1)
    labelled, predicted, labels, predictions = [], [], [], []
    for _ in range(200):
        length = rng.randint(2, 12)
        words = [f"w{n}" for n in range(length)]
        positions = sorted(rng.sample(range(length), rng.randint(0, min(3, length))))
        wanted = {p: draw_spans(rng, length, p) for p in positions}
        chosen = {p: wanted[p] if rng.random() < 0.5 else draw_spans(rng, length, p) for p in positions}
        labelled.append((words, list(wanted.values())))
        predicted.append((words, list(chosen.values())))
        labels.append(wanted)
        predictions.append(chosen)
    write_props(tmp_path / "gold.props", labelled)
    write_props(tmp_path / "pred.props", predicted)
    files = [str(tmp_path / "gold.props"), str(tmp_path / "pred.props")]
    output = subprocess.run(
        ["perl", str(tmp_path / "srl-eval.pl"), *files], check=True, capture_output=True, text=True
    ).stdout
    row = next(line.split() for line in output.splitlines() if line.strip().startswith("Overall"))
    metrics = score_roles(labels, predictions).metrics
    ours = [100 * metrics[name] for name in ("precision", "recall", "F1")]
    assert [float(value) for value in row[4:7]] == pytest.approx(ours, abs=0.006)
