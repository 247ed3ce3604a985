"""Metrics against scikit-learn, seqeval and scipy, and against values computed by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.stats
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.metrics import precision_score as seqeval_precision
from seqeval.metrics import recall_score as seqeval_recall
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES
from sklearn import metrics as sklearn_metrics
from sklearn.preprocessing import MultiLabelBinarizer

from polyseme.tasks import metrics
from polyseme.tasks.data.tag_schemes import Span, read_spans, write_spans

LABELS = ("a", "b", "c")


@pytest.fixture
def rng() -> random.Random:
    return random.Random(3)


def test_scores_of_classes_agree_with_scikit_learn(rng: random.Random):
    labels, predicted = ([rng.choice(LABELS) for _ in range(200)] for _ in range(2))
    scores = metrics.score_classes(labels, predicted, LABELS)
    assert scores.metrics["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(labels, predicted))
    assert scores.metrics["macro F1"] == pytest.approx(
        sklearn_metrics.f1_score(labels, predicted, average="macro")
    )
    assert scores.confusion == sklearn_metrics.confusion_matrix(labels, predicted, labels=LABELS).tolist()
    by_label = sklearn_metrics.precision_recall_fscore_support(labels, predicted, labels=LABELS)
    for number, row in enumerate(scores.rows):
        assert (row.precision, row.recall, row.f1, row.count) == pytest.approx(
            tuple(part[number] for part in by_label)
        )


def test_scores_of_label_sets_agree_with_scikit_learn(rng: random.Random):
    labels, predicted = (
        [tuple(label for label in LABELS if rng.random() < 0.4) for _ in range(100)] for _ in range(2)
    )
    scores = metrics.score_label_sets(labels, predicted, LABELS)
    binarizer = MultiLabelBinarizer(classes=LABELS)
    y_true, y_pred = (binarizer.fit_transform(label_sets) for label_sets in (labels, predicted))
    assert scores.metrics["micro F1"] == pytest.approx(
        sklearn_metrics.f1_score(y_true, y_pred, average="micro")
    )
    assert scores.metrics["macro F1"] == pytest.approx(
        sklearn_metrics.f1_score(y_true, y_pred, average="macro")
    )
    assert scores.metrics["all right"] == pytest.approx(sklearn_metrics.accuracy_score(y_true, y_pred))


def test_scores_of_spans_agree_with_the_default_mode_of_seqeval(rng: random.Random):
    tags = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    labels, predicted = ([[rng.choice(tags) for _ in range(12)] for _ in range(60)] for _ in range(2))
    scores = metrics.score_spans([read_spans(t) for t in labels], [read_spans(t) for t in predicted])
    assert scores.metrics["F1"] == pytest.approx(seqeval_f1(labels, predicted))
    assert scores.metrics["precision"] == pytest.approx(seqeval_precision(labels, predicted))


def random_spans(rng: random.Random, length: int) -> list[Span]:
    """Spans of one to four tokens; some are adjacent."""
    spans, start = [], 0
    while start < length:
        stop = min(length, start + rng.randint(1, 4))
        if rng.random() < 0.6:
            spans.append(Span(rng.choice(("PER", "LOC")), start, stop))
        start = stop
    return spans


@pytest.mark.parametrize(
    ("scheme", "theirs"),
    [("iob1", IOB1), ("iob2", IOB2), ("bioes", IOBES), ("bmes", IOBES), ("bilou", BILOU)],
)
def test_scores_of_spans_agree_with_the_strict_mode_of_seqeval_in_every_scheme(
    scheme: str, theirs: type, rng: random.Random
):
    labels, predicted = (
        [write_spans(random_spans(rng, 12), 12, scheme) for _ in range(80)] for _ in range(2)
    )
    scores = metrics.score_spans([read_spans(t) for t in labels], [read_spans(t) for t in predicted])
    arguments = [
        [[tag.replace("M-", "I-") for tag in tags] for tags in sentences] for sentences in (labels, predicted)
    ]
    for name, oracle in (("F1", seqeval_f1), ("precision", seqeval_precision), ("recall", seqeval_recall)):
        assert scores.metrics[name] == pytest.approx(oracle(*arguments, mode="strict", scheme=theirs))
    assert 0 < scores.metrics["F1"] < 1


def test_correlations_agree_with_scipy(rng: random.Random):
    labels = [rng.gauss(0, 1) for _ in range(50)]
    predicted = [round(value + rng.gauss(0, 1), 1) for value in labels]  # rounded: there are ties
    scores = metrics.score_numbers(labels, predicted).metrics
    assert scores["Pearson"] == pytest.approx(scipy.stats.pearsonr(labels, predicted)[0])
    assert scores["Spearman"] == pytest.approx(scipy.stats.spearmanr(labels, predicted)[0])
    np.testing.assert_allclose(metrics.ranks(np.array(predicted)), scipy.stats.rankdata(predicted))


def test_the_correlation_with_a_constant_is_zero():
    assert metrics.score_numbers([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).metrics["Pearson"] == 0


def test_relations_are_scored_by_direction_and_without_other():
    labels = ["Cause(e1,e2)", "Cause(e2,e1)", "Whole(e1,e2)", "Other", "Cause(e1,e2)"]
    predicted = ["Cause(e1,e2)", "Cause(e1,e2)", "Other", "Whole(e1,e2)", "Cause(e1,e2)"]
    scores = metrics.score_relations(labels, predicted)
    cause = 2 / 3  # precision and recall are both 2/3; a wrong direction is a mistake
    assert {row.label: row.f1 for row in scores.rows} == {"Cause": pytest.approx(cause), "Whole": 0}
    assert scores.value == pytest.approx(cause / 2)


def test_ranking_is_scored_per_group_of_candidates():
    groups = ["q", "q", "q", "r", "r", "alone"]
    right = [False, True, False, True, False, True]
    scores = metrics.score_ranking(groups, right, [0.9, 0.5, 0.1, 0.8, 0.2, 0.0])
    assert scores == {"first is right": 0.5, "mean 1/rank": pytest.approx(0.75)}
    assert metrics.score_ranking(["a"], [True], [1.0]) == {}
