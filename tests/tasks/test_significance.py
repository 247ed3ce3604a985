"""How sure a difference is: checked against scipy, and on results made for it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from polyseme.tasks.experiment import Run, RunResult
from polyseme.tasks.metrics import Scores
from polyseme.tasks.report import describe_elmo_effect, render_convergence
from polyseme.tasks.significance import compare_runs, compute_welch_p, draw_resamples, score_resamples


class MatchTask:
    """Examples and predictions are labels; the score is how many agree."""

    def score(self, examples: list[str], predictions: list[str]) -> Scores:
        right = sum(label == guess for label, guess in zip(examples, predictions, strict=True))
        return Scores("accuracy", {"accuracy": right / len(examples)})


def make_result(*, elmo: bool, seed: int, value: float, converged: bool = True) -> RunResult:
    chance = np.random.default_rng(7)
    draws = [value + shift for shift in chance.normal(0, 0.01, 300).tolist()]
    return RunResult(
        Run(elmo=elmo, share=1.0, seed=seed),
        100,
        {"accuracy": value},
        {"accuracy": value},
        "accuracy",
        8,
        1.0,
        converged=converged,
        validations=[[1.0, 0.1], [2.0, value]],
        resampled=draws,
    )


@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (5, 3), (30, 20)])
def test_the_p_value_of_seeds_is_that_of_welch(sizes: tuple[int, int]):
    chance = np.random.default_rng(sum(sizes))
    before, after = (chance.normal(shift, 0.02, size) for shift, size in zip((0.8, 0.83), sizes, strict=True))
    expected = stats.ttest_ind(before, after, equal_var=False).pvalue
    assert compute_welch_p(before.tolist(), after.tolist()) == pytest.approx(expected, abs=1e-9)


def test_one_run_says_nothing_about_seeds():
    assert compute_welch_p([0.5], [0.6, 0.7]) is None


def test_draws_are_always_the_same_and_have_every_size():
    first, second = (list(draw_resamples(50, 4)) for _ in range(2))
    assert all((one == other).all() for one, other in zip(first, second, strict=True))
    assert [len(draw) for draw in first] == [50] * 4


def test_draws_of_the_examples_spread_as_the_binomial_says():
    labels = ["a"] * 400
    guesses = ["a"] * 300 + ["b"] * 100
    values = score_resamples(MatchTask(), labels, guesses)  # type: ignore[arg-type]
    assert np.mean(values) == pytest.approx(0.75, abs=0.005)
    assert np.std(values) == pytest.approx((0.75 * 0.25 / 400) ** 0.5, rel=0.15)
    assert score_resamples(MatchTask(), labels[:10], guesses[:10]) == []  # type: ignore[arg-type]


def test_a_difference_that_all_draws_show_is_not_blurred_by_how_hard_the_examples_are():
    hard = np.random.default_rng(1).normal(0.7, 0.05, 300)
    difference = compare_runs([0.7], [0.71], [hard.tolist()], [(hard + 0.01).tolist()])
    assert difference.examples_p is not None
    assert difference.examples_p < 0.01
    assert difference.low == pytest.approx(0.01)
    assert difference.verdict == "one run"


@pytest.mark.parametrize(
    ("bare", "verdict"),
    [
        ((0.80, 0.801, 0.802), "Other seeds and other examples would very likely say the same"),
        ((0.75, 0.83, 0.90), "This may be chance"),
    ],
)
def test_the_report_says_how_sure_the_difference_is(bare: tuple[float, ...], verdict: str):
    results = [make_result(elmo=True, seed=n, value=0.83 + n / 1000) for n in range(3)]
    results += [make_result(elmo=False, seed=n, value=value) for n, value in enumerate(bare)]
    (text,) = describe_elmo_effect(results, "test")
    assert verdict in text
    assert "over 3 seeds of each p = " in text


def test_the_report_names_runs_that_ended_at_the_cap():
    results = [
        make_result(elmo=True, seed=1, value=0.8),
        make_result(elmo=False, seed=1, value=0.7, converged=False),
    ]
    text = describe_elmo_effect(results, "test")[-1]
    assert text.startswith("1 of 2 runs (without ELMo) ended at the cap")
    assert "| with ELMo, seed 1 | 8 | 2 | dev stopped improving |" in render_convergence(results)
    assert "| without ELMo, seed 1 | 8 | 2 | cap of train.epochs |" in render_convergence(results)
