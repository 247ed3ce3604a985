"""Batches depend on lengths and limits only, and each sentence is in one batch."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from polyseme.text.length_batches import batch_by_length, chunk_by_size, chunk_sentences

LENGTHS = st.lists(st.integers(0, 30), max_size=40)


@given(LENGTHS, st.integers(1, 60))
def test_a_padded_batch_stays_within_max_tokens_unless_it_is_one_sentence(lengths, max_tokens):
    batches = list(batch_by_length(lengths, max_tokens=max_tokens))
    assert sorted(chain.from_iterable(batches)) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[position] for position in batch)
        assert len(batch) == 1 or longest * len(batch) <= max_tokens


@given(LENGTHS, st.integers(1, 10))
def test_sentences_are_sorted_by_length_and_then_by_position(lengths, max_sentences):
    batches = list(batch_by_length(lengths, max_sentences=max_sentences))
    order = list(chain.from_iterable(batches))
    assert order == sorted(range(len(lengths)), key=lambda position: (-lengths[position], position))
    assert all(len(batch) == max_sentences for batch in batches[:-1])


def test_both_limits_apply():
    batches = batch_by_length([5, 5, 5, 1, 1, 1, 1], max_tokens=10, max_sentences=3)
    assert list(batches) == [[0, 1], [2, 3], [4, 5, 6]]


def test_without_limits_all_sentences_are_one_batch():
    assert list(batch_by_length([1, 3, 2])) == [[1, 2, 0]]
    assert list(batch_by_length([])) == []


def test_a_chunk_ends_with_the_item_that_reaches_the_size():
    assert list(chunk_by_size("aabbbc", 2, lambda letter: 2 if letter == "b" else 1)) == [
        ["a", "a"],
        ["b"],
        ["b"],
        ["b"],
        ["c"],
    ]


def test_an_empty_sentence_counts_as_one_token_in_a_chunk():
    sentences = [["a", "b"], [], ["c"], []]
    assert list(chunk_sentences(sentences, 3)) == [[["a", "b"], []], [["c"], []]]
