"""Abstractive summaries: ROUGE, copying, training."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

import polyseme
from polyseme.elmo import Elmo
from polyseme.errors import DataError
from polyseme.tasks.summarise.rouge import score_rouge

NAMES = ("Anna", "Thomas", "Maria", "Peter", "Lisbon", "London", "Rome", "Oslo")
SETTINGS = (
    "train.epochs=60",
    "train.patience=60",
    "train.rate=0.01",
    "train.schedule=constant",
    "train.batch=16",
    "train.precision=fp32",
    "input.words=24",
    "input.dropout=0",
    "input.elmo_dropout=0",
    "encoder.size=24",
    "encoder.dropout=0",
    "head.size=24",
    "head.embedding=24",
    "head.dropout=0",
    "head.label_smoothing=0",
    "head.vocabulary=80",
)
ENGLISH = st.lists(st.sampled_from(["the", "cat", "sat", "Mat", "it's", "3.5", "x_y", "-", "!"]), max_size=12)


@given(ENGLISH, ENGLISH)
def test_rouge_of_english_is_that_of_rouge_score(target: list[str], predicted: list[str]) -> None:
    expected = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(" ".join(target), " ".join(predicted))
    metrics = score_rouge([" ".join(target)], [" ".join(predicted)]).metrics
    assert metrics["ROUGE-1"] == pytest.approx(expected["rouge1"].fmeasure)
    assert metrics["ROUGE-2"] == pytest.approx(expected["rouge2"].fmeasure)
    assert metrics["ROUGE-L"] == pytest.approx(expected["rougeL"].fmeasure)


def test_rouge_of_chinese_counts_characters() -> None:
    metrics = score_rouge(["中国银行"], ["银行"]).metrics
    assert metrics["ROUGE-1"] == pytest.approx(2 * 1 * 0.5 / 1.5)  # both characters, of four
    assert metrics["ROUGE-2"] == pytest.approx(2 * 1 * (1 / 3) / (4 / 3))
    assert metrics["ROUGE-L"] == metrics["ROUGE-1"]
    assert score_rouge(["北京"], ["上海"]).value == 0.0
    assert score_rouge(["Café Müller"], ["café müller"]).value == 1.0


def make_rows(count: int) -> list[dict[str, str]]:
    """The summary is the name, which may be one that no summary of the training set has."""
    rng = random.Random(count)
    rows = []
    for _ in range(count):
        name = rng.choice(NAMES)
        text = f"this is about {name} , and nobody else ." if rng.random() < 0.5 else f"we met {name} today ."
        rows.append({"text": text, "summary": f"about {name}"})
    return rows


def test_names_are_copied_and_the_task_is_saved(elmo: Elmo, tmp_path: Path) -> None:
    out = tmp_path / "task"
    polyseme.train("summarise", elmo, train=make_rows(90), dev=make_rows(9), out=out, settings=SETTINGS)
    model = polyseme.load_task(out)
    assert model.evaluate(make_rows(20)).metrics["ROUGE-L"] > 0.7  # without a look at the text: 0.5
    assert model.predict("we met Oslo today .").text == "about Oslo"
    (tmp_path / "a.txt").write_text("we met\nRome today .\n", encoding="utf-8")
    assert list(polyseme.predict(out, tmp_path / "a.txt", plain_text=True, format="text")) == ["about Rome"]


def test_long_texts_are_truncated_and_empty_summaries_refused(
    elmo: Elmo, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"text": "a " * 300, "summary": "a"}] * 4
    polyseme.api.count_examples("summarise", elmo, train=rows)
    assert "4 of 4 sources are longer than data.max_tokens (200) and were truncated" in caplog.text
    with pytest.raises(DataError, match="train:2: the target is empty"):
        polyseme.api.count_examples("summarise", elmo, train=[*rows[:1], {"text": "a", "summary": " "}])
