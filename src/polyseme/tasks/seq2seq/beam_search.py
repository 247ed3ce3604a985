"""Beam search over batches of sources, with penalties for length and for parts of the source left out.

    a decoder that makes steps  ->  tasks.seq2seq.beam_search  ->  tasks.seq2seq.network

A finished text of n units with log probability p has the score p / ((5 + n) / 6)^alpha + beta * c, where c is
the sum over source tokens of log(min(attention so far, 1)) (Wu et al. 2016). Sources whose search is over
leave the batch.
B sources, K beams, V units, S source tokens, n units so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from polyseme.tasks.seq2seq.units import END, START, UNKNOWN

LEAST_ATTENTION = 1e-3  # to a source token, for the logarithm
IMPOSSIBLE = -1e9


class BeamLimits(NamedTuple):
    """The settings of a search."""

    beams: int
    max_units: int
    length_penalty: float = 0.0  # alpha
    coverage_penalty: float = 0.0  # beta
    no_repeat: int = 0  # length of the runs of units that may not occur twice; 0: any may


class BeamText(NamedTuple):
    """A generated text: its units without marks, its log probability and its score with penalties."""

    ids: list[int]
    log_probability: float
    score: float


class SteppingDecoder(Protocol):
    """A decoder over encoded sources."""

    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Tensor, Any]:
        """The units before (B * K,) and the state -> log probabilities (B * K, V), attention (B * K, S)."""

    def select_sources(self, numbers: Tensor) -> Self:
        """The decoder over some of the sources."""

    def select_rows(self, state: Any, rows: Tensor) -> Any:
        """The state of some of the rows."""


@dataclass
class _Finished:
    hypotheses: list[BeamText] = field(default_factory=list)

    def best(self) -> float:
        return max((hypothesis.score for hypothesis in self.hypotheses), default=float("-inf"))


@torch.no_grad()
def search_beams(
    decoder: SteppingDecoder, state: Any, mask: Tensor, limits: BeamLimits
) -> list[list[BeamText]]:
    """Search for the best texts of each source.

    Args:
        decoder: Over B sources.
        state: Its first state, with one row per source.
        mask: (B, S) which source tokens are real.
        limits: The settings of the search.

    Returns:
        At least one and at most `beams` hypotheses of each source, the best one first.

    """
    count, device = len(mask), mask.device
    width = limits.beams
    finished = [_Finished() for _ in range(count)]
    alive = torch.arange(count, device=device)  # numbers of the sources that are still searched
    state = decoder.select_rows(state, alive.repeat_interleave(width))
    scores = torch.full((count, width), IMPOSSIBLE, device=device)
    scores[:, 0] = 0.0  # all beams are alike at first: only one may continue
    history = torch.full((count, width, 1), START, device=device)
    coverage = torch.zeros(count, width, mask.shape[1], device=device)
    for length in range(1, limits.max_units + 1):
        values, attention, state = decoder.step(history[:, :, -1].reshape(-1), state)
        units = values.shape[1]
        values = values.view(len(alive), width, units)
        values[:, :, [START, UNKNOWN]] = IMPOSSIBLE
        _forbid_repeats(values, history, limits.no_repeat)
        coverage = coverage + attention.view_as(coverage)
        totals = (scores[:, :, None] + values).flatten(1)  # (B, KV)
        best, indices = totals.topk(min(2 * width, totals.shape[1]), dim=1)
        beams, chosen = indices // units, indices % units
        ends = chosen == END
        covered = _measure_coverage(coverage, mask[alive], limits.coverage_penalty)  # (B, K)
        for row, rank in ends[:, :width].nonzero().tolist():
            value, beam = float(best[row, rank]), int(beams[row, rank])
            if value > IMPOSSIBLE / 2:
                score = _penalise(value, length, limits.length_penalty) + float(covered[row, beam])
                ids = history[row, beam, 1:].tolist()
                finished[int(alive[row])].hypotheses.append(BeamText(ids, value, score))
        order = ends.int().argsort(dim=1, stable=True)[:, :width]  # the best that go on
        scores = best.gather(1, order).masked_fill(ends.gather(1, order), IMPOSSIBLE)
        beams, chosen = beams.gather(1, order), chosen.gather(1, order)
        source = torch.arange(len(alive), device=device)[:, None]
        history = torch.cat([history[source, beams], chosen[:, :, None]], dim=2)
        coverage = coverage[source, beams]
        rows = source * width + beams
        going = [
            row
            for row, number in enumerate(alive.tolist())
            if not _is_over(finished[number], float(scores[row, 0]), length, limits)
        ]
        if not going:
            break
        if len(going) < len(alive):
            kept = torch.tensor(going, device=device)
            decoder, rows = decoder.select_sources(kept), rows[kept]
            alive, scores, history, coverage = alive[kept], scores[kept], history[kept], coverage[kept]
        state = decoder.select_rows(state, rows.flatten())
    else:  # the longest texts have no end
        covered = _measure_coverage(coverage, mask[alive], limits.coverage_penalty)
        for row, number in enumerate(alive.tolist()):
            value = float(scores[row, 0])
            score = _penalise(value, limits.max_units, limits.length_penalty) + float(covered[row, 0])
            if not finished[number].hypotheses:
                ids = history[row, 0, 1:].tolist()
                finished[number].hypotheses.append(BeamText(ids, value, score))
    return [sorted(item.hypotheses, key=lambda hypothesis: -hypothesis.score)[:width] for item in finished]


def _penalise(value: float, length: int, alpha: float) -> float:
    return value / float(((5 + length) / 6) ** alpha)


def _is_over(item: _Finished, best: float, length: int, limits: BeamLimits) -> bool:
    """Whether enough texts are finished, or no beam can become better than the best of them."""
    if len(item.hypotheses) >= limits.beams:
        return True
    return item.best() >= _penalise(best, limits.max_units, limits.length_penalty)


def _measure_coverage(coverage: Tensor, mask: Tensor, beta: float) -> Tensor:
    """The penalty (B, K) of what the beams have not attended to (B, K, S)."""
    if not beta:
        return coverage.new_zeros(coverage.shape[:2])
    logs = coverage.clamp(LEAST_ATTENTION, 1.0).log() * mask[:, None]
    return beta * logs.sum(dim=2)


def _forbid_repeats(values: Tensor, history: Tensor, run: int) -> None:
    """Make units impossible that would repeat a run of units, in place."""
    if not run or history.shape[2] <= run:
        return
    runs = history[:, :, 1:].unfold(2, run, 1)  # (B, K, runs, run)
    recent = history[:, :, None, history.shape[2] - run + 1 :]
    repeats = (runs[..., :-1] == recent).all(dim=3)
    values.scatter_add_(2, runs[..., -1], repeats * IMPOSSIBLE)
