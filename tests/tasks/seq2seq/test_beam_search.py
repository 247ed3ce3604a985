"""Beam search against a search of all texts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import Self

import pytest
import torch
from torch import Tensor

from polyseme.tasks.seq2seq.beam_search import BeamLimits, search_beams
from polyseme.tasks.seq2seq.units import END, START

UNITS, TOKENS = 6, 3  # three marks and three units


@dataclass(frozen=True)
class MarkovDecoder:
    """The next unit and the attention depend on the unit before and on the source alone."""

    tables: Tensor  # (B, V, V) log probabilities
    attention: Tensor  # (V, S)

    def step(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        beams = len(ids) // len(self.tables)
        source = torch.arange(len(self.tables)).repeat_interleave(beams)
        return self.tables[source, ids].clone(), self.attention[ids], state

    def select_sources(self, numbers: Tensor) -> Self:
        return type(self)(self.tables[numbers], self.attention)

    def select_rows(self, state: Tensor, rows: Tensor) -> Tensor:
        return state[rows]


def make_decoder(sources: int) -> MarkovDecoder:
    generator = torch.Generator().manual_seed(3)
    tables = torch.randn(sources, UNITS, UNITS, generator=generator).log_softmax(dim=2)
    attention = torch.rand(UNITS, TOKENS, generator=generator).softmax(dim=1)
    return MarkovDecoder(tables, attention)


def score(decoder: MarkovDecoder, source: int, ids: tuple[int, ...], limits: BeamLimits) -> float:
    path = [START, *ids, END]
    value = sum(float(decoder.tables[source, a, b]) for a, b in pairwise(path))
    covered = decoder.attention[torch.tensor(path[:-1])].sum(dim=0).clamp(1e-3, 1.0).log().sum()
    penalty = ((5 + len(ids) + 1) / 6) ** limits.length_penalty
    return value / penalty + limits.coverage_penalty * float(covered)


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (1.0, 0.0), (0.6, 0.3)])
def test_a_wide_beam_finds_the_best_of_all_texts(alpha: float, beta: float) -> None:
    decoder = make_decoder(4)
    limits = BeamLimits(beams=60, max_units=4, length_penalty=alpha, coverage_penalty=beta)
    searched = search_beams(decoder, torch.zeros(4, 1), torch.ones(4, TOKENS, dtype=torch.bool), limits)
    texts = [ids for length in range(4) for ids in product(range(3, UNITS), repeat=length)]
    for source, hypotheses in enumerate(searched):
        best = max(texts, key=lambda ids: score(decoder, source, ids, limits))
        assert tuple(hypotheses[0].ids) == best
        assert hypotheses[0].score == pytest.approx(score(decoder, source, best, limits), abs=1e-5)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


def test_a_source_has_the_same_result_alone_and_in_a_batch() -> None:
    decoder = make_decoder(5)
    limits = BeamLimits(beams=3, max_units=9, length_penalty=1.0)
    mask = torch.ones(5, TOKENS, dtype=torch.bool)
    together = search_beams(decoder, torch.zeros(5, 1), mask, limits)
    for number in range(5):
        alone = decoder.select_sources(torch.tensor([number]))
        assert search_beams(alone, torch.zeros(1, 1), mask[:1], limits)[0] == together[number]


def test_one_beam_takes_the_most_probable_unit_at_each_step() -> None:
    decoder = make_decoder(1)
    (hypotheses,) = search_beams(
        decoder, torch.zeros(1, 1), torch.ones(1, TOKENS, dtype=torch.bool), BeamLimits(1, 20)
    )
    unit, path = START, []
    for _ in range(20):
        allowed = decoder.tables[0, unit].clone()
        allowed[[0, 2]] = -1e9
        unit = int(allowed.argmax())
        if unit == END:
            break
        path.append(unit)
    assert hypotheses[0].ids == path


def test_a_text_without_an_end_is_cut_off() -> None:
    tables = torch.full((1, UNITS, UNITS), -5.0)
    tables[:, :, 4], tables[:, :, END] = 0.0, -1e9
    mask = torch.ones(1, TOKENS, dtype=torch.bool)
    decoder = MarkovDecoder(tables, torch.ones(UNITS, TOKENS))
    (hypotheses,) = search_beams(decoder, torch.zeros(1, 1), mask, BeamLimits(2, 5))
    assert hypotheses[0].ids == [4] * 5
    (hypotheses,) = search_beams(decoder, torch.zeros(1, 1), mask, BeamLimits(2, 5, no_repeat=2))
    pairs = list(pairwise(hypotheses[0].ids))
    assert len(pairs) == len(set(pairs)) == 4
