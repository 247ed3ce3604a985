"""Generated text: determined by the seed, consistent with scoring, and readable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bigrams import bigram_model
from builders import WORDS, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.language import generate, join_tokens
from polyseme.language.scoring import score


def random_elmo(**changes: Any) -> Elmo:
    return Elmo(random_model(small_config(**changes), softmax=True))


def test_temperature_0_generates_the_likeliest_words() -> None:
    elmo = bigram_model(["the horse ran away ."])
    generated = generate(elmo, temperature=0)
    assert generated.tokens == ["the", "horse", "ran", "away", "."]
    assert generated.ended
    assert generated.text == "the horse ran away."
    assert generate(elmo, "the horse", temperature=0).text == "the horse ran away."
    assert generate(elmo, "the horse", tokens=1, temperature=0).text == "the horse ran"


def test_without_a_stop_the_next_sentence_is_generated() -> None:
    generated = generate(bigram_model(["a b"]), tokens=5, temperature=0, stop_at_end=False)
    assert generated.tokens == ["a", "b", "a", "b", "a"]
    assert not generated.ended


def test_the_seed_determines_the_text() -> None:
    elmo = random_elmo()
    texts = [generate(elmo, "the", seed=seed, stop_at_end=False).tokens for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert len(texts[0]) == 50


@pytest.mark.parametrize("recurrent", [{}, {"cell": "gru", "layers": 2, "cells": 6, "outputs": 4}])
def test_log_probabilities_equal_those_of_scoring_the_whole_text(recurrent: dict[str, Any]) -> None:
    elmo = random_elmo(**({"recurrent": recurrent} if recurrent else {}))
    generated = generate(elmo, "the never-seen 银行", tokens=12, seed=3)
    assert len(generated.tokens) > 3
    (scored,) = score(elmo, [["the", "never-seen", "银行", *generated.tokens]])
    np.testing.assert_allclose(generated.log_probs, scored.forward[3 : 3 + len(generated.tokens)], atol=1e-5)


def test_a_prompt_of_several_sentences_is_read_with_sentence_marks() -> None:
    elmo = random_elmo()
    generated = generate(elmo, "the bank\nof", tokens=3, seed=1)
    scored = score(elmo, [["the", "bank"], ["of", *generated.tokens]], stateful=True)[1]
    np.testing.assert_allclose(generated.log_probs, scored.forward[1 : 1 + len(generated.tokens)], atol=1e-5)


def test_unknown_words_of_the_prompt_are_read_by_their_characters() -> None:
    elmo = random_elmo()
    first, second = (generate(elmo, prompt, tokens=1, temperature=0).log_probs for prompt in ("abc", "xyzzy"))
    assert first != pytest.approx(second, abs=1e-4)


def test_marks_are_never_generated() -> None:
    elmo = random_elmo()
    assert elmo.model.softmax is not None
    elmo.model.softmax.bias.data[:3] = 50.0  # <S>, </S> and <UNK> likelier than anything
    generated = generate(elmo, tokens=40, stop_at_end=False)
    assert len(generated.tokens) == 40
    assert set(generated.tokens) <= set(WORDS)
    assert generate(elmo, "the").tokens == []
    assert len(generate(elmo).tokens) == 1  # a sentence has at least one token


def test_a_vocabulary_of_marks_alone_gives_the_unknown_word() -> None:
    elmo = Elmo(random_model(small_config(), words=[], softmax=True))
    assert set(generate(elmo, tokens=3, stop_at_end=False).tokens) == {"<UNK>"}


def test_top_k_and_temperature_limit_the_words() -> None:
    elmo = random_elmo()
    likeliest = generate(elmo, "the", tokens=1, temperature=0).tokens
    for seed in range(20):
        assert generate(elmo, "the", tokens=1, top_k=1, seed=seed).tokens in (likeliest, [])
        assert generate(elmo, "the", tokens=1, temperature=1e-6, seed=seed).tokens in (likeliest, [])
    drawn = {tuple(generate(elmo, "the", tokens=1, temperature=5, seed=seed).tokens) for seed in range(40)}
    assert len(drawn) > 3
    assert generate(elmo, "the", top_k=10_000, seed=4) == generate(elmo, "the", seed=4)


def test_draws_follow_the_probabilities() -> None:
    elmo = bigram_model(["a b", "a c", "a c", "a c"], log_odds=12.0)
    drawn = [generate(elmo, "a", tokens=1, seed=seed).tokens[0] for seed in range(400)]
    assert set(drawn) == {"b", "c"}
    assert 60 <= drawn.count("b") <= 140  # 100 expected, 8.7 standard deviation


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": 0},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": 0},
        {"seed": -1},
    ],
)
def test_invalid_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(changes))} is "):
        generate(random_elmo(), **changes)


def test_a_model_without_softmax_cannot_generate() -> None:
    with pytest.raises(UsageError, match="no softmax"):
        generate(Elmo(random_model(small_config())))


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("却 说 曹操 大 怒 ， 曰 ： “ 汝 何 人 ！ ”", "却说曹操大怒，曰：“汝何人！”"),
        ("He did n't go ( at all ) , he said .", "He didn't go (at all), he said."),
        ('" It \'s 5 % of $ 3 , " said she .', '"It\'s 5% of $3," said she.'),
        ("`` Yes '' ; no : well …", "``Yes''; no: well…"),
        ("用 Python 写 1999 年", "用Python写1999年"),
        ("one - two -- three", "one - two -- three"),
        ("", ""),
    ],
)
def test_tokens_are_joined_readably(tokens: str, text: str) -> None:
    assert join_tokens(tokens.split()) == text


@pytest.mark.parametrize(
    ("before", "tokens", "text"),
    [
        ("The king", ["said", "."], "The king said."),
        ("The king ", ["said"], "The king said"),
        ("却说", ["曹操"], "却说曹操"),
        ("(", ["see", ")"], "(see)"),
        ('He said "', ["no", '"'], 'He said "no"'),
        ("It", ["'s"], "It's"),
        ("", ["a"], "a"),
    ],
)
def test_generated_tokens_are_joined_to_the_prompt(before: str, tokens: list[str], text: str) -> None:
    assert before + join_tokens(tokens, before) == text
