"""Contexts of usages: topics, grammar and collocates, and what makes groups of usages senses."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.search.contexts import log_likelihood
from polyseme.search.index import Index
from polyseme.search.senses import find_senses

TOPICS = {
    "river": ["water", "boat", "fish", "mud", "reed"],
    "money": ["loan", "credit", "coin", "debt", "rate"],
}
FRAMES = ("the {0} and {1} near a bank of {2} {3} .", "{0} {1} , then bank , {2} and {3}")


def topic_elmo() -> Elmo:
    """A model whose vectors say which word it is, its topic, and whether it stands before a comma."""
    elmo = Elmo(random_model(small_config(recurrent={"layers": 1, "cells": 32, "outputs": 32})))
    words: dict[str, np.ndarray] = {}
    topics = {word: topic for topic, topic_words in enumerate(TOPICS.values()) for word in topic_words}
    embed, noise = elmo.embed_tokens, np.random.default_rng(1)

    def embed_words(sentences, *rest):
        vectors = embed(sentences, *rest)
        for sentence, array in zip(sentences, vectors, strict=True):
            size = array.shape[1]
            for position, word in enumerate(sentence):
                rng = np.random.default_rng(sum(map(ord, word)) * 31 + len(word))
                vector = words.setdefault(word, 4 * rng.normal(size=size) / size**0.5)
                array[position] = vector + 0.2 * noise.normal(size=size)
                if word in topics:
                    array[position, topics[word]] += 3
                if sentence[position + 1 : position + 2] == [","]:
                    array[position, 2] += 2  # grammar
        return vectors

    vars(elmo)["embed_tokens"] = embed_words
    return elmo


def write_corpus(path: Path, *, mixed: bool) -> None:
    """Usages of bank among words of one topic a sentence or, if mixed, of both."""
    rng = np.random.default_rng(0)
    lines = []
    for number, (topic, frame) in enumerate(list(product(TOPICS, FRAMES)) * 30):
        words = list(rng.permutation(TOPICS[topic])[:4])
        if mixed:
            words = [str(rng.choice(TOPICS[("river", "money")[(number + n) % 2]])) for n in range(4)]
        lines.append(frame.format(*words))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_index(folder: Path, *, mixed: bool) -> Index:
    write_corpus(folder / "text.txt", mixed=mixed)
    return api.index(topic_elmo(), folder / "text.txt", folder / "index", segment="split", space="centre")


@pytest.fixture(scope="module")
def topical(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return make_index(tmp_path_factory.mktemp("topical"), mixed=False)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return make_index(tmp_path_factory.mktemp("mixed"), mixed=True)


def test_usages_among_words_of_two_topics_have_two_senses(topical: Index):
    senses = find_senses(topical, "bank")
    assert senses.kind == "senses"
    assert len(senses.senses) == 2
    assert senses.evidence is not None
    assert senses.evidence.topic > 0.55
    assert senses.evidence.p < 0.05
    named = [set(sense.collocates) & {*TOPICS["river"], *TOPICS["money"]} for sense in senses.senses]
    assert sorted(map(len, named)) == [5, 5]
    assert {frozenset(words) for words in named} == {frozenset(words) for words in TOPICS.values()}
    assert "senses (topics agree" in senses.summary


def test_usages_that_differ_in_position_alone_have_one_group(mixed: Index):
    senses = find_senses(mixed, "bank")
    assert len(senses.senses) == 1
    assert senses.kind == "groups"
    assert senses.labels.max() == 0
    assert senses.summary.startswith("one group of usages")


def test_groups_without_evidence_are_returned_on_request(mixed: Index, topical: Index):
    groups = find_senses(mixed, "bank", groups=True)
    assert groups.kind == "groups"
    assert len(groups.senses) == groups.candidates
    assert find_senses(topical, "bank", groups=True).kind == "senses"


def test_contexts_are_the_other_words_of_the_sentence(topical: Index):
    reader = topical.context_reader
    numbers = topical.usage_numbers("bank")[:3]
    contexts = reader.read(numbers)
    for row, number in enumerate(numbers):
        tokens = topical.usage(int(number)).sentence.split()
        position = tokens.index("bank")
        around = contexts.usages == row
        names = [topical.words.words[word] for word in contexts.words[around]]
        assert names == [*tokens[:position], *tokens[position + 1 :]]
        offsets = [n - position for n in range(len(tokens)) if n != position]
        assert contexts.offsets[around].tolist() == offsets
        assert (contexts.before[row], contexts.after[row]) == (position, len(tokens) - position - 1)


def test_two_parts_of_a_context_share_no_word(topical: Index):
    reader = topical.context_reader
    contexts = reader.read(topical.usage_numbers("bank"))
    whole, first, second = (reader.topics(contexts, "bank", part) for part in (None, 0, 1))
    assert whole.shape == (len(contexts), topical.head["size"])
    assert not np.allclose(first, second)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-5)


def test_grammatical_directions_follow_the_word_beside_a_usage(topical: Index):
    reader = topical.context_reader
    axes = reader.grammatical_directions
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-4)
    numbers = topical.usage_numbers("bank")
    contexts, vectors = reader.read(numbers), topical.vectors(numbers)
    before_comma = np.array([topical.usage(int(number)).sentence.find("bank ,") >= 0 for number in numbers])

    def distance(values: np.ndarray) -> float:
        return float(np.linalg.norm(values[before_comma].mean(axis=0) - values[~before_comma].mean(axis=0)))

    assert reader.features(contexts).shape[0] == len(numbers)
    assert distance(reader.remove_grammar(vectors)) < 0.5 * distance(vectors)


def test_log_likelihood_agrees_with_the_definition():
    scores = log_likelihood(np.array([30.0, 1.0]), np.array([10.0, 50.0]), 1000, 2000)
    expected = 40 * 1000 / 3000
    by_hand = 2 * (30 * np.log(30 / expected) + 10 * np.log(10 / (40 - expected)))
    assert scores.tolist() == pytest.approx([by_hand, 0])
