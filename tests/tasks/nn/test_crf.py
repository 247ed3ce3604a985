"""The chain over tags: against a sum over all sequences, and against pytorch-crf."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product

import pytest
import torch
from torchcrf import CRF

from polyseme.tasks.data.tag_schemes import may_follow
from polyseme.tasks.nn.crf import FORBIDDEN, Crf

K, T = 3, 4


def free(count: int = K) -> Crf:
    may = torch.ones(count, count, dtype=torch.bool)
    crf = Crf(may, may[0], may[0])
    with torch.no_grad():
        crf.begin.normal_()
        crf.end.normal_()
        crf.transitions.normal_()
    return crf


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(2, T, K), torch.randint(K, (2, T)), torch.tensor([T, 2])


@torch.no_grad()
def score(crf: Crf, emissions: torch.Tensor, tags: tuple[int, ...]) -> float:
    """Of one sequence, written out."""
    total = crf.begin[tags[0]] + crf.end[tags[-1]]
    total = total + sum(emissions[place, tag] for place, tag in enumerate(tags))
    return float(total + sum(crf.transitions[a, b] for a, b in pairwise(tags)))


def test_the_likelihood_is_that_of_a_sum_over_all_sequences(batch):
    emissions, tags, lengths = batch
    crf = free()
    losses = crf.loss(emissions, tags, lengths)
    for row, length in enumerate(lengths.tolist()):
        scores = [score(crf, emissions[row], path) for path in product(range(K), repeat=length)]
        own = score(crf, emissions[row], tuple(tags[row, :length].tolist()))
        wanted = torch.logsumexp(torch.tensor(scores), 0) - own
        torch.testing.assert_close(losses[row], wanted, atol=1e-5, rtol=1e-5)


def test_the_best_sequence_is_the_best_of_all(batch):
    emissions, _, lengths = batch
    crf = free()
    for row, path in enumerate(crf.best(emissions, lengths)):
        every = product(range(K), repeat=int(lengths[row]))
        assert tuple(path) == max(every, key=partial(score, crf, emissions[row]))


def test_marginals_are_shares_of_all_sequences(batch):
    emissions, _, lengths = batch
    crf = free()
    found = crf.marginals(emissions, lengths)
    for row, length in enumerate(lengths.tolist()):
        paths = list(product(range(K), repeat=length))
        chances = torch.tensor([score(crf, emissions[row], path) for path in paths]).softmax(0)
        for place in range(length):
            for tag in range(K):
                wanted = sum(float(c) for c, p in zip(chances, paths, strict=True) if p[place] == tag)
                assert float(found[row, place, tag]) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_it_agrees_with_pytorch_crf(batch):
    emissions, tags, lengths = batch
    ours, theirs = free(), CRF(K, batch_first=True)
    with torch.no_grad():
        theirs.transitions.copy_(ours.transitions)
        theirs.start_transitions.copy_(ours.begin)
        theirs.end_transitions.copy_(ours.end)
    mask = torch.arange(T) < lengths[:, None]
    torch.testing.assert_close(
        -ours.loss(emissions, tags, lengths), theirs(emissions, tags, mask, reduction="none")
    )
    assert ours.best(emissions, lengths) == theirs.decode(emissions, mask)


def test_forbidden_transitions_never_happen():
    torch.manual_seed(1)
    may = torch.ones(K, K, dtype=torch.bool)
    may[0, 1] = False
    begins = torch.tensor([True, False, True])
    crf = Crf(may, begins, torch.tensor([True, True, False]))
    for _ in range(50):
        (path,) = crf.best(5 * torch.randn(1, 6, K), torch.tensor([6]))
        assert (0, 1) not in set(pairwise(path))
        assert path[0] != 1
        assert path[-1] != 2
    assert float(crf.forbidden.min()) == FORBIDDEN


def test_gradients_reach_emissions_and_transitions(batch):
    emissions, tags, lengths = batch
    emissions.requires_grad_()
    crf = free()
    crf.loss(emissions, tags, lengths).sum().backward()
    assert emissions.grad is not None
    assert float(emissions.grad[1, 2:].abs().sum()) == 0  # behind the end of the second sentence
    assert float(crf.transitions.grad.abs().sum()) > 0


def plain_loss(crf: Crf, emissions: torch.Tensor, tags: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The loss in logarithms, with autograd for its gradient."""
    transitions = crf.transitions + crf.forbidden
    begin, end = crf.begin + crf.forbidden_begin, crf.end + crf.forbidden_end
    losses = []
    for row, length in enumerate(lengths.tolist()):
        score = begin + emissions[row, 0]
        own = begin[tags[row, 0]] + emissions[row, 0, tags[row, 0]]
        for place in range(1, length):
            score = torch.logsumexp(score[:, None] + transitions, dim=0) + emissions[row, place]
            before, now = tags[row, place - 1], tags[row, place]
            own = own + transitions[before, now] + emissions[row, place, now]
        losses.append(torch.logsumexp(score + end, dim=0) - own - end[tags[row, length - 1]])
    return torch.stack(losses)


def bioes() -> tuple[Crf, torch.Tensor]:
    """A chain over O, B, I, E, S that allows what BIOES does, and three legal sequences of other lengths."""
    letters = "OBIES"
    may = torch.tensor([[may_follow(a, "X", b, "X") for b in letters] for a in letters])
    crf = Crf(may, may[0], may[:, 0])
    tags = [[1, 2, 3, 0, 4, 0], [0, 4, 1, 3, 0, 0], [4, 0, 0, 0, 0, 0]]
    return crf, torch.tensor(tags)


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("chain", ["free", "bioes"])
def test_gradients_are_those_of_autograd(chain: str, scale: float):
    torch.manual_seed(3)
    lengths = torch.tensor([6, 4, 1])
    crf, tags = (free(5), torch.randint(5, (3, 6))) if chain == "free" else bioes()
    crf = crf.double()
    with torch.no_grad():
        for values in crf.parameters():
            values.normal_()
    emissions = (scale * torch.randn(3, 6, 5, dtype=torch.float64)).requires_grad_()
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    wanted: dict[str, torch.Tensor] = {}
    given = {"emissions": emissions, **dict(crf.named_parameters())}
    for loss in (plain_loss(crf, emissions, tags, lengths), crf.loss(emissions, tags, lengths)):
        found = dict(
            zip(given, torch.autograd.grad((weights * loss).sum(), list(given.values())), strict=True)
        )
        for name in wanted:
            torch.testing.assert_close(found[name], wanted[name], atol=1e-9, rtol=1e-6)
        wanted = found
    assert set(wanted) == {"emissions", "transitions", "begin", "end"}
    if chain == "bioes":
        assert float(wanted["transitions"][crf.forbidden != 0].abs().max()) < 1e-9
        assert float(wanted["begin"][crf.forbidden_begin != 0].abs().max()) < 1e-9
