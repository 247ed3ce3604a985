"""Rerank the n-best lists of a speech recognizer or translator with the language model.

    text.reading, language.scoring  ->  language.reranking  ->  api

One hypothesis per line, the lines of a list together:

    id <TAB> hypothesis [<TAB> score]
    id ||| hypothesis [||| features …] [||| score] [||| alignment]      (Moses)

Of the Moses fields, the last one that is a single number is the score.
total = (1 - weight) * score of the hypothesis + weight * log probability of the language model.

The unknown word represents many words and is therefore likely, but a hypothesis must not win by it. So an
unknown word gets the probability of the unknown word divided by the size of the vocabulary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from math import isfinite, log
from typing import NamedTuple

from polyseme.choices import Direction, Normalise
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.io.html import Cell
from polyseme.language.scoring import OnBatch, SentenceScore, require_predictor, score_stream
from polyseme.text.reading import Line

DIRECTIONS = ("forward", "backward", "both")  # in the order of SentenceScore.totals
NORMALISE = ("none", "lm", "total")


@dataclass(frozen=True)
class Hypothesis:
    """One line of an n-best file.

    Attributes:
        list_id: The list it belongs to.
        text: The hypothesis.
        score: The score of the program that made it; None if it has none.
        location: file:line.

    """

    list_id: str
    text: str
    score: float | None
    location: str


@dataclass(frozen=True)
class RankedHypothesis:
    """A hypothesis with its rank in its list.

    Attributes:
        list_id: The list it belongs to.
        rank: From 1.
        text: The hypothesis.
        total: What the list is sorted by.
        lm: Log probability of the model with the penalty for unknown words; per token if normalised.
        score: The score of the program that made it; None if it has none.
        tokens: How many tokens it has.

    """

    list_id: str
    rank: int
    text: str
    total: float
    lm: float
    score: float | None
    tokens: int

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "list": self.list_id,
            "rank": self.rank,
            "total": self.total,
            "lm": self.lm,
            "score": self.score,
            "hypothesis": self.text,
        }


def read_nbest(lines: Iterable[Line]) -> Iterator[Hypothesis]:
    """Parse the lines of an n-best file; blank lines are skipped.

    Raises:
        DataError: A line has the wrong number of columns, or a score that is not a number.

    """
    for line in lines:
        if not line.text.strip():
            continue
        location = f"{line.source}:{line.number}"
        if "|||" in line.text and "\t" not in line.text.partition("|||")[0]:
            fields = [part.strip() for part in line.text.split("|||")]
            numbers = [value for value in map(_parse_number, fields[2:]) if value is not None]
            yield Hypothesis(fields[0], fields[1], numbers[-1] if numbers else None, location)
            continue
        fields = line.text.split("\t")
        if len(fields) not in (2, 3):
            raise DataError(
                f"{location}: {len(fields)} columns, expected id<TAB>hypothesis[<TAB>score], "
                "or id ||| hypothesis ||| … ||| score."
            )
        score = _parse_number(fields[2]) if len(fields) == 3 else None
        if len(fields) == 3 and score is None:
            raise DataError(f"{location}: the score is {fields[2]!r:.40}, expected a number.")
        yield Hypothesis(fields[0].strip(), fields[1].strip(), score, location)


def _parse_number(text: str) -> float | None:
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
    on_batch: OnBatch | None = None,
) -> Iterator[RankedHypothesis]:
    """Sort the hypotheses of each list, best first. Lists keep the order of the file; memory holds a few.

    Args:
        elmo: A model with a softmax.
        hypotheses: The hypotheses, those of a list together; see `read_nbest`.
        weight: 1 uses the language model alone, less mixes it with the scores of the hypotheses.
        direction: Which log probability to use; "both" is the mean of the two.
        normalise: "lm" divides the model's log probability by the number of tokens (if the scores are means
            already), "total" divides the mixture (if they are sums). Both favour short hypotheses less.
        unknown_penalty: Subtracted from the log probability for each unknown word; None is log V, 0 is none.
        segment: How to split hypotheses into tokens; as the model was trained if None.
        on_batch: Receives the tokens of the hypotheses of every batch that was scored.

    Returns:
        The hypotheses, list by list.

    Raises:
        UsageError: The model has no softmax, or a setting is out of range.
        DataError: A list is split, or a hypothesis has no score to mix with.

    Example:
        >>> for ranked in rerank(elmo, read_nbest(read_lines("nbest.tsv")), weight=0.5):
        ...     print(ranked.list_id, ranked.rank, ranked.text)

    """
    if not 0 <= weight <= 1:
        raise UsageError(f"weight is {weight}, expected 0 (only the scores) to 1 (only the model).")
    if direction not in DIRECTIONS:
        raise UsageError(f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}.")
    if normalise not in NORMALISE:
        raise UsageError(f"normalise is {normalise!r}, expected one of {', '.join(NORMALISE)}.")
    penalty = log(len(require_predictor(elmo).vocab)) if unknown_penalty is None else unknown_penalty
    if not isfinite(penalty):
        raise UsageError(f"unknown_penalty is {penalty}, expected a finite number.")
    mixture = _Mixture(weight, DIRECTIONS.index(direction), normalise, penalty)
    scored = _score_hypotheses(elmo, hypotheses, segment, on_batch, need_score=weight < 1)
    return _rank_lists(scored, mixture)


class _Mixture(NamedTuple):
    """How a total is computed."""

    weight: float
    direction: int  # index of SentenceScore.totals
    normalise: str
    penalty: float


def _rank_lists(
    scored: Iterable[tuple[Hypothesis, SentenceScore]], mixture: _Mixture
) -> Iterator[RankedHypothesis]:
    for _, pairs in groupby(scored, key=lambda pair: pair[0].list_id):
        ranked = [_mix(hypothesis, score, mixture) for hypothesis, score in pairs]
        ranked.sort(key=lambda hypothesis: -hypothesis.total)  # stable: equals stay in the order of the file
        for rank, hypothesis in enumerate(ranked, start=1):
            yield replace(hypothesis, rank=rank)


def _score_hypotheses(
    elmo: Elmo,
    hypotheses: Iterable[Hypothesis],
    segment: str | None,
    on_batch: OnBatch | None,
    *,
    need_score: bool,
) -> Iterator[tuple[Hypothesis, SentenceScore]]:
    """Each hypothesis with its score; batches span lists."""
    waiting: deque[Hypothesis] = deque()

    def list_sentences() -> Iterator[list[str]]:
        for hypothesis in _check_hypotheses(hypotheses, need_score=need_score):
            waiting.append(hypothesis)
            yield elmo.token_texts(hypothesis.text, segment)

    for score in score_stream(elmo, list_sentences(), on_batch=on_batch):
        yield waiting.popleft(), score


def _check_hypotheses(hypotheses: Iterable[Hypothesis], *, need_score: bool) -> Iterator[Hypothesis]:
    """Refuse lists that are split, and hypotheses without a score if one is needed."""
    first_locations: dict[str, str] = {}
    current: str | None = None
    for hypothesis in hypotheses:
        if hypothesis.list_id != current:
            current = hypothesis.list_id
            if current in first_locations:
                raise DataError(
                    f"{hypothesis.location}: list {current!r:.40} continues here, but it began at "
                    f"{first_locations[current]} and another list followed. Sort the file by list."
                )
            first_locations[current] = hypothesis.location
        if need_score and hypothesis.score is None:
            raise DataError(f"{hypothesis.location}: no score to mix with. Add one, or leave out `weight`.")
        yield hypothesis


def _mix(hypothesis: Hypothesis, score: SentenceScore, mixture: _Mixture) -> RankedHypothesis:
    targets = len(score.tokens) + 1
    lm = score.totals[mixture.direction] - mixture.penalty * int(score.unknown.sum())
    if mixture.normalise == "lm":
        lm /= targets
    total = mixture.weight * lm
    if mixture.weight < 1 and hypothesis.score is not None:
        total += (1 - mixture.weight) * hypothesis.score
    if mixture.normalise == "total":
        total /= targets
    return RankedHypothesis(
        hypothesis.list_id, 0, hypothesis.text, total, lm, hypothesis.score, len(score.tokens)
    )
