"""Lists of hypotheses of a recogniser or a translator to the same lists, best first.

    text.reading, language.scoring  ->  language.reranking  ->  api

A line is a hypothesis, the lines of a list stand together:

    id <TAB> hypothesis [<TAB> score]
    id ||| hypothesis [||| features …] [||| score] [||| alignment]      (Moses)

Of the Moses fields, the last one that is a single number is the score.
total = (1 - weight) * own score + weight * the language model's log probability.

The unknown word stands for many words and is therefore likely; a hypothesis must not win by it. So an unknown
word has the probability of the unknown word shared out to as many words as the vocabulary has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import isfinite, log
from typing import Literal, NamedTuple

from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.language.scoring import SentenceScore, predictor, score_stream
from polyseme.text.reading import Line

Direction = Literal["both", "forward", "backward"]
Normalise = Literal["none", "lm", "total"]
DIRECTIONS = ("forward", "backward", "both")  # as SentenceScore.totals has them
NORMALISE = ("none", "lm", "total")


@dataclass(frozen=True)
class Hypothesis:
    """One line of an n-best file."""

    list_id: str
    text: str
    own: float | None  # the score of the program that made it
    place: str  # file:line


@dataclass(frozen=True)
class RankedHypothesis:
    """A hypothesis with its place in its list."""

    list_id: str
    rank: int  # from 1
    text: str
    total: float
    lm: float  # log probability under the model, unknown words penalised, per token if asked for
    own: float | None
    tokens: int


def read_nbest(lines: Iterable[Line]) -> Iterator[Hypothesis]:
    """Parse the lines of an n-best file; blank lines are skipped."""
    for line in lines:
        if not line.text.strip():
            continue
        place = f"{line.source}:{line.number}"
        if "|||" in line.text and "\t" not in line.text.partition("|||")[0]:
            fields = [part.strip() for part in line.text.split("|||")]
            numbers = [value for value in map(_number, fields[2:]) if value is not None]
            yield Hypothesis(fields[0], fields[1], numbers[-1] if numbers else None, place)
            continue
        fields = line.text.split("\t")
        if len(fields) not in (2, 3):
            raise DataError(
                f"{place}: {len(fields)} columns, expected id<TAB>hypothesis[<TAB>score], "
                "or id ||| hypothesis ||| … ||| score."
            )
        own = _number(fields[2]) if len(fields) == 3 else None
        if len(fields) == 3 and own is None:
            raise DataError(f"{place}: the score is {fields[2]!r:.40}, expected a number.")
        yield Hypothesis(fields[0].strip(), fields[1].strip(), own, place)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def rerank(
    elmo: Elmo,
    hypotheses: Iterable[Hypothesis],
    *,
    weight: float = 1.0,
    direction: Direction = "both",
    normalise: Normalise = "none",
    unknown_penalty: float | None = None,
    segment: str | None = None,
) -> Iterator[RankedHypothesis]:
    """The hypotheses of each list, best first; lists in the order of the file, memory holds a few of them.

    weight: 1 for the language model alone, less to mix it with the hypotheses' own scores.
    direction: which log probability is used; "both" is the mean of the two.
    normalise: "lm" divides the model's log probability by the number of tokens (where the own scores are
        means already), "total" divides the mixture (where they are sums); short hypotheses gain less then.
    unknown_penalty: taken from the log probability for each unknown word; None is log V, 0 is none.
    """
    if not 0 <= weight <= 1:
        raise UsageError(f"weight is {weight}, expected 0 (own scores alone) to 1 (the model alone).")
    if direction not in DIRECTIONS:
        raise UsageError(f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}.")
    if normalise not in NORMALISE:
        raise UsageError(f"normalise is {normalise!r}, expected one of {', '.join(NORMALISE)}.")
    penalty = log(len(predictor(elmo).vocab)) if unknown_penalty is None else unknown_penalty
    if not isfinite(penalty):
        raise UsageError(f"unknown_penalty is {penalty}, expected a number.")
    how = _Mixing(weight, DIRECTIONS.index(direction), normalise, penalty)
    return _ranked_lists(_scored(elmo, hypotheses, segment, mixed=weight < 1), how)


class _Mixing(NamedTuple):
    """How a total is made."""

    weight: float
    direction: int  # a place in SentenceScore.totals
    normalise: str
    penalty: float


def _ranked_lists(
    scored: Iterable[tuple[Hypothesis, SentenceScore]], how: _Mixing
) -> Iterator[RankedHypothesis]:
    for _, pairs in groupby(scored, key=lambda pair: pair[0].list_id):
        ranked = [_mix(hypothesis, found, how) for hypothesis, found in pairs]
        ranked.sort(key=lambda one: -one.total)  # stable: equal ones stay in the order of the file
        for rank, one in enumerate(ranked, start=1):
            yield RankedHypothesis(one.list_id, rank, one.text, one.total, one.lm, one.own, one.tokens)


def _scored(
    elmo: Elmo, hypotheses: Iterable[Hypothesis], segment: str | None, *, mixed: bool
) -> Iterator[tuple[Hypothesis, SentenceScore]]:
    """Each hypothesis with its score, batched over the borders of the lists."""
    waiting: deque[Hypothesis] = deque()

    def sentences() -> Iterator[list[str]]:
        for hypothesis in _checked(hypotheses, mixed=mixed):
            waiting.append(hypothesis)
            yield elmo.token_texts(hypothesis.text, segment)

    for found in score_stream(elmo, sentences()):
        yield waiting.popleft(), found


def _checked(hypotheses: Iterable[Hypothesis], *, mixed: bool) -> Iterator[Hypothesis]:
    """Refuse lists that are torn apart, and hypotheses without a score where one is needed."""
    begun: dict[str, str] = {}
    current: str | None = None
    for hypothesis in hypotheses:
        if hypothesis.list_id != current:
            current = hypothesis.list_id
            if current in begun:
                raise DataError(
                    f"{hypothesis.place}: list {current!r:.40} goes on here, after it began at "
                    f"{begun[current]} and another list followed. Sort the file by list."
                )
            begun[current] = hypothesis.place
        if mixed and hypothesis.own is None:
            raise DataError(
                f"{hypothesis.place}: no score of its own to mix with. Add it, or leave out the weight."
            )
        yield hypothesis


def _mix(hypothesis: Hypothesis, found: SentenceScore, how: _Mixing) -> RankedHypothesis:
    targets = len(found.tokens) + 1
    lm = found.totals[how.direction] - how.penalty * int(found.unknown.sum())
    if how.normalise == "lm":
        lm /= targets
    total = how.weight * lm
    if how.weight < 1 and hypothesis.own is not None:
        total += (1 - how.weight) * hypothesis.own
    if how.normalise == "total":
        total /= targets
    return RankedHypothesis(
        hypothesis.list_id, 0, hypothesis.text, total, lm, hypothesis.own, len(found.tokens)
    )
