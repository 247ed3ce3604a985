"""Question answering: scores, windows, training, no answer, documents, predictions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import ConfigError, DataError, UsageError
from polyseme.tasks.answers.example import AnswersExample, find_passage
from polyseme.tasks.answers.network import AnswersNetwork, find_threshold
from polyseme.tasks.answers.scores import compare_answers, is_chinese, score_answers
from polyseme.tasks.answers.settings import AnswersSettings
from polyseme.tasks.answers.task import Answers
from polyseme.tasks.answers.windows import describe_shared, label_spans, split_windows
from polyseme.tasks.data.questions import LabelledAnswer
from polyseme.tasks.examples import Segmenter, hold_out
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader
from polyseme.tasks.task_model import TaskModel
from programs import run_program as run

NAMES, CITIES = ("Anna", "Bert", "Carl"), ("New York", "Paris", "Rio")
SETTINGS = (
    "train.epochs=14",
    "train.rate=0.02",
    "train.batch=8",
    "train.schedule=constant",
    "input.words=16",
    "input.chars=0",
    "input.dropout=0",
    "input.elmo_dropout=0",
    "encoder.size=16",
    "encoder.dropout=0",
    "head.dropout=0",
)


def make_rows(count: int, *, impossible: bool = False) -> list[dict[str, Any]]:
    """Texts of two sentences in any order; a question about a name or a city, or about nothing in them."""
    rng = random.Random(count)
    rows = []
    for number in range(count):
        name, city, other = rng.choice(NAMES), rng.choice(CITIES), rng.choice(("warm", "cold"))
        flight, weather = f"{name}  flew to {city} .", f"It was {other} there ."
        text = " ".join(rng.sample([flight, weather], 2))
        question, answer = [("who flew ?", name), ("which city ?", city)][number % 2]
        row: dict[str, Any] = {"id": f"q{number}", "question": question, "context": text}
        if impossible and number % 3 == 0:
            row |= {"question": "what price ?", "answers": []}
        else:
            row["answers"] = [{"text": answer, "answer_start": text.index(answer)}]
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def folder(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("answers") / "task"
    polyseme.train("answers", elmo, train=make_rows(80), dev=make_rows(20), out=out, settings=SETTINGS)
    return out


@pytest.fixture(scope="module")
def model(folder: Path) -> TaskModel:
    return polyseme.load_task(folder)


def test_answers_are_learned_and_are_parts_of_the_raw_text(model: TaskModel):
    assert model.evaluate(make_rows(30)).metrics["F1"] > 0.9
    text = "Carl  flew to New York . It was cold there ."
    for question, answer in (("which city ?", "New York"), ("who flew ?", "Carl")):
        prediction = model.predict((question, text))
        start, stop = prediction.offsets
        assert prediction.answer == text[start:stop] == answer
        assert prediction.marked == f"{text[:start]}[{answer}]{text[stop:]}".replace("  ", " ")


def test_a_long_text_is_read_in_windows(model: TaskModel):
    filler = "It was warm there . " * 150
    text = f"{filler}Bert  flew to Paris . {filler}"
    prediction = model.predict(("which city ?", text))
    assert prediction.answer == "Paris"
    assert prediction.offsets == (text.index("Paris"), text.index("Paris") + 5)


def test_training_can_be_resumed_and_gives_the_same_model(elmo: Elmo, tmp_path: Path):
    values: dict[str, Any] = {"train": make_rows(24), "dev": make_rows(8), "out": tmp_path / "task"}
    values["settings"] = (*SETTINGS, "train.epochs=2")
    first = polyseme.train("answers", elmo, **values)
    (tmp_path / "task" / "runs" / "with-1-1" / "result.json").unlink()  # as if it had been interrupted
    again = polyseme.train("answers", elmo, resume=True, **values)
    question = ("which city ?", "Carl flew to Rio . It was cold there .")
    assert again.predict(question).best == first.predict(question).best


def test_a_text_may_have_no_answer_if_training_had_such_texts(elmo: Elmo, tmp_path: Path):
    rows: dict[str, Any] = {"train": make_rows(90, impossible=True), "dev": make_rows(30, impossible=True)}
    with pytest.raises(DataError, match=r"train:1: question q0: no answer\. Set head\.allow_no_answer=true"):
        polyseme.train("answers", elmo, settings=SETTINGS, **rows)
    out = tmp_path / "task"
    chosen = (*SETTINGS, "head.allow_no_answer=true")
    trained = polyseme.train("answers", elmo, out=out, settings=chosen, **rows)
    model = polyseme.load_task(out)
    assert isinstance(model.network, AnswersNetwork)
    assert float(model.network.threshold) == float(trained.network.threshold) != 0  # type: ignore[attr-defined]
    metrics = model.evaluate(make_rows(31, impossible=True)).metrics
    assert metrics["F1 with an answer"] > 0.8
    assert metrics["accuracy without an answer"] > 0.8
    prediction = model.predict(("what price ?", "Carl flew to Rio . It was cold there ."))
    assert (prediction.answer, prediction.offsets, prediction.marked) == (None, None, "")
    assert prediction.as_dict()["answer"] is None
    assert model.task.format(prediction, "text").splitlines()[1].startswith("  no answer (")


def test_the_threshold_is_the_margin_above_which_answering_gains_most():
    gains = [(3.0, 1.0), (2.0, 0.5), (1.0, -1.0), (0.0, 0.25)]
    assert find_threshold(gains) == 1.5
    assert find_threshold([(3.0, 1.0), (2.0, 1.0)]) < 2.0  # all are answered
    assert find_threshold([(3.0, -1.0), (2.0, -1.0)]) >= 3.0  # none is
    assert find_threshold([]) == 0


def test_questions_are_answered_over_a_folder_of_files(model: TaskModel, tmp_path: Path):
    (tmp_path / "a.txt").write_text("The dog barked .\n\nNobody came .\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("\n\nBert flew to Paris . It was cold there .\n", encoding="utf-8")
    prediction = model.ask("who flew to Paris ?", tmp_path)
    assert prediction.answer == "Bert"
    assert prediction.source == f"{tmp_path / 'b.txt'}:3"
    start, stop = prediction.offsets
    assert (tmp_path / "b.txt").read_text(encoding="utf-8")[start:stop] == "Bert"
    (line,) = polyseme.predict(model, tmp_path, question="who flew to Paris ?", progress=False)
    assert json.loads(line)["answer"] == "Bert"
    assert len(model.ask(["who flew ?", "which city ?"], tmp_path / "b.txt")) == 2


def test_the_command_line_answers_a_question_over_a_file(folder: Path, tmp_path: Path):
    (tmp_path / "b.txt").write_text("Bert  flew to Paris . It was cold there .\n", encoding="utf-8")
    result = run("predict", folder, tmp_path / "b.txt", "--question", "which city ?", "--format", "text")
    assert result.code == 0, result.err
    first, second, third, *_ = result.out.splitlines()
    assert first == "which city ?"
    assert second.startswith("  Paris (")
    assert second.endswith("b.txt:1")
    assert third == "  Bert flew to [Paris] . It was cold there ."


@pytest.mark.parametrize(
    ("question", "path", "message"),
    [
        ("", "b.txt", "question 1 is '', expected text"),
        ("who ?", "none.txt", "none.txt"),
        ("who ?", "empty.txt", "empty.txt: no text in it"),
    ],
)
def test_a_bad_question_over_a_file_gives_one_line(
    folder: Path, tmp_path: Path, question: str, path: str, message: str
):
    (tmp_path / "b.txt").write_text("Bert flew .\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    result = run("predict", folder, tmp_path / path, "--question", question)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_other_tasks_take_no_question(elmo: Elmo, tmp_path: Path):
    toys.write(tmp_path)
    model = polyseme.train("tagging", elmo, train=tmp_path / "train.conll", settings=toys.EPOCH)
    with pytest.raises(UsageError, match="tagging answers no questions over documents"):
        model.ask("who ?", tmp_path / "train.conll")


@pytest.mark.parametrize("question", [("who ?", "Anna .", "x"), ("who ?", 3), [["who"]]])
def test_a_bad_question_is_refused(model: TaskModel, question: Any):
    with pytest.raises(UsageError, match="a tuple of a question and a text"):
        model.predict([question])


def test_an_empty_question_or_text_is_refused(model: TaskModel):
    for question in (("", "Anna flew ."), ("who ?", " ")):
        with pytest.raises(DataError, match="the text is empty"):
            model.predict(question)


def test_tokens_may_replace_texts(model: TaskModel):
    prediction = model.predict((["who", "flew", "?"], ["Anna", "flew", "to", "Rio", "."]))
    assert (prediction.answer, prediction.offsets) == ("Anna", None)


def test_html_is_escaped(model: TaskModel):
    prediction = model.predict(("who flew <b> ?", "Anna flew to <i>Rio</i> ."))
    html = model.task.format(prediction, "html")
    assert "<mark>Anna</mark>" in html
    assert "&lt;b&gt;" in html
    assert "<i>" not in html


def test_windows_without_room_for_an_answer_are_refused():
    with pytest.raises(ConfigError, match=r"data\.overlap is 20"):
        polyseme.train("answers", toys.elmo(), train=make_rows(4), settings=["data.overlap=20"])


def make_example(text: str, question: str = "who ?", segment: str = "auto") -> AnswersExample:
    task = Answers(AnswersSettings())
    return task.parse((question, text), Segmenter(segment), "x")


@pytest.fixture(scope="module")
def untrained() -> AnswersNetwork:
    values: dict[str, Any] = {"input": {"elmo": "none", "words": 8, "min_count": 1}, "encoder": {"size": 4}}
    chosen = AnswersSettings(
        **(values | {"data": {"window": 12, "overlap": 5}, "head": {"max_answer_tokens": 5}})
    )
    torch.manual_seed(1)
    reader = TokenReader(chosen.input, ["a", "b", "。"], (), None)
    network = AnswersNetwork(Featurizer(reader, None), chosen, ())
    network.eval()
    return network


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=80), question=st.text(min_size=1, max_size=10))
def test_an_answer_is_a_substring_of_any_unicode_text(untrained: AnswersNetwork, text: str, question: str):
    example = make_example(text, question)
    if not all(example.sentences):
        return
    with torch.no_grad():
        (prediction,) = untrained.decode([example])
    assert prediction.offsets is not None
    start, stop = prediction.offsets
    assert 0 <= start < stop <= len(text)
    assert prediction.answer == text[start:stop]
    assert 0 < prediction.best.stop - prediction.best.start <= 5
    assert 0 <= prediction.probability <= 1
    assert prediction.passage[1] == text[start:stop]


@given(total=st.integers(1, 60), size=st.integers(2, 20), overlap=st.integers(1, 19))
def test_every_span_as_long_as_the_overlap_is_in_a_window(total: int, size: int, overlap: int):
    overlap = min(overlap, size - 1)
    example = make_example(" ".join(["a"] * total), segment="split")
    windows = list(split_windows(example, size, overlap))
    for start in range(total):
        stop = min(start + overlap, total)
        assert any(window.start <= start and stop <= window.stop for window in windows)
    assert all(window.stop - window.start == min(size, total) for window in windows)


def test_windows_of_a_text_give_the_scores_of_the_text_alone(untrained: AnswersNetwork):
    short = make_example("a b a . b b a .", segment="split")
    long = make_example("b a b a a b b a a a b b a b a b a a b b a .", segment="split")
    with torch.no_grad():
        together = untrained.decode([short, long])
        alone = [untrained.decode([example])[0] for example in (short, long)]
    assert [p.best[3:] for p in together] == [p.best[3:] for p in alone]
    for a, b in zip(together, alone, strict=True):
        assert a.best.margin == pytest.approx(b.best.margin, abs=1e-4)


def test_labels_cover_all_tokens_that_they_touch():
    example = make_example("Anna flew to Rio .", segment="split")
    labels = (LabelledAnswer("nna fl", ((1, 7),)), LabelledAnswer(" ", ((4, 5),)))
    labelled = AnswersExample("x", "x", example.question, example.text, example.starts, labels)
    assert label_spans(labelled) == [(0, 2)]


def test_shared_words_are_described():
    tokens = ["The", "neighbours", "came", "in", "1984", "荆州"]
    assert describe_shared(tokens, ["the", "Neighbour", "1984", "州"]) == [
        (1.0, 0.0, 0.0),
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 1.0),
        (0.0, 0.0, 1.0),
    ]


def test_a_long_sentence_is_shortened_around_the_answer():
    example = make_example(" ".join(["a"] * 200), segment="split")
    before, answer, after = find_passage(example, 100, 101)
    assert before.startswith("… a")
    assert after.endswith("a …")
    assert answer == "a"


def test_questions_about_one_article_are_held_out_together():
    task = Answers(AnswersSettings())
    examples = [
        AnswersExample(f"x:{n}", str(n), *(make_example("a b").question,) * 2, (0,), (), f"article {n % 5}")
        for n in range(50)
    ]
    train, dev = hold_out(examples, lambda example: set(task.count_labels(example)), 0.2, seed=1)
    assert len(dev) == 10
    assert not {example.group for example in train} & {example.group for example in dev}


CASES = [
    ("the Eiffel Tower", "Eiffel Tower"),
    ("Saint Bernadette Soubirous", "Bernadette"),
    ("1,000", "1000"),
    ("a man's house", "the mans house"),
    ("Paris", "London"),
    ("copper copper statue", "copper statue of copper"),
    ("2005", "in 2005, in Rome"),
]


def test_english_scores_equal_those_of_torchmetrics():
    squad = pytest.importorskip("torchmetrics.text").SQuAD()
    predicted = [{"id": str(n), "prediction_text": guess} for n, (_, guess) in enumerate(CASES)]
    labels = [
        {"id": str(n), "answers": {"text": [label, "another label"], "answer_start": [0, 0]}}
        for n, (label, _) in enumerate(CASES)
    ]
    expected = squad(predicted, labels)
    scores = score_answers(
        ["Which one?"] * len(CASES), [[label, "another label"] for label, _ in CASES], [g for _, g in CASES]
    )
    assert scores.metrics["EM"] * 100 == pytest.approx(float(expected["exact_match"]))
    assert scores.metrics["F1"] * 100 == pytest.approx(float(expected["f1"]))


@pytest.mark.parametrize(
    ("label", "predicted", "exact", "f1"),
    [
        ("中国银行", "银行", 0, 2 * 1.0 * 0.5 / 1.5),  # 2 of 4 characters, 2 of 2
        ("中国银行", "中国的银行", 0, 2 * (2 / 5) * (2 / 4) / (2 / 5 + 2 / 4)),  # the longest run is 2
        ("「1786年」", "1786年", 1, 1),  # punctuation does not count; 1786 is one piece
        ("1786年", "1785年", 0, 0.5),
        ("威廉·琼斯", "威廉琼斯", 1, 1),
        ("New York", "new york", 1, 1),
        ("北京", "上海", 0, 0),
    ],
)
def test_chinese_scores_count_the_longest_common_run_of_characters(
    label: str, predicted: str, exact: float, f1: float
):
    assert compare_answers(label, predicted, chinese=True) == pytest.approx((exact, f1))


def test_the_question_tells_the_language():
    assert is_chinese("陸特和漢斯雷頓開創了哪一地區？")
    assert is_chinese("谁写了 Hamlet？")
    assert not is_chinese("What does 银行 mean in English?")
    assert not is_chinese("1984?")


def test_no_answer_is_right_only_where_there_is_none():
    scores = score_answers(["who?"] * 3, [[], [], ["Anna"]], [None, "Bert", None])
    assert scores.metrics == {
        "F1": pytest.approx(1 / 3),
        "EM": pytest.approx(1 / 3),
        "F1 with an answer": 0,
        "accuracy without an answer": 0.5,
    }
