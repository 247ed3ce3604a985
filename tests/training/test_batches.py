"""Batches hold every prediction of the text once, in both directions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from polyseme.training.batches import RowBatches, SentenceBatches

BEGIN, END = 0, 1
STREAM = np.array([0, 5, 6, 1, 0, 7, 1, 0, 8, 9, 10, 1, 0, 5, 1, 0, 11, 12, 13, 14, 1], np.uint32)
STARTS = np.array([0, 4, 7, 12, 15, 21])


def pairs(batches, epoch=0):
    """What each direction reads and predicts, over an epoch."""
    found = [Counter(), Counter()]
    for number in range(batches.count_batches(epoch)):
        batch = batches.make_batch(epoch, number)
        keep = np.ones_like(batch.inputs, bool) if batch.keep is None else batch.keep
        for direction in range(2):
            read, predicted = batch.inputs[direction], batch.targets[direction]
            found[direction].update(zip(read[keep[direction]], predicted[keep[direction]], strict=True))
    return found


def wanted():
    forward, backward = Counter(), Counter()
    for start, stop in pairwise(STARTS):
        sentence = STREAM[start:stop]
        forward.update(pairwise(sentence))
        backward.update(pairwise(sentence[::-1]))
    return [forward, backward]


@pytest.mark.parametrize("sentences", [1, 2, 3, 100])
def test_sentences_give_every_prediction_once(sentences):
    assert pairs(SentenceBatches(STREAM, STARTS, sentences, seed=4)) == wanted()


def test_the_processes_share_the_sentences_of_a_batch():
    alone = pairs(SentenceBatches(STREAM, STARTS, 3, seed=4))
    parts = [pairs(SentenceBatches(STREAM, STARTS, 3, seed=4, rank=rank, world=2)) for rank in range(2)]
    assert [parts[0][d] + parts[1][d] for d in range(2)] == alone
    batch = SentenceBatches(STREAM, STARTS, 3, seed=4, rank=0, world=2).make_batch(0, 0)
    assert batch.weight * 2 == 2 * batch.tokens


def test_the_order_follows_from_seed_and_epoch():
    def order(seed, epoch):
        batches = SentenceBatches(STREAM, STARTS, 2, seed=seed)
        return [
            batches.make_batch(epoch, number).inputs.tolist()
            for number in range(batches.count_batches(epoch))
        ]

    assert order(1, 0) == order(1, 0)
    assert len({str(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) > 1


def test_sentences_are_packed_longest_first():
    batch = SentenceBatches(STREAM, STARTS, 100, shuffled=False).make_batch(0, 0)
    assert batch.sizes == [5, 5, 3, 2, 1]
    assert batch.inputs[0, :5].tolist() == [BEGIN] * 5
    assert batch.inputs[1, :5].tolist() == [END] * 5


@pytest.mark.parametrize(("rows", "unroll"), [(1, 20), (1, 3), (2, 4), (4, 2)])
def test_rows_give_every_prediction_inside_a_row_once_and_no_other(rows, unroll):
    found = pairs(RowBatches(STREAM, STARTS, BEGIN, END, rows, unroll))
    length = (len(STREAM) - 1) // rows
    forward = Counter(
        (int(STREAM[p]), int(STREAM[p + 1])) for p in range(rows * length) if STREAM[p + 1] != BEGIN
    )
    turned = np.concatenate([STREAM[start:stop][::-1] for start, stop in pairwise(STARTS)])
    backward = Counter(
        (int(turned[p]), int(turned[p + 1])) for p in range(rows * length) if turned[p + 1] != END
    )
    assert found == [forward, backward]


def test_rows_go_on_where_they_stopped():
    batches = RowBatches(STREAM, STARTS, BEGIN, END, 2, 3)
    first, second = batches.make_batch(0, 0), batches.make_batch(0, 1)
    assert first.inputs.shape == (2, 6)
    assert first.sizes == [2, 2, 2]
    row = [*first.inputs[0, ::2], *second.inputs[0, ::2]]
    assert row == STREAM[:6].tolist()
    row = [*first.inputs[1, ::2], *second.inputs[1, ::2]]
    assert row == [END, 6, 5, BEGIN, END, 7]


def test_both_directions_of_a_row_read_the_same_words():
    batch = RowBatches(STREAM, STARTS, BEGIN, END, 1, 12).make_batch(0, 0)  # the first three sentences
    assert Counter(batch.inputs[0].tolist()) == Counter(batch.inputs[1].tolist())


def test_the_processes_share_the_rows():
    parts = [RowBatches(STREAM, STARTS, BEGIN, END, 4, 2, rank=rank, world=2) for rank in range(2)]
    both = [pairs(part) for part in parts]
    assert [both[0][d] + both[1][d] for d in range(2)] == pairs(RowBatches(STREAM, STARTS, BEGIN, END, 4, 2))
    assert [part.rows for part in parts] == [2, 2]
