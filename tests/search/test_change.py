"""Change of words: tests, intervals, controls, and groups gained and lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.io.progress import ProgressEvent
from polyseme.search.change_statistics import (
    correct_p_values,
    estimate_p,
    measure_distances,
    measure_interval,
)
from polyseme.search.index import Index

FIRST = ["old", "grey", "tall", "thin", "loud", "calm"]
WORDS = [f"{first}{second}" for first in FIRST for second in ("cat", "dog", "cow", "hen")]


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_corrected_p_values_are_those_of_scipy():
    p = np.random.default_rng(0).uniform(size=40) ** 3
    np.testing.assert_allclose(correct_p_values(list(p)), false_discovery_control(p))
    assert correct_p_values([]) == []


def test_p_is_uniform_without_change_and_small_with_it():
    rng = np.random.default_rng(0)

    def p_value(shift: float, seed: int) -> float:
        first, second = (unit(rng.normal(size=(30, 8)) + 1 + by * np.eye(8)[0]) for by in (0, shift))
        return estimate_p(measure_distances(first, second, 100, seed)[1])

    null = [p_value(0, seed) for seed in range(200)]
    assert 0.02 < np.mean(np.array(null) < 0.1) < 0.2
    assert p_value(3, 0) < 1e-4  # less than the smallest share of 100 permutations


def test_the_interval_holds_the_true_distance():
    rng = np.random.default_rng(1)
    centres = [np.array([2.0, 0, 0, 0, 1, 1]), np.array([2.0, 2, 0, 0, 1, 1])]

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        first, second = (unit(rng.normal(size=(count, 6)) + centre) for centre in centres)
        return first, second

    truth = float(measure_distances(*draw(20_000))[1][0])
    intervals = [measure_interval(*draw(40), seed=seed) for seed in range(60)]
    held = np.mean([low <= truth <= high for low, high in intervals])
    assert held > 0.85
    widths = [high - low for low, high in intervals]
    assert np.mean(widths) < truth


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Index]:
    """Two corpora of 24 words, of which one has another meaning in half of its usages in the second."""
    folder, rng = tmp_path_factory.mktemp("change"), np.random.default_rng(0)
    elmo = Elmo(random_model(small_config(recurrent={"layers": 1, "cells": 16, "outputs": 16})))
    embed, means = elmo.embed_tokens, {}

    def embed_words(sentences, *rest):
        vectors = embed(sentences, *rest)
        for sentence, array in zip(sentences, vectors, strict=True):
            for position, word in enumerate(sentence):
                mean = means.setdefault(word, 3 * rng.normal(size=array.shape[1]))
                array[position] = mean + rng.normal(size=array.shape[1])
                if "new" in sentence:
                    array[position] = -mean + rng.normal(size=array.shape[1])
        return vectors

    vars(elmo)["embed_tokens"] = embed_words

    def build(number: int) -> Index:
        lines = [f"the {word} of 7" for word in WORDS for _ in range(30)]
        lines = [*lines, *["a new oldcat"] * 30] if number else lines
        (folder / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")
        return api.index(elmo, folder / f"{number}.txt", folder / f"index-{number}", space="none")

    return build(0), build(1)


def test_only_the_word_that_changed_is_said_to_have_changed(indexes: tuple[Index, Index]):
    changes = api.change(*indexes, k=10)
    assert changes[0].word == "oldcat"
    assert [change.word for change in changes if change.changed] == ["oldcat"]
    top = changes[0]
    assert top.percentile == 1
    assert top.interval[0] > top.usual
    assert top.q < 0.01
    assert top.interval[0] <= top.prototype <= top.interval[1]
    assert all(change.q >= change.p for change in changes)


def test_a_gained_group_is_quoted_from_the_second_corpus(indexes: tuple[Index, Index]):
    (change,) = api.change(*indexes, "oldcat")
    states = {group.state: group for group in change.groups}
    assert states["gained"].shares == (0, 0.5)
    assert {usage.marked() for usage in states["gained"].examples} == {"a new [oldcat]"}
    assert Path(states["gained"].examples[0].document).name == "1.txt"
    (same,) = api.change(*indexes, "greydog")
    assert {group.state for group in same.groups} == {"kept"}
    assert same.percentile is not None


def test_function_words_and_numbers_are_ranked_on_request(indexes: tuple[Index, Index]):
    assert {change.word for change in api.change(*indexes, k=100)} == set(WORDS)
    everything = {change.word for change in api.change(*indexes, k=100, all_words=True)}
    assert everything == {*WORDS, "the", "of", "7"}


def test_progress_is_reported_word_by_word(indexes: tuple[Index, Index]):
    events: list[ProgressEvent] = []
    api.change(*indexes, k=2, progress=events.append)
    ranked = [event for event in events if event.stage == "ranking"]
    assert [event.done for event in ranked] == list(range(1, len(WORDS) + 1))
    assert events[-1].stage == "comparing"
    assert events[-1].done == events[-1].total
