"""Figures against their oracles: scikit-learn, seqeval, scipy; and by hand."""

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
from polyseme.tasks.data.tag_schemes import Span, spans_of, write_spans

LABELS = ("a", "b", "c")


@pytest.fixture
def chance() -> random.Random:
    return random.Random(3)


def test_classes_agree_with_scikit_learn(chance: random.Random):
    gold, guess = ([chance.choice(LABELS) for _ in range(200)] for _ in range(2))
    found = metrics.classes(gold, guess, LABELS)
    assert found.figures["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(gold, guess))
    assert found.figures["macro F1"] == pytest.approx(sklearn_metrics.f1_score(gold, guess, average="macro"))
    assert found.confusion == sklearn_metrics.confusion_matrix(gold, guess, labels=LABELS).tolist()
    by_label = sklearn_metrics.precision_recall_fscore_support(gold, guess, labels=LABELS)
    for number, row in enumerate(found.rows):
        assert (row.precision, row.recall, row.f1, row.count) == pytest.approx(
            tuple(part[number] for part in by_label)
        )


def test_several_labels_agree_with_scikit_learn(chance: random.Random):
    gold, guess = (
        [tuple(label for label in LABELS if chance.random() < 0.4) for _ in range(100)] for _ in range(2)
    )
    found = metrics.several(gold, guess, LABELS)
    one, other = (MultiLabelBinarizer(classes=LABELS).fit_transform(some) for some in (gold, guess))
    assert found.figures["micro F1"] == pytest.approx(sklearn_metrics.f1_score(one, other, average="micro"))
    assert found.figures["macro F1"] == pytest.approx(sklearn_metrics.f1_score(one, other, average="macro"))
    assert found.figures["all right"] == pytest.approx(sklearn_metrics.accuracy_score(one, other))


def test_spans_agree_with_seqeval_as_conlleval_reads_them(chance: random.Random):
    tags = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    gold, guess = ([[chance.choice(tags) for _ in range(12)] for _ in range(60)] for _ in range(2))
    found = metrics.span_scores([spans_of(t) for t in gold], [spans_of(t) for t in guess])
    assert found.figures["F1"] == pytest.approx(seqeval_f1(gold, guess))
    assert found.figures["precision"] == pytest.approx(seqeval_precision(gold, guess))


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
def test_spans_of_a_scheme_agree_with_seqeval(scheme: str, theirs: type, chance: random.Random):
    sides = [[some_spans(chance, 12) for _ in range(80)] for _ in range(2)]
    gold, guess = ([write_spans(spans, 12, scheme) for spans in side] for side in sides)
    found = metrics.span_scores([spans_of(t) for t in gold], [spans_of(t) for t in guess])
    asked = [[[tag.replace("M-", "I-") for tag in tags] for tags in side] for side in (gold, guess)]
    for name, oracle in (("F1", seqeval_f1), ("precision", seqeval_precision), ("recall", seqeval_recall)):
        assert found.figures[name] == pytest.approx(oracle(*asked, mode="strict", scheme=theirs))
    assert 0 < found.figures["F1"] < 1


def test_correlations_agree_with_scipy(chance: random.Random):
    gold = [chance.gauss(0, 1) for _ in range(50)]
    guess = [round(value + chance.gauss(0, 1), 1) for value in gold]  # rounded: there are ties
    found = metrics.numbers(gold, guess).figures
    assert found["Pearson"] == pytest.approx(scipy.stats.pearsonr(gold, guess)[0])
    assert found["Spearman"] == pytest.approx(scipy.stats.spearmanr(gold, guess)[0])
    np.testing.assert_allclose(metrics.ranks(np.array(guess)), scipy.stats.rankdata(guess))


def test_what_does_not_vary_correlates_with_nothing():
    assert metrics.numbers([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).figures["Pearson"] == 0


def test_semeval_counts_directions_and_leaves_other_out():
    gold = ["Cause(e1,e2)", "Cause(e2,e1)", "Whole(e1,e2)", "Other", "Cause(e1,e2)"]
    guess = ["Cause(e1,e2)", "Cause(e1,e2)", "Other", "Whole(e1,e2)", "Cause(e1,e2)"]
    found = metrics.directed(gold, guess)
    cause = 2 / 3  # two of three, found and wanted alike; a wrong direction is wrong
    assert {row.label: row.f1 for row in found.rows} == {"Cause": pytest.approx(cause), "Whole": 0}
    assert found.value == pytest.approx(cause / 2)


def test_ranks_of_right_answers():
    groups = ["q", "q", "q", "r", "r", "alone"]
    right = [False, True, False, True, False, True]
    found = metrics.ranking(groups, right, [0.9, 0.5, 0.1, 0.8, 0.2, 0.0])
    assert found == {"first is right": 0.5, "mean 1/rank": pytest.approx(0.75)}
    assert metrics.ranking(["a"], [True], [1.0]) == {}
