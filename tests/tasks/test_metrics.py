"""Metrics against their oracles: scikit-learn, seqeval, scipy; and by hand."""

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
def chance() -> random.Random:
    return random.Random(3)


def test_classes_agree_with_scikit_learn(chance: random.Random):
    labels, predicted = ([chance.choice(LABELS) for _ in range(200)] for _ in range(2))
    found = metrics.score_classes(labels, predicted, LABELS)
    assert found.metrics["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(labels, predicted))
    assert found.metrics["macro F1"] == pytest.approx(
        sklearn_metrics.f1_score(labels, predicted, average="macro")
    )
    assert found.confusion == sklearn_metrics.confusion_matrix(labels, predicted, labels=LABELS).tolist()
    by_label = sklearn_metrics.precision_recall_fscore_support(labels, predicted, labels=LABELS)
    for number, row in enumerate(found.rows):
        assert (row.precision, row.recall, row.f1, row.count) == pytest.approx(
            tuple(part[number] for part in by_label)
        )


def test_several_labels_agree_with_scikit_learn(chance: random.Random):
    labels, predicted = (
        [tuple(label for label in LABELS if chance.random() < 0.4) for _ in range(100)] for _ in range(2)
    )
    found = metrics.score_label_sets(labels, predicted, LABELS)
    one, other = (MultiLabelBinarizer(classes=LABELS).fit_transform(some) for some in (labels, predicted))
    assert found.metrics["micro F1"] == pytest.approx(sklearn_metrics.f1_score(one, other, average="micro"))
    assert found.metrics["macro F1"] == pytest.approx(sklearn_metrics.f1_score(one, other, average="macro"))
    assert found.metrics["all right"] == pytest.approx(sklearn_metrics.accuracy_score(one, other))


def test_spans_agree_with_seqeval_as_conlleval_reads_them(chance: random.Random):
    tags = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    labels, predicted = ([[chance.choice(tags) for _ in range(12)] for _ in range(60)] for _ in range(2))
    found = metrics.score_spans([read_spans(t) for t in labels], [read_spans(t) for t in predicted])
    assert found.metrics["F1"] == pytest.approx(seqeval_f1(labels, predicted))
    assert found.metrics["precision"] == pytest.approx(seqeval_precision(labels, predicted))


def some_spans(chance: random.Random, length: int) -> list[Span]:
    """Spans of one to four words, some of which touch."""
    found, start = [], 0
    while start < length:
        stop = min(length, start + chance.randint(1, 4))
        if chance.random() < 0.6:
            found.append(Span(chance.choice(("PER", "LOC")), start, stop))
        start = stop
    return found


@pytest.mark.parametrize(
    ("scheme", "theirs"),
    [("iob1", IOB1), ("iob2", IOB2), ("bioes", IOBES), ("bmes", IOBES), ("bilou", BILOU)],
)
def test_read_spans_a_scheme_agree_with_seqeval(scheme: str, theirs: type, chance: random.Random):
    sides = [[some_spans(chance, 12) for _ in range(80)] for _ in range(2)]
    labels, predicted = ([write_spans(spans, 12, scheme) for spans in side] for side in sides)
    found = metrics.score_spans([read_spans(t) for t in labels], [read_spans(t) for t in predicted])
    asked = [[[tag.replace("M-", "I-") for tag in tags] for tags in side] for side in (labels, predicted)]
    for name, oracle in (("F1", seqeval_f1), ("precision", seqeval_precision), ("recall", seqeval_recall)):
        assert found.metrics[name] == pytest.approx(oracle(*asked, mode="strict", scheme=theirs))
    assert 0 < found.metrics["F1"] < 1


def test_correlations_agree_with_scipy(chance: random.Random):
    labels = [chance.gauss(0, 1) for _ in range(50)]
    predicted = [round(value + chance.gauss(0, 1), 1) for value in labels]  # rounded: there are ties
    found = metrics.score_numbers(labels, predicted).metrics
    assert found["Pearson"] == pytest.approx(scipy.stats.pearsonr(labels, predicted)[0])
    assert found["Spearman"] == pytest.approx(scipy.stats.spearmanr(labels, predicted)[0])
    np.testing.assert_allclose(metrics.ranks(np.array(predicted)), scipy.stats.rankdata(predicted))


def test_what_does_not_vary_correlates_with_nothing():
    assert metrics.score_numbers([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).metrics["Pearson"] == 0


def test_semeval_counts_directions_and_leaves_other_out():
    labels = ["Cause(e1,e2)", "Cause(e2,e1)", "Whole(e1,e2)", "Other", "Cause(e1,e2)"]
    predicted = ["Cause(e1,e2)", "Cause(e1,e2)", "Other", "Whole(e1,e2)", "Cause(e1,e2)"]
    found = metrics.score_relations(labels, predicted)
    cause = 2 / 3  # two of three, found and wanted alike; a wrong direction is wrong
    assert {row.label: row.f1 for row in found.rows} == {"Cause": pytest.approx(cause), "Whole": 0}
    assert found.value == pytest.approx(cause / 2)


def test_ranks_of_right_answers():
    groups = ["q", "q", "q", "r", "r", "alone"]
    right = [False, True, False, True, False, True]
    found = metrics.score_ranking(groups, right, [0.9, 0.5, 0.1, 0.8, 0.2, 0.0])
    assert found == {"first is right": 0.5, "mean 1/rank": pytest.approx(0.75)}
    assert metrics.score_ranking(["a"], [True], [1.0]) == {}
