"""Substitutes of a bracketed word: for hand-made word pairs, and compared with the full softmax."""

from __future__ import annotations

import numpy as np
import pytest

from bigrams import bigram_model
from builders import WORDS, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.language import RankedSubstitutes, find_substitutes, find_substitutes_at
from polyseme.language.scoring import score

PAIRS = ("he rides a horse away", "she rides a bike away", "he eats a cake now", "we eat the cake now")


def best(ranking: RankedSubstitutes, k: int) -> set[str]:
    return {word for word, _ in ranking.best[:k]}


def random_elmo() -> Elmo:
    return Elmo(random_model(small_config(), softmax=True))


def test_substitutes_are_ranked_by_the_left_the_right_and_the_whole_context() -> None:
    substitutes = find_substitutes(bigram_model(PAIRS), "he rides a [horse] away")
    assert best(substitutes.forward, 3) == {"horse", "bike", "cake"}
    assert best(substitutes.backward, 2) == {"horse", "bike"}
    assert best(substitutes.joint, 2) == {"horse", "bike"}
    assert substitutes.word == "horse"
    assert substitutes.position == 3
    assert substitutes.joint.rank in (1, 2)
    cake = find_substitutes(bigram_model(PAIRS), "he rides a [cake] away")
    assert cake.forward.rank in (1, 2, 3)
    assert cake.backward.rank is not None
    assert cake.backward.rank > 2


def test_log_probabilities_are_those_of_the_score() -> None:
    elmo = random_elmo()
    tokens = ["the", "bank", "of", "他"]
    (scored,) = score(elmo, [tokens])
    for position in range(4):
        substitutes = find_substitutes_at(elmo, tokens, position, k=99)
        assert substitutes.forward.log_prob == pytest.approx(scored.forward[position], abs=1e-5)
        assert substitutes.backward.log_prob == pytest.approx(scored.backward[position], abs=1e-5)
        for ranking in (substitutes.forward, substitutes.backward, substitutes.joint):
            assert {word for word, _ in ranking.best} == set(WORDS)  # no marks
            values = [value for _, value in ranking.best]
            assert values == sorted(values, reverse=True)
            assert ranking.best[(ranking.rank or 0) - 1] == (tokens[position], ranking.log_prob)
        assert np.exp([value for _, value in substitutes.joint.best]).sum() == pytest.approx(1)


def test_the_marked_word_itself_does_not_matter() -> None:
    elmo = random_elmo()
    known, unknown, gap = (find_substitutes(elmo, f"the {word} of") for word in ("[bank]", "[xyzzy]", "[ ]"))
    for ranking, second, third in zip(
        (known.forward, known.backward, known.joint),
        (unknown.forward, unknown.backward, unknown.joint),
        (gap.forward, gap.backward, gap.joint),
        strict=True,
    ):
        assert [word for word, _ in ranking.best] == [word for word, _ in second.best]
        assert [word for word, _ in ranking.best] == [word for word, _ in third.best]
    assert known.joint.rank is not None
    assert unknown.joint.rank is gap.joint.rank is gap.joint.log_prob is None
    assert gap.word == ""


def test_counts_lower_the_rank_of_frequent_words() -> None:
    elmo = bigram_model(PAIRS)
    counts = {"horse": 1000, "bike": 1}
    substitutes = find_substitutes(elmo, "he rides a [] away", counts=counts)
    assert substitutes.joint.best[0].word == "bike"
    substitutes = find_substitutes(elmo, "he rides a [] away", counts={"horse": 1, "bike": 1000})
    assert substitutes.joint.best[0].word == "horse"


def test_context_sentences_change_the_direction_that_reads_them() -> None:
    elmo = random_elmo()
    alone = find_substitutes(elmo, "the [bank] of")
    before = find_substitutes(elmo, "the [bank] of", context=["river river failed", "他 !"])
    after = find_substitutes(elmo, "the [bank] of", following=[["river", "river"]])
    assert before.forward.log_prob != pytest.approx(alone.forward.log_prob, abs=1e-4)
    assert before.backward.log_prob == pytest.approx(alone.backward.log_prob, abs=1e-6)
    assert after.forward.log_prob == pytest.approx(alone.forward.log_prob, abs=1e-6)
    assert after.backward.log_prob != pytest.approx(alone.backward.log_prob, abs=1e-4)
    carried = score(elmo, ["river river failed", "他 !", "the bank of"], stateful=True)[-1]
    assert before.forward.log_prob == pytest.approx(carried.forward[1], abs=1e-5)


def test_raw_text_is_segmented_around_the_brackets() -> None:
    elmo = random_elmo()
    assert find_substitutes(elmo, "他去[银行]!", segment="zh").tokens == ["他", "去", "银行", "!"]
    assert find_substitutes(elmo, "The river[bank].", segment="en").tokens == ["The", "river", "bank", "."]
    assert find_substitutes(elmo, "他 [银行家] 走 了").tokens == ["他", "银行家", "走", "了"]


def test_invalid_numbers_and_models_are_refused() -> None:
    with pytest.raises(UsageError, match="k is 0"):
        find_substitutes(random_elmo(), "[the]", k=0)
    with pytest.raises(UsageError, match="position is 4, the sentence has tokens 0 to 0"):
        find_substitutes_at(random_elmo(), ["the"], 4)
    with pytest.raises(UsageError, match="no softmax"):
        find_substitutes(Elmo(random_model(small_config())), "[the]")


def test_substitutes_show_three_rankings_side_by_side() -> None:
    substitutes = find_substitutes(random_elmo(), "<b> the [bank] failed", 3)
    heading, columns, *rows = repr(substitutes).splitlines()
    assert heading.startswith("<b> the [bank] failed (rank of bank: ")
    assert columns.split("  ")[0] == "from both"
    assert len(rows) == 3
    assert substitutes._repr_html_().count("<tr>") == 4
    assert "&lt;b&gt; the [bank] failed" in substitutes._repr_html_()
    assert find_substitutes(random_elmo(), "the []", 2)._make_table()[2] == "the []"
