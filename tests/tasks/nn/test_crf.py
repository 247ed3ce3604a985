"""The CRF against a sum over all sequences, and against pytorch-crf."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product

import pytest
import torch
from torchcrf import CRF

from polyseme.tasks.data.tag_schemes import may_follow
from polyseme.tasks.nn.crf import FORBIDDEN, Crf

K, T = 3, 4


def random_crf(count: int = K) -> Crf:
    """A CRF with random weights that allows all transitions."""
    allowed = torch.ones(count, count, dtype=torch.bool)
    crf = Crf(allowed, allowed[0], allowed[0])
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
    """The score of one sequence, term by term."""
    total = crf.begin[tags[0]] + crf.end[tags[-1]]
    total = total + sum(emissions[position, tag] for position, tag in enumerate(tags))
    return float(total + sum(crf.transitions[a, b] for a, b in pairwise(tags)))


def test_the_loss_equals_a_sum_over_all_sequences(batch):
    emissions, tags, lengths = batch
    crf = random_crf()
    losses = crf.loss(emissions, tags, lengths)
    for row, length in enumerate(lengths.tolist()):
        scores = [score(crf, emissions[row], path) for path in product(range(K), repeat=length)]
        label_score = score(crf, emissions[row], tuple(tags[row, :length].tolist()))
        expected = torch.logsumexp(torch.tensor(scores), 0) - label_score
        torch.testing.assert_close(losses[row], expected, atol=1e-5, rtol=1e-5)


def test_decoding_returns_the_best_of_all_sequences(batch):
    emissions, _, lengths = batch
    crf = random_crf()
    for row, path in enumerate(crf.best(emissions, lengths)):
        all_paths = product(range(K), repeat=int(lengths[row]))
        assert tuple(path) == max(all_paths, key=partial(score, crf, emissions[row]))


def test_marginals_equal_sums_over_all_sequences(batch):
    emissions, _, lengths = batch
    crf = random_crf()
    marginals = crf.marginals(emissions, lengths)
    for row, length in enumerate(lengths.tolist()):
        paths = list(product(range(K), repeat=length))
        probabilities = torch.tensor([score(crf, emissions[row], path) for path in paths]).softmax(0)
        for position in range(length):
            for tag in range(K):
                pairs = zip(probabilities, paths, strict=True)
                expected = sum(float(probability) for probability, path in pairs if path[position] == tag)
                assert float(marginals[row, position, tag]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_loss_and_decoding_agree_with_pytorch_crf(batch):
    emissions, tags, lengths = batch
    ours, theirs = random_crf(), CRF(K, batch_first=True)
    with torch.no_grad():
        theirs.transitions.copy_(ours.transitions)
        theirs.start_transitions.copy_(ours.begin)
        theirs.end_transitions.copy_(ours.end)
    mask = torch.arange(T) < lengths[:, None]
    torch.testing.assert_close(
        -ours.loss(emissions, tags, lengths), theirs(emissions, tags, mask, reduction="none")
    )
    assert ours.best(emissions, lengths) == theirs.decode(emissions, mask)


def test_forbidden_transitions_are_never_decoded():
    torch.manual_seed(1)
    allowed = torch.ones(K, K, dtype=torch.bool)
    allowed[0, 1] = False
    allowed_first = torch.tensor([True, False, True])
    crf = Crf(allowed, allowed_first, torch.tensor([True, True, False]))
    for _ in range(50):
        (path,) = crf.best(5 * torch.randn(1, 6, K), torch.tensor([6]))
        assert (0, 1) not in set(pairwise(path))
        assert path[0] != 1
        assert path[-1] != 2
    assert float(crf.forbidden.min()) == FORBIDDEN


def test_gradients_reach_emissions_and_transitions(batch):
    emissions, tags, lengths = batch
    emissions.requires_grad_()
    crf = random_crf()
    crf.loss(emissions, tags, lengths).sum().backward()
    assert emissions.grad is not None
    assert float(emissions.grad[1, 2:].abs().sum()) == 0  # after the end of the second sentence
    assert float(crf.transitions.grad.abs().sum()) > 0


def plain_loss(crf: Crf, emissions: torch.Tensor, tags: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The loss in plain torch, so that autograd computes the gradient."""
    transitions = crf.transitions + crf.forbidden
    begin, end = crf.begin + crf.forbidden_begin, crf.end + crf.forbidden_end
    losses = []
    for row, length in enumerate(lengths.tolist()):
        score = begin + emissions[row, 0]
        label_score = begin[tags[row, 0]] + emissions[row, 0, tags[row, 0]]
        for position in range(1, length):
            score = torch.logsumexp(score[:, None] + transitions, dim=0) + emissions[row, position]
            before, now = tags[row, position - 1], tags[row, position]
            label_score = label_score + transitions[before, now] + emissions[row, position, now]
        losses.append(torch.logsumexp(score + end, dim=0) - label_score - end[tags[row, length - 1]])
    return torch.stack(losses)


def bioes_crf() -> tuple[Crf, torch.Tensor]:
    """A CRF over O, B, I, E, S with the transitions of BIOES, and three legal sequences."""
    letters = "OBIES"
    allowed = torch.tensor([[may_follow(a, "X", b, "X") for b in letters] for a in letters])
    crf = Crf(allowed, allowed[0], allowed[:, 0])
    tags = [[1, 2, 3, 0, 4, 0], [0, 4, 1, 3, 0, 0], [4, 0, 0, 0, 0, 0]]
    return crf, torch.tensor(tags)


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("constraints", ["none", "bioes"])
def test_gradients_agree_with_autograd(constraints: str, scale: float):
    torch.manual_seed(3)
    lengths = torch.tensor([6, 4, 1])
    crf, tags = (random_crf(5), torch.randint(5, (3, 6))) if constraints == "none" else bioes_crf()
    crf = crf.double()
    with torch.no_grad():
        for values in crf.parameters():
            values.normal_()
    emissions = (scale * torch.randn(3, 6, 5, dtype=torch.float64)).requires_grad_()
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    inputs = {"emissions": emissions, **dict(crf.named_parameters())}
    gradients = []
    for loss in (plain_loss(crf, emissions, tags, lengths), crf.loss(emissions, tags, lengths)):
        computed = torch.autograd.grad((weights * loss).sum(), list(inputs.values()))
        gradients.append(dict(zip(inputs, computed, strict=True)))
    expected, actual = gradients
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], atol=1e-9, rtol=1e-6)
    assert set(actual) == {"emissions", "transitions", "begin", "end"}
    if constraints == "bioes":
        assert float(actual["transitions"][crf.forbidden != 0].abs().max()) < 1e-9
        assert float(actual["begin"][crf.forbidden_begin != 0].abs().max()) < 1e-9
