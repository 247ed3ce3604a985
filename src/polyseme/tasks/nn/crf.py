"""A linear-chain conditional random field: the probability of a tag sequence, and the best one.

    tasks.nn.crf  ->  tasks.tagging.network, tasks.roles.network

B sentences, T tokens, K tags. The score of a sequence is the sum of its emissions and of its transitions,
with those from the begin and to the end; forbidden transitions have a score of -10,000.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

FORBIDDEN = -10_000.0
TINY = 1e-300  # instead of a sum that is zero in fp64


class Crf(nn.Module):
    """Transitions between K tags; `allowed` (K, K), `begins` (K,) and `ends` (K,) say which may happen."""

    forbidden: Tensor
    forbidden_begin: Tensor
    forbidden_end: Tensor

    def __init__(self, allowed: Tensor, begins: Tensor, ends: Tensor) -> None:
        super().__init__()
        count = len(allowed)
        self.transitions = nn.Parameter(torch.empty(count, count).uniform_(-0.1, 0.1))  # from, to
        self.begin = nn.Parameter(torch.zeros(count))
        self.end = nn.Parameter(torch.zeros(count))
        for name, may in (("", allowed), ("_begin", begins), ("_end", ends)):
            self.register_buffer(f"forbidden{name}", (~may) * FORBIDDEN, persistent=False)

    def loss(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """Negative log likelihood of the sequences `tags` (B, T): (B,)."""
        return self._log_partition(emissions, lengths) - self._score_sequences(emissions, tags, lengths)

    def _score_sequences(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """The score of the sequences `tags` (B,)."""
        mask = _mask(emissions, lengths)
        transitions, begin, end = self._get_scores()
        emitted = emissions.gather(2, tags[..., None])[..., 0]  # (B, T)
        steps = transitions[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
        last = tags.gather(1, lengths[:, None] - 1)[:, 0]
        inner = (emitted * mask).sum(dim=1) + (steps * mask[:, 1:]).sum(dim=1)
        return inner + begin[tags[:, 0]] + end[last]

    def _log_partition(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """The logarithm of the sum over all sequences (B,)."""
        total: Tensor = _LogPartition.apply(emissions, _mask(emissions, lengths), *self._get_scores())  # type: ignore[no-untyped-call]
        return total

    @torch.no_grad()
    def best(self, emissions: Tensor, lengths: Tensor) -> list[list[int]]:
        """The most probable sequence of each sentence."""
        return find_best_paths(emissions, lengths, *self._get_scores())

    @torch.no_grad()
    def marginals(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """The probability of each tag at each token, over all sequences: (B, T, K)."""
        with torch.enable_grad():
            leaf = emissions.detach().requires_grad_()
            total = self._log_partition(leaf, lengths).sum()
            (marginals,) = torch.autograd.grad(total, leaf)  # d log Z / d emission is the marginal
        return marginals

    def _get_scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return (
            self.transitions + self.forbidden,
            self.begin + self.forbidden_begin,
            self.end + self.forbidden_end,
        )


class _LogPartition(torch.autograd.Function):
    """The logarithm of the sum over all sequences by the forward algorithm, its gradient by the backward one.

    Both run on probabilities in fp64, scaled to a sum of one at each token: one matrix product per token,
    while logarithms would need all K x K sums.
    """

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, mask: Tensor, transitions: Tensor, begin: Tensor, end: Tensor
    ) -> Tensor:
        """Emissions (B, T, K), real tokens (B, T) and scores to (B,)."""
        peaks = emissions.amax(dim=2)
        factors = (emissions - peaks[..., None]).double().exp()  # (B, T, K)
        steps, last = transitions.double().exp(), end.double().exp()
        alphas, scales = torch.empty_like(factors), factors.new_empty(mask.shape)
        alpha = begin.double().exp() * factors[:, 0]
        for position in range(factors.shape[1]):
            moved = (alpha @ steps) * factors[:, position] if position else alpha
            real = mask[:, position]
            scales[:, position] = torch.where(real, moved.sum(dim=1).clamp(min=TINY), 1.0)
            alpha = torch.where(real[:, None], moved / scales[:, position, None], alpha)
            alphas[:, position] = alpha
        final = (alpha @ last).clamp(min=TINY)
        ctx.save_for_backward(mask, factors, steps, last, alphas, scales, final)
        return (scales.log().sum(dim=1) + final.log()).to(emissions.dtype) + (peaks * mask).sum(dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Marginals of tags for emissions, of pairs for transitions."""
        mask, factors, steps, last, alphas, scales, final = ctx.saved_tensors
        weights = grad.double()[:, None]
        beta = last / final[:, None]  # (B, K)
        marginals, after = torch.empty_like(factors), torch.zeros_like(factors)
        for position in range(factors.shape[1] - 1, -1, -1):
            marginals[:, position] = alphas[:, position] * beta
            if position:
                after[:, position] = factors[:, position] * beta / scales[:, position, None]
                beta = torch.where(mask[:, position, None], after[:, position] @ steps.T, beta)
        marginals *= (mask * weights)[..., None]
        before = alphas[:, :-1] * (mask[:, 1:] * weights)[..., None]
        pairs = before.flatten(0, 1).T @ after[:, 1:].flatten(0, 1) * steps
        ends = (alphas[:, -1] * weights / final[:, None]).sum(dim=0) * last
        gradients = (marginals, pairs, marginals[:, 0].sum(dim=0), ends)
        emissions, *scores = (values.to(grad.dtype) for values in gradients)
        return emissions, None, *scores


def find_best_paths(
    emissions: Tensor, lengths: Tensor, transitions: Tensor, begin: Tensor, end: Tensor
) -> list[list[int]]:
    """The sequence of the highest score of each sentence (Viterbi).

    Args:
        emissions: Scores of the tags of each token (B, T, K).
        lengths: Of the sentences (B,).
        transitions: Scores of a tag (column) after another (row) (K, K).
        begin: Scores of the first tag (K,).
        end: Scores of the last tag (K,).

    """
    score = begin + emissions[:, 0]  # (B, K)
    mask = _mask(emissions, lengths)
    pointers = []
    for position in range(1, emissions.shape[1]):
        values, before = (score[:, :, None] + transitions).max(dim=1)  # (B, K)
        score = torch.where(mask[:, position, None], values + emissions[:, position], score)
        pointers.append(before)
    final = (score + end).argmax(dim=1)
    paths = torch.stack(pointers, dim=1).cpu() if pointers else None  # (B, T - 1, K)
    best_paths = []
    for number, length in enumerate(lengths.tolist()):
        path = [int(final[number])]
        for position in range(length - 2, -1, -1):
            path.append(int(paths[number, position, path[-1]]))  # type: ignore[index]
        best_paths.append(path[::-1])
    return best_paths


def _mask(emissions: Tensor, lengths: Tensor) -> Tensor:
    """Which tokens are real: (B, T)."""
    return torch.arange(emissions.shape[1], device=emissions.device) < lengths[:, None]
