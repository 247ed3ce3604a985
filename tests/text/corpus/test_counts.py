"""Words are counted in bounded memory and segmented in several processes; a part of the text is held out."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from polyseme.errors import UsageError
from polyseme.text.corpus import workers
from polyseme.text.corpus.counts import WordCounter, read_types
from polyseme.text.corpus.documents import Piece
from polyseme.text.corpus.duplicates import RepeatCounter
from polyseme.text.corpus.split import (
    count_held_out_words,
    hold_out_documents,
    hold_out_every_nth,
    hold_out_everything,
    hold_out_nothing,
    scatter_bits,
)
from polyseme.text.corpus.workers import choose_worker_count, segment_pieces

SPECIALS = ("<S>", "</S>", "<UNK>")


def make_counter(folder: Path, max_types: int = 1000) -> WordCounter:
    return WordCounter(folder, SPECIALS, (0, 1, 2), max_types)


def count(counter: WordCounter, words: list[str]) -> list[int]:
    """Count words as one chunk, and return their numbers."""
    counts = Counter(words)
    numbers = counter.add(list(counts), np.array(list(counts.values())))
    number_of = dict(zip(counts, numbers.tolist(), strict=True))
    return [number_of[word] for word in words]


def all_types(folder: Path) -> list[str]:
    return [word for block in read_types(folder) for word in block]


def test_words_are_numbered_by_first_occurrence_and_ranked_by_count(tmp_path: Path) -> None:
    counter = make_counter(tmp_path)
    assert count(counter, ["b", "a", "b"]) == [3, 4, 3]
    assert count(counter, ["c", "a", "a"]) == [5, 4, 4]
    counter.close()
    ranking = counter.rank(min_count=2, max_words=10)
    assert all_types(tmp_path) == [*SPECIALS, "a", "b", "c"]
    assert ranking.numbers.tolist() == [0, 1, 2, 4, 3, 5]
    assert (ranking.types, ranking.words, ranking.counts.tolist()) == (6, 5, [0, 0, 0, 3, 2])


def test_max_words_keeps_the_most_frequent_words(tmp_path: Path) -> None:
    counter = make_counter(tmp_path)
    count(counter, ["b", "a", "b"])
    counter.close()
    assert counter.rank(min_count=1, max_words=1).words == 4


def test_held_out_words_are_subtracted_from_the_counts(tmp_path: Path) -> None:
    counter = make_counter(tmp_path)
    numbers = count(counter, ["b", "a", "b"])
    counter.close()
    counter.subtract(np.array(numbers[1:], np.uint32))
    assert counter.rank(min_count=1, max_words=9).counts.tolist() == [0, 0, 0, 1]


def test_a_pruned_word_that_occurs_again_has_one_type_and_an_exact_count(tmp_path: Path) -> None:
    counter = make_counter(tmp_path)
    (first,) = count(counter, ["late"])
    for start in range(0, 3000, 500):
        count(counter, [f"w{number}" for number in range(start, start + 500)] + ["often"] * 9)
    (second,) = count(counter, ["late"])
    assert second > first
    count(counter, ["late"] * 3)
    assert counter.pruned_types > 1000
    assert counter.count_error >= 1
    counter.close()
    ranking = counter.rank(min_count=2, max_words=100)
    assert all_types(tmp_path)[3:5] == ["often", "late"]
    assert ranking.counts[3:].tolist() == [54, 5]
    assert ranking.numbers[first] == ranking.numbers[second] == 4
    assert ranking.types == len(all_types(tmp_path)) == 3 + 3002
    assert sorted(set(ranking.numbers.tolist())) == list(range(ranking.types))


def test_initial_words_are_never_pruned(tmp_path: Path) -> None:
    initial = [*SPECIALS, *(f"given{number}" for number in range(5000))]
    counter = WordCounter(tmp_path, initial, (0, 1, 2), 1000)
    for start in range(0, 3000, 500):
        count(counter, [f"w{number}" for number in range(start, start + 500)])
    assert count(counter, ["given7", "<S>", "</S>"]) == [10, 2, 2]
    counter.close()
    assert counter.rank(1, 0).words == 5003
    assert all_types(tmp_path)[:5003] == initial


PIECES = [Piece(n // 2, f"One {n} here. Two {n} there.", False, 10) for n in range(40)]


def test_chunks_hold_words_sentences_and_document_starts() -> None:
    chunks = list(segment_pieces(PIECES, "en", workers=1, chunk_characters=200))
    assert len(chunks) > 3
    assert sum(chunk.size for chunk in chunks) == 400
    first = chunks[0]
    assert first.words[:6] == ["One", "0", "here", ".", "Two", "there"]
    assert first.ids[:12].tolist() == [0, 3, 4, 5, 6, 1, 0, 7, 4, 8, 6, 1]
    assert first.documents[:, :3].tolist() == [[0, 0, 1], [0, 12, 24]]


def test_several_workers_give_the_chunks_of_one_in_the_same_order() -> None:
    by_one, by_three = (
        list(segment_pieces(PIECES, "en", workers, chunk_characters=200)) for workers in (1, 3)
    )
    assert len(by_one) == len(by_three)
    for expected, chunk in zip(by_one, by_three, strict=True):
        assert chunk.words == expected.words
        assert chunk.size == expected.size
        np.testing.assert_array_equal(chunk.ids, expected.ids)
        np.testing.assert_array_equal(chunk.documents, expected.documents)


def test_tokenised_pieces_are_split_at_spaces_with_any_segmentation() -> None:
    (chunk,) = segment_pieces([Piece(0, "don't 三国演义 .\n\nnew line", True, 0)], "zh", workers=2)
    assert chunk.words == ["don't", "三国演义", ".", "new", "line"]
    assert (chunk.ids == 0).sum() == 2


def test_a_killed_worker_raises_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    real_popen = workers.subprocess.Popen

    def record_popen(*args: object, **kwargs: object) -> object:
        worker = real_popen(*args, **kwargs)  # type: ignore[call-overload]
        started.append(worker.pid)
        return worker

    def endless_pieces() -> Iterator[Piece]:
        yield PIECES[0]
        os.kill(started[0], signal.SIGKILL)
        while True:
            yield PIECES[0]

    monkeypatch.setattr(workers.subprocess, "Popen", record_popen)
    with pytest.raises(UsageError, match="was killed"):
        for _ in segment_pieces(endless_pieces(), "en", workers=2, chunk_characters=10):
            pass


def test_a_small_text_is_segmented_in_one_process() -> None:
    assert choose_worker_count(1000) == 1
    assert 1 <= choose_worker_count(10**12) <= 16


def make_stream(documents: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Make documents with these numbers of sentences, each of eight words.

    Returns the stream, the start of each document in it, the words before each document, and all words.
    """
    sentence = [0, *range(3, 11), 1]
    starts = np.cumsum([0, *documents[:-1]])
    return np.array(sentence * sum(documents), np.uint32), starts * 10, starts * 8, 8 * sum(documents)


def test_whole_documents_are_held_out_up_to_the_number_of_words() -> None:
    stream, document_starts, words_before, words = make_stream([5] * 4000)
    plan = hold_out_documents(
        stream, document_starts, words_before, words, count_held_out_words(words, 0.01, 2000), seed=3
    )
    chosen = plan.select(np.arange(0, len(stream), 10), 0).reshape(4000, 5)
    assert (chosen.all(axis=1) == chosen.any(axis=1)).all()
    assert 8 * chosen.sum() == 2000
    assert plan.documents == 50
    assert plan.method == "documents"
    plan_of_other_seed = hold_out_documents(stream, document_starts, words_before, words, 2000, seed=4)
    assert plan.intervals.tolist() != plan_of_other_seed.intervals.tolist()


def test_held_out_documents_are_spread_over_a_large_corpus() -> None:
    stream, document_starts, words_before, words = make_stream([1] * 300_000)
    plan = hold_out_documents(
        stream, document_starts, words_before, words, count_held_out_words(words, 0.01, 2000), seed=0
    )
    assert plan.documents == 3000
    starts = plan.intervals[:, 0]
    assert (np.histogram(starts, 10, (0, len(stream)))[0] > 200).all()


def test_stretches_are_held_out_of_few_large_documents() -> None:
    stream, document_starts, words_before, words = make_stream([9000, 9000])
    plan = hold_out_documents(
        stream, document_starts, words_before, words, count_held_out_words(words, 0.01, 2000), seed=0
    )
    assert plan.method.startswith("stretches")
    assert len(plan.intervals) == 8
    assert (plan.intervals % 10 == 0).all()
    chosen = plan.select(np.arange(0, len(stream), 10), 0)
    assert 2000 <= 8 * chosen.sum() < 2200


def test_selection_in_blocks_equals_selection_at_once() -> None:
    stream, document_starts, words_before, words = make_stream([5] * 2000)
    starts = np.arange(0, len(stream), 10)
    for plan in (
        hold_out_documents(stream, document_starts, words_before, words, 2000, 0),
        hold_out_every_nth(7),
        hold_out_everything(),
        hold_out_nothing(),
    ):
        whole = plan.select(starts, 0)
        parts = [plan.select(starts[at : at + 333], at) for at in range(0, len(starts), 333)]
        np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_at_most_a_fifth_of_a_small_text_is_held_out() -> None:
    assert count_held_out_words(1_000_000, 0.01, 2000) == 10_000
    assert count_held_out_words(100_000, 0.01, 2000) == 2000
    assert count_held_out_words(5000, 0.01, 2000) == 1000
    assert count_held_out_words(3, 0.01, 2000) == 1


def test_repeats_are_counted_exactly_or_estimated_above_the_limit() -> None:
    hashes = scatter_bits(np.arange(50_000, dtype=np.uint64), 0)
    with_repeats = np.concatenate((hashes, hashes[:20_000], hashes[:5000]))
    for max_hashes, tolerance in ((100_000, 0), (5000, 2500)):
        repeats = RepeatCounter(max_hashes)
        for part in np.array_split(with_repeats, 17):
            repeats.add(part)
        assert abs(repeats.count() - 25_000) <= tolerance
        assert repeats.estimated == (max_hashes == 5000)
