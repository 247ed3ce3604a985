"""The baseline is scikit-learn's, and the report says which model to use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from polyseme.tasks.examples import Segmenter
from polyseme.tasks.experiment import Experiment, Run, RunResult
from polyseme.tasks.report import advise, describe_elmo_effect, render_results
from polyseme.tasks.tfidf import Baseline, TfidfVectors, fit_regression, list_features, train_baseline


@dataclass(frozen=True)
class TextExample:
    location: str
    sentences: tuple[tuple[str, ...], ...]


def random_texts(count: int, seed: int = 0) -> tuple[list[str], list[int]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    words = [f"w{number}" for number in range(30)]
    texts = []
    for label in labels:
        chances = np.ones(30)
        chances[label * 5 : label * 5 + 5] += 4
        texts.append(" ".join(rng.choice(words, 12, p=chances / chances.sum())))
    return texts, labels.tolist()


def examples_of(texts: list[str]) -> list[TextExample]:
    return [TextExample("x", (tuple(text.split()),)) for text in texts]


def test_vectors_and_weights_are_those_of_scikit_learn() -> None:
    texts, labels = random_texts(120)
    reference = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), sublinear_tf=True)
    expected = reference.fit_transform(texts).toarray()
    vectors = TfidfVectors(examples_of(texts))
    encoded = vectors.encode(examples_of(texts))
    columns = [reference.vocabulary_[name] for name in vectors._columns]
    np.testing.assert_allclose(encoded.to_dense().numpy(), expected[:, columns], atol=1e-5)
    weights, biases = fit_regression(encoded, torch.tensor(labels), 3, strength=3.0)
    regression = LogisticRegression(C=3.0, max_iter=1000, tol=1e-8).fit(expected, labels)
    chances = (encoded.to_dense() @ weights + biases).softmax(dim=1).numpy()
    np.testing.assert_allclose(chances, regression.predict_proba(expected), atol=5e-3)


def test_features_of_pairs_tell_the_texts_apart() -> None:
    features = list_features(TextExample("x", (("A", "b"), ("b", "c"))))
    assert features == [
        "0\ta",
        "0\tb",
        "0\ta b",
        "1\tb",
        "1\tc",
        "1\tb c",
        "shared\tb",
        "unshared\ta",
        "unshared\tc",
    ]


@pytest.mark.parametrize("task_name", ["classification", "pairs"])
def test_tasks_with_one_label_have_a_baseline(task_name: str) -> None:
    texts, labels = random_texts(200)
    task = Experiment(task_name, settings=["data.segment=split"]).make_task()
    names, rows = "abc", list[tuple[str, ...]]()
    if task_name == "pairs":
        rows = [(text, text[:20], names[label]) for text, label in zip(texts, labels, strict=True)]
    else:
        rows = [(text, names[label]) for text, label in zip(texts, labels, strict=True)]
    from polyseme.tasks.data.sources import open_source

    examples = task.read(open_source(rows, "train"), Segmenter("split"))
    task = task.learn(examples)
    baseline = train_baseline(task, examples[:120], examples[120:160], examples[160:])
    assert baseline is not None
    assert baseline.test["accuracy"] > 0.6
    assert baseline.sizes == {"dev": 40, "test": 40}


@pytest.mark.parametrize(
    ("task_name", "setting"), [("classification", "data.multi=true"), ("pairs", "head.answer=number")]
)
def test_several_labels_and_numbers_have_none(task_name: str, setting: str) -> None:
    from polyseme.tasks.data.sources import open_source

    task = Experiment(task_name, settings=["data.segment=split", setting]).make_task()
    rows = [("a b", "1"), ("c d", "2")] if task_name == "classification" else [("a", "b", 1), ("c", "d", 2)]
    examples = task.read(open_source(rows, "train"), Segmenter("split"))
    task = task.learn(examples)
    assert train_baseline(task, examples, examples, None) is None


def make_results(with_elmo: float, without: float) -> list[RunResult]:
    values = {True: with_elmo, False: without}
    return [
        RunResult(Run(elmo, 1.0, 1), 100, {"accuracy": value}, {"accuracy": value}, "accuracy", 3, 1.0)
        for elmo, value in values.items()
    ]


def make_baseline(value: float, size: int = 1000) -> Baseline:
    scores = {"accuracy": value}
    return Baseline(scores, scores, "accuracy", 100, {"dev": size, "test": size}, 3.0, 1.0)


def test_the_effect_of_elmo_is_said_in_plain_words() -> None:
    gain, capped = describe_elmo_effect(make_results(0.65, 0.60), "test")
    assert gain == (
        "ELMo raises accuracy on test by 0.0500 and cuts the error of the same model without it by 12.5%. "
        "This may be chance: these runs do not show a difference (one run of each)."
    )
    assert capped == (
        "2 of 2 runs (without ELMo and with ELMo) ended at the cap of train.epochs before dev stopped "
        "improving: raise it for a fair comparison."
    )
    loss, _ = describe_elmo_effect(make_results(0.60, 0.65), "test")
    assert loss.startswith("ELMo lowers accuracy on test by 0.0500 and raises the error")


def test_the_report_says_which_model_to_use() -> None:
    results = make_results(0.668, 0.60)
    (advice,) = advise(results, make_baseline(0.735), "test")
    assert advice == (
        "Use TF-IDF + logistic regression: accuracy on test is 0.7350 TF-IDF + logistic regression, "
        "0.6680 with ELMo, 0.6000 without ELMo."
    )
    (advice,) = advise(make_results(0.9, 0.8), make_baseline(0.735), "test")
    assert advice.startswith("Use the model with ELMo: accuracy on test is 0.9000 with ELMo")
    (advice,) = advise(make_results(0.74, 0.6), make_baseline(0.735), "test")
    assert advice.startswith("Use TF-IDF + logistic regression: ")
    assert "1,000 examples cannot show that with ELMo is better" in advice
    assert advise(results, None, "test") == []
    assert "| TF-IDF + logistic regression | 100 | 1 | 0.7350 | 0.7350 |" in render_results(
        results, make_baseline(0.735)
    )
