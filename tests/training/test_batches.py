"""Batches contain each prediction of the text once, in both directions."""

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
    """Count the pairs of input and target of each direction over an epoch."""
    counts = [Counter(), Counter()]
    for number in range(batches.count_batches(epoch)):
        batch = batches.make_batch(epoch, number)
        keep = np.ones_like(batch.inputs, bool) if batch.keep is None else batch.keep
        for direction in range(2):
            read, predicted = batch.inputs[direction], batch.targets[direction]
            counts[direction].update(zip(read[keep[direction]], predicted[keep[direction]], strict=True))
    return counts


def expected_pairs():
    forward, backward = Counter(), Counter()
    for start, stop in pairwise(STARTS):
        sentence = STREAM[start:stop]
        forward.update(pairwise(sentence))
        backward.update(pairwise(sentence[::-1]))
    return [forward, backward]


@pytest.mark.parametrize("sentences", [1, 2, 3, 100])
def test_sentence_batches_contain_each_prediction_once(sentences):
    assert pairs(SentenceBatches(STREAM, STARTS, sentences, seed=4)) == expected_pairs()


def test_processes_share_the_sentences_of_a_batch():
    by_one = pairs(SentenceBatches(STREAM, STARTS, 3, seed=4))
    parts = [pairs(SentenceBatches(STREAM, STARTS, 3, seed=4, rank=rank, world=2)) for rank in range(2)]
    assert [parts[0][d] + parts[1][d] for d in range(2)] == by_one
    batch = SentenceBatches(STREAM, STARTS, 3, seed=4, rank=0, world=2).make_batch(0, 0)
    assert batch.weight * 2 == 2 * batch.tokens


def test_the_order_depends_on_seed_and_epoch_only():
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
def test_row_batches_contain_each_prediction_within_a_row_once(rows, unroll):
    counts = pairs(RowBatches(STREAM, STARTS, BEGIN, END, rows, unroll))
    length = (len(STREAM) - 1) // rows
    forward = Counter(
        (int(STREAM[p]), int(STREAM[p + 1])) for p in range(rows * length) if STREAM[p + 1] != BEGIN
    )
    reversed_stream = np.concatenate([STREAM[start:stop][::-1] for start, stop in pairwise(STARTS)])
    backward = Counter(
        (int(reversed_stream[p]), int(reversed_stream[p + 1]))
        for p in range(rows * length)
        if reversed_stream[p + 1] != END
    )
    assert counts == [forward, backward]


def test_a_row_continues_in_the_next_batch():
    batches = RowBatches(STREAM, STARTS, BEGIN, END, 2, 3)
    first, second = batches.make_batch(0, 0), batches.make_batch(0, 1)
    assert first.inputs.shape == (2, 6)
    assert first.sizes == [2, 2, 2]
    row = [*first.inputs[0, ::2], *second.inputs[0, ::2]]
    assert row == STREAM[:6].tolist()
    row = [*first.inputs[1, ::2], *second.inputs[1, ::2]]
    assert row == [END, 6, 5, BEGIN, END, 7]


def test_both_directions_of_a_row_contain_the_same_words():
    batch = RowBatches(STREAM, STARTS, BEGIN, END, 1, 12).make_batch(0, 0)  # the first three sentences
    assert Counter(batch.inputs[0].tolist()) == Counter(batch.inputs[1].tolist())


def test_processes_share_the_rows():
    parts = [RowBatches(STREAM, STARTS, BEGIN, END, 4, 2, rank=rank, world=2) for rank in range(2)]
    both = [pairs(part) for part in parts]
    assert [both[0][d] + both[1][d] for d in range(2)] == pairs(RowBatches(STREAM, STARTS, BEGIN, END, 4, 2))
    assert [part.rows for part in parts] == [2, 2]
