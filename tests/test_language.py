"""The biLM as a language model: scores, perplexity and n-best lists agree with brute force."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import reference
from builders import SENTENCES, WORDS, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.io.progress import ProgressEvent
from polyseme.language import (
    Hypothesis,
    evaluate,
    measure_perplexity,
    read_nbest,
    rerank,
    score,
    score_stream,
)
from polyseme.text.reading import Line, ReadingProgress

Array = NDArray[np.float64]
TEXT = [*SENTENCES, ["the"] * 7, ["他", "!"], ["of", "the", "river", "bank"]]


def small_elmo(seed: int = 0, *, softmax: bool = True, batch_tokens: int = 4096, **changes: Any) -> Elmo:
    return Elmo(random_model(small_config(**changes), seed, softmax=softmax), batch_tokens=batch_tokens)


def brute_force(model: Pretrained, tokens: Sequence[str]) -> tuple[Array, Array]:
    """Log probability of each target in the order of the text, marks last, in plain numpy and float64."""
    assert model.vocab is not None
    assert model.config.chars is not None
    sentence = ["<S>", *tokens, "</S>"]
    chars = np.array([[reference.byte_row(token, model.config.chars.max_chars) for token in sentence]])
    weights = {name: value.numpy() for name, value in model.tensors().items()}
    top = reference.read(model.config, weights, [len(sentence)], chars=chars).layers[0][-1]  # (T, H)
    size = top.shape[1] // 2
    scores = np.concatenate([top[:-1, :size], top[1:, size:]]) @ weights["softmax.weight"].T.astype(float)
    scores += weights["softmax.bias"]
    log_probs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    forward, backward = log_probs.reshape(2, len(tokens) + 1, -1)
    row = {word: number for number, word in enumerate(model.vocab.words)}
    targets = [row.get(token, row["<UNK>"]) for token in sentence]
    ahead = np.array([forward[position, target] for position, target in enumerate(targets[1:])])
    behind = np.array([backward[position, target] for position, target in enumerate(targets[:-1])])
    return ahead, np.roll(behind, -1)


@pytest.fixture(autouse=True)
def _no_warning_about_truncated_tokens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="polyseme.elmo")


def test_scores_agree_with_a_full_softmax_in_numpy() -> None:
    elmo = small_elmo()
    for tokens, scored in zip(TEXT, score(elmo, TEXT), strict=True):
        ahead, behind = brute_force(elmo.model, tokens)
        assert scored.tokens == tokens
        assert scored.forward.shape == scored.backward.shape == (len(tokens) + 1,)
        np.testing.assert_allclose(scored.forward, ahead, atol=1e-5)
        np.testing.assert_allclose(scored.backward, behind, atol=1e-5)
        np.testing.assert_allclose(scored.mean, (ahead + behind) / 2, atol=1e-5)
        np.testing.assert_allclose(
            scored.totals, [ahead.sum(), behind.sum(), (ahead.sum() + behind.sum()) / 2], atol=1e-4
        )
        assert scored.unknown.tolist() == [token not in WORDS for token in tokens]


def test_a_sentence_without_tokens_is_scored_as_its_two_marks() -> None:
    elmo = small_elmo()
    scored = score(elmo, [[], ["the"]])[0]
    ahead, behind = brute_force(elmo.model, [])
    assert scored.forward.shape == (1,)
    np.testing.assert_allclose([*scored.forward, *scored.backward], [*ahead, *behind], atol=1e-5)


def test_one_string_is_one_sentence() -> None:
    elmo = small_elmo()
    (scored,) = score(elmo, "the bank failed !")
    (expected,) = score(elmo, [["the", "bank", "failed", "!"]])
    np.testing.assert_array_equal(scored.forward, expected.forward)


@pytest.mark.parametrize("batch_tokens", [1, 7, 20, 4096])
def test_scores_do_not_depend_on_the_batch(batch_tokens: int) -> None:
    scores = list(score_stream(small_elmo(batch_tokens=batch_tokens), iter(TEXT)))
    alone = [score(small_elmo(), [tokens])[0] for tokens in TEXT]
    for scored, expected in zip(scores, alone, strict=True):
        assert scored.tokens == expected.tokens
        np.testing.assert_allclose(scored.forward, expected.forward, atol=1e-5)
        np.testing.assert_allclose(scored.backward, expected.backward, atol=1e-5)


def test_scores_do_not_depend_on_the_block_size_of_the_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    elmo = small_elmo()
    whole = score(elmo, TEXT)
    assert elmo.model.softmax is not None
    in_blocks = partial(elmo.model.softmax.target_log_probs, block_values=30)
    monkeypatch.setattr(elmo.model.softmax, "target_log_probs", in_blocks)
    for scored, expected in zip(score(elmo, TEXT), whole, strict=True):
        np.testing.assert_allclose(scored.forward, expected.forward, atol=1e-5)


def test_state_is_carried_only_if_stateful() -> None:
    elmo = small_elmo()
    twice = [["the", "bank"], ["the", "bank"]]
    apart = score(elmo, twice)
    np.testing.assert_allclose(apart[0].forward, apart[1].forward, atol=1e-6)
    carried = score(elmo, twice, stateful=True)
    np.testing.assert_allclose(carried[0].forward, apart[0].forward, atol=1e-6)
    assert np.abs(carried[1].forward - apart[1].forward).max() > 1e-3
    _, state = elmo.compute_layers([twice[0]])
    layers, _ = elmo.compute_layers([twice[1]], state)
    assert elmo.model.softmax is not None
    with torch.inference_mode():
        log_probs = elmo.model.softmax(layers[-1, 0, :-1, :4])  # the forward half of <S> the bank
    assert elmo.model.vocab is not None
    rows = elmo.model.vocab.ids(["the", "bank", "</S>"]) - 1
    np.testing.assert_allclose(carried[1].forward, log_probs[range(3), rows], atol=1e-5)


def test_the_backward_half_carries_its_state_from_the_end() -> None:
    elmo = small_elmo()
    text = [["the", "bank"], [], ["of", "river"], ["他"]]
    scores = score(elmo, text, stateful=True)
    _, state = elmo.compute_layers([text[3]])
    layers, _ = elmo.compute_layers([text[2]], state)
    assert elmo.model.softmax is not None
    assert elmo.model.vocab is not None
    with torch.inference_mode():
        log_probs = elmo.model.softmax(layers[-1, 0, 1:, 4:])  # the backward half of: of river </S>
    rows = elmo.model.vocab.ids(["<S>", "of", "river"]) - 1
    np.testing.assert_allclose(np.roll(scores[2].backward, 1), log_probs[range(3), rows], atol=1e-5)
    np.testing.assert_allclose(scores[3].backward, score(elmo, [text[3]])[0].backward, atol=1e-6)


def test_a_stream_carries_the_backward_state_over_a_stretch() -> None:
    elmo = small_elmo()
    text = [["the", "bank"], ["of", "river"], ["他", "!"]]
    scores = list(score_stream(elmo, text, stateful=True, stretch_tokens=4))
    np.testing.assert_allclose(scores[1].backward, score(elmo, [text[1]])[0].backward, atol=1e-6)
    whole = score(elmo, text, stateful=True)
    for scored, expected in zip(scores, whole, strict=True):
        np.testing.assert_allclose(scored.forward, expected.forward, atol=1e-6)
    assert np.abs(scores[1].backward - whole[1].backward).max() > 1e-3


def test_mirrored_weights_give_reversed_text_the_same_scores() -> None:
    elmo = small_elmo()
    weights = dict(elmo.model.network.state_dict())
    swapped = {
        name.replace("backward_stack", "x").replace("forward_stack", "backward_stack").replace(
            "x", "forward_stack"
        ) if "_stack" in name else name: value.clone()
        for name, value in weights.items()
    }  # fmt: skip
    mirror = small_elmo()
    mirror.model.network.load_state_dict(swapped)
    for network in (elmo.model, mirror.model):  # <S> and </S> must look alike for a true mirror
        assert network.softmax is not None
        with torch.no_grad():
            table = network.network.state_dict()["tokens.chars.embedding.weight"]
            table[257] = table[258]
            network.softmax.weight[0] = network.softmax.weight[1]
            network.softmax.bias[0] = network.softmax.bias[1]
    tokens = ["the", "bank", "of", "他"]
    (straight,) = score(elmo, [tokens])
    (reversed_,) = score(mirror, [tokens[::-1]])
    np.testing.assert_allclose(straight.forward[:-1], reversed_.backward[:-1][::-1], atol=1e-5)
    np.testing.assert_allclose(straight.backward[:-1], reversed_.forward[:-1][::-1], atol=1e-5)
    np.testing.assert_allclose(straight.totals, np.array(reversed_.totals)[[1, 0, 2]], atol=1e-4)


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary() -> None:
    elmo = small_elmo()
    assert elmo.model.softmax is not None
    with torch.no_grad():
        elmo.model.softmax.weight.zero_()
        elmo.model.softmax.bias.zero_()
    perplexity = measure_perplexity(elmo, TEXT)
    size = len(WORDS) + 3
    for value in (
        perplexity.forward,
        perplexity.backward,
        perplexity.mean,
        *perplexity.known.perplexities.values(),
    ):
        assert value == pytest.approx(size)


def test_perplexity_counts_words_marks_and_unknown_words() -> None:
    elmo = small_elmo()
    perplexity = measure_perplexity(elmo, [*SENTENCES, []])
    by_hand = [brute_force(elmo.model, tokens) for tokens in SENTENCES]
    ahead, behind = (np.concatenate(parts) for parts in zip(*by_hand, strict=True))
    assert (perplexity.sentences, perplexity.words, perplexity.unknown, perplexity.targets) == (3, 10, 2, 13)
    assert perplexity.unknown_rate == pytest.approx(0.2)
    assert perplexity.forward == pytest.approx(np.exp(-ahead.mean()), rel=1e-5)
    assert perplexity.backward == pytest.approx(np.exp(-behind.mean()), rel=1e-5)
    assert perplexity.mean == pytest.approx(np.exp(-np.concatenate([ahead, behind]).mean()), rel=1e-5)
    known = np.array([t in WORDS or t == "mark" for s in SENTENCES for t in (*s, "mark")])
    assert perplexity.known.targets == 11
    assert perplexity.known.perplexities["forward"] == pytest.approx(np.exp(-ahead[known].mean()), rel=1e-5)


def lines(source: str, *texts: str) -> list[Line]:
    return [Line(source, number, text) for number, text in enumerate(texts, start=1)]


def test_evaluation_covers_each_file_and_the_total() -> None:
    elmo = small_elmo()
    events: list[ProgressEvent] = []
    text = [*lines("a.txt", "the bank", "", "of"), *lines("empty.txt", " "), *lines("b.txt", "river x")]
    evaluation = evaluate(elmo, text, reading=ReadingProgress(events.append))
    assert list(evaluation.files) == ["a.txt", "b.txt"]
    assert evaluation.files["a.txt"].sentences == 2
    assert evaluation.total.words == 5
    assert events[-1].detail.startswith("5 tokens, ")
    assert evaluation.total.forward == pytest.approx(
        measure_perplexity(elmo, [["the", "bank"], ["of"], ["river", "x"]]).forward
    )
    values = evaluation.as_dict()
    assert values["files"]["b.txt"]["unknown"] == 1
    assert set(values["perplexity"]) == {"forward", "backward", "mean"}


def test_state_starts_again_with_every_file() -> None:
    elmo = small_elmo()
    text = [*lines("a", "the bank", "of"), *lines("b", "the bank", "of")]
    evaluation = evaluate(elmo, text, stateful=True)
    assert evaluation.files["a"].all == evaluation.files["b"].all
    assert evaluation.files["a"].mean != pytest.approx(evaluate(elmo, text).files["a"].mean, rel=1e-4)


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(DataError, match=r"empty.txt: no words in it"):
        evaluate(small_elmo(), lines("empty.txt", "", "  "))
    with pytest.raises(DataError, match="no words in it"):
        evaluate(small_elmo(), [])


def test_a_model_without_softmax_is_refused_with_advice() -> None:
    elmo = small_elmo(softmax=False)
    for use in (
        lambda: score(elmo, "the"),
        lambda: evaluate(elmo, lines("a", "the")),
        lambda: rerank(elmo, []),
    ):
        with pytest.raises(UsageError, match=r"polyseme\.pretrain\(text, out, base=model\)"):
            use()


def test_a_gru_of_word_ids_is_scored() -> None:
    config: dict[str, Any] = {"chars": None, "words": {"dim": 4}}
    elmo = small_elmo(**config, recurrent={"cell": "gru", "layers": 1, "cells": 4, "outputs": 4})
    scored = score(elmo, [["the", "never-seen", "<UNK>"]])[0]
    assert scored.unknown.tolist() == [False, True, True]
    assert np.isfinite(scored.totals).all()
    np.testing.assert_allclose(np.array(scored.per_token) * len(scored.forward), scored.totals)


NBEST = lines("n.tsv", "0\tthe bank failed\t-3.5", "0\tbank the failed\t-2", "", "1\triver\t-1.0", "1\t\t-9")


def test_nbest_lines_of_both_formats_are_read() -> None:
    assert [(h.list_id, h.text, h.score) for h in read_nbest(NBEST)] == [
        ("0", "the bank failed", -3.5),
        ("0", "bank the failed", -2.0),
        ("1", "river", -1.0),
        ("1", "", -9.0),
    ]
    moses = lines(
        "m.txt",
        "0 ||| the bank ||| LM0= -4 TM0= -2 ||| -7.25",
        "0 ||| the river ||| d= 0 lm= -3 ||| -8 ||| 0-0 1-1",
        "1 ||| of",
    )
    assert [(h.list_id, h.text, h.score) for h in read_nbest(moses)] == [
        ("0", "the bank", -7.25),
        ("0", "the river", -8.0),
        ("1", "of", None),
    ]


def test_nbest_lists_are_ranked_by_the_model_alone() -> None:
    elmo = small_elmo()
    ranked = list(rerank(elmo, read_nbest(NBEST)))
    assert [hypothesis.list_id for hypothesis in ranked] == ["0", "0", "1", "1"]
    assert [hypothesis.rank for hypothesis in ranked] == [1, 2, 1, 2]
    for hypothesis in ranked:
        ahead, behind = brute_force(elmo.model, hypothesis.text.split())
        assert hypothesis.total == hypothesis.lm == pytest.approx((ahead.sum() + behind.sum()) / 2, rel=1e-4)
    assert ranked[0].total >= ranked[1].total
    assert ranked[2].total >= ranked[3].total


def test_nbest_scores_are_mixed_and_normalised() -> None:
    elmo = small_elmo()
    alone = {
        (hypothesis.list_id, hypothesis.text): hypothesis.lm for hypothesis in rerank(elmo, read_nbest(NBEST))
    }
    for normalise in ("none", "lm", "total"):
        for hypothesis in rerank(elmo, read_nbest(NBEST), weight=0.3, normalise=normalise):  # type: ignore[arg-type]
            assert hypothesis.score is not None
            targets = len(hypothesis.text.split()) + 1
            lm = alone[hypothesis.list_id, hypothesis.text] / (targets if normalise == "lm" else 1)
            total = 0.7 * hypothesis.score + 0.3 * lm
            assert hypothesis.total == pytest.approx(
                total / (targets if normalise == "total" else 1), rel=1e-5
            )
    by_input_score = list(rerank(elmo, read_nbest(NBEST), weight=0.0))
    assert [hypothesis.text for hypothesis in by_input_score] == [
        "bank the failed",
        "the bank failed",
        "river",
        "",
    ]
    forward = next(rerank(elmo, [Hypothesis("0", "the bank", None, "x:1")], direction="forward"))
    assert forward.total == pytest.approx(brute_force(elmo.model, ["the", "bank"])[0].sum(), rel=1e-4)


def test_unknown_words_are_penalised_in_reranking() -> None:
    elmo = small_elmo()
    lists = [Hypothesis("0", "the xyzzy plugh", None, "x:1")]
    (unpenalised,) = rerank(elmo, lists, unknown_penalty=0)
    (penalised,) = rerank(elmo, lists)
    assert unpenalised.lm == pytest.approx(score(elmo, "the xyzzy plugh")[0].totals[2])
    assert penalised.lm == pytest.approx(unpenalised.lm - 2 * np.log(len(WORDS) + 3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (["0 the bank"], r"n:1: 1 columns, expected id<TAB>hypothesis"),
        (["0\tthe\t-1\t-2"], r"n:1: 4 columns"),
        (["0\tthe\tlow"], r"n:1: the score is 'low', expected a number"),
        (["0\tthe\tnan"], r"n:1: the score is 'nan'"),
        (["0\tthe\t1", "0\tof"], r"n:2: no score to mix with"),
        (["0\tthe\t1", "1\tof\t1", "0\tof\t1"], r"n:3: list '0' continues here, but it began at n:1"),
    ],
)
def test_invalid_nbest_lines_are_named(text: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(rerank(small_elmo(), read_nbest(lines("n", *text)), weight=0.5))


@pytest.mark.parametrize(
    "changes",
    [
        {"weight": 1.5},
        {"weight": float("nan")},
        {"direction": "up"},
        {"normalise": "length"},
        {"unknown_penalty": float("inf")},
    ],
)
def test_invalid_nbest_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(changes))):
        rerank(small_elmo(), [], **changes)


def test_scores_have_short_reprs_and_tables() -> None:
    elmo = small_elmo()
    scores = score(elmo, [["the", "<b>"], ["river"] * 90])
    assert scores[0].as_row()["sentence"] == "the <b>"
    assert len(repr(scores[1])) < 140
    assert scores._repr_html_().count("<tr>") == 3
    tokens = scores[0]._repr_html_()
    assert "&lt;b&gt;" in tokens
    assert tokens.count("<tr>") == 1 + 2 + 1 + 1  # heading, tokens, marks, total
    evaluation = evaluate(elmo, [*lines("a.txt", "the bank"), *lines("<b>.txt", "river")])
    assert repr(evaluation).splitlines()[2].endswith("all")
    assert evaluation._repr_html_().count("<tr>") == 1 + 3
    assert "&lt;b&gt;.txt" in evaluation._repr_html_()
    assert repr(evaluation.total).startswith("Perplexity(forward ")
    assert "<table>" in evaluation.total._repr_html_()
