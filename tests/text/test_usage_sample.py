"""Usages are sampled evenly over a whole text."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.text.usage_sample import UsageSample, choose_sentences


def test_a_frequent_word_is_taken_evenly_and_a_rare_one_always() -> None:
    sentences = [["the", "cat"] if number in (3, 97) else ["the"] for number in range(100)]
    sample = UsageSample({"the": 100, "cat": 2}, 10)
    taken = [number for number, sentence in enumerate(sentences) if sample.take(sentence)]
    assert {3, 97} <= set(taken)
    assert 10 <= len(taken) <= 12
    quarters = Counter(number // 25 for number in taken)
    assert min(quarters.values()) >= 2


def test_words_of_late_chapters_are_sampled_within_the_limit() -> None:
    early = [["he", "said", f"early{number % 40}"] for number in range(4000)]
    late = [["she", "said", f"late{number % 40}"] for number in range(4000)]
    sentences = early + late
    counts = Counter(word for sentence in sentences for word in sentence)
    chosen = choose_sentences(sentences, counts, 3000)
    usages = Counter(word for position in chosen for word in sentences[position])
    assert sum(usages.values()) <= 3000
    assert set(usages) == set(counts)
    assert min(usages.values()) >= 5
    assert abs(usages["he"] - usages["she"]) <= 0.2 * usages["he"]


def test_a_text_that_fits_is_taken_whole_and_rare_words_go_first() -> None:
    sentences = [["a", "b"]] * 10
    assert choose_sentences(sentences, {"a": 10, "b": 10}, 20) == list(range(10))
    rare = [[f"rare{number}"] for number in range(1000)] + [["often"]] * 1000
    counts = Counter(word for sentence in rare for word in sentence)
    chosen = choose_sentences(rare, counts, 100)
    assert chosen
    assert {rare[position][0] for position in chosen} == {"often"}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=80),
    st.integers(1, 20),
)
def test_every_word_has_the_usages_it_may_have(sentences: list[list[int]], max_usages: int) -> None:
    counts = Counter(word for sentence in sentences for word in sentence)
    sample = UsageSample(counts, max_usages)
    usages = Counter(word for sentence in sentences if sample.take(sentence) for word in sentence)
    for word, count in counts.items():
        assert usages[word] >= min(count, max_usages) - 1
