"""Outputs of one direction to the probability of the next word: full, sampled or adaptive.

    model.bilm, model.fast.paired (one half of the top layer)  ->  model.softmax  ->  language, training

N places, D one direction, V words of the vocabulary, S sampled words. Both directions share one softmax.
Words are numbered from 0 by falling frequency (sampler and clusters rely on that).
What must not change: calling a softmax and `pick` are exact; `sampled_loss` alone is an estimate, and its
value is no perplexity.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BLOCK_VALUES = 1 << 24  # scores held at once when probabilities are picked


class Softmax(nn.Module):
    """A row and a bias for each word; the rows may be those of a word table, which is then `tied`."""

    def __init__(self, n_words: int, size: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.weight = None if tied else nn.Parameter(torch.zeros(n_words, size))
        self.bias = nn.Parameter(torch.zeros(n_words))
        self._table = [tied]  # in a list, so that the table stays a part of its encoder alone

    def rows(self) -> Tensor:
        """A row for each word, its own or the table's: (V, D)."""
        table = self._table[0]
        return table.weight[1:] if table is not None else self.weight  # type: ignore[return-value]

    def select_rows(self, words: Tensor) -> Tensor:
        """The rows of `words` (U,) alone: (U, D). Their gradient goes straight to the whole of the table."""
        table = self._table[0]
        if table is not None:
            return F.embedding(words + 1, table.weight)
        return F.embedding(words, self.weight)  # type: ignore[arg-type]

    @property
    def n_words(self) -> int:
        """V: how many words can be predicted."""
        return len(self.bias)

    def forward(self, outputs: Tensor) -> Tensor:
        """(N, D) -> log probabilities (N, V)."""
        return torch.log_softmax(torch.addmm(self.bias, outputs, self.rows().t()), dim=1)

    def target_log_probs(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Log probability (N,) of the words `targets` (N,), a block of places at a time."""
        blocks = _blocks(outputs, targets, self.n_words)
        return torch.cat([self(block).gather(1, words[:, None])[:, 0] for block, words in blocks])

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log likelihood of `targets` (N,)."""
        return F.cross_entropy(torch.addmm(self.bias, outputs, self.rows().t()), targets)

    def sampled_loss(self, outputs: Tensor, targets: Tensor, sample: SampledWords) -> Tensor:
        """An estimate of `loss` from the target and the `sample` alone; too low, so no perplexity.

        Scores are corrected by the log of how often a word is expected in a sample; a sampled word that is
        the target itself is left out.
        """
        words, places = torch.unique(torch.cat([sample.words, targets]), return_inverse=True)
        rivals, rights = places[: len(sample.words)], places[len(sample.words) :]
        rows = self.select_rows(words)  # (U, D): gathered once, so that one gradient goes back
        bias = self.bias[words] - log_expected_count(words, self.n_words, sample.draws)
        scores = torch.addmm(bias[rivals], outputs, rows[rivals].t())  # (N, S)
        numbers = torch.arange(len(rivals), device=rivals.device)
        column = targets.new_full((len(words),), -1).index_put((rivals,), numbers)[rights]
        hit = (column >= 0).nonzero().flatten()
        scores.index_put_((hit, column[hit]), scores.new_tensor(float("-inf")))
        right = (outputs * F.embedding(rights, rows)).sum(dim=1) + bias[rights]
        return (torch.logaddexp(right, scores.logsumexp(dim=1)) - right).mean()


class AdaptiveSoftmax(nn.Module):
    """Frequent words in a head of full size, rare ones in clusters of smaller size (Grave et al. 2017)."""

    def __init__(self, n_words: int, size: int, cutoffs: list[int]) -> None:
        super().__init__()
        self.n_words = n_words
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(size, n_words, cutoffs, div_value=4.0, head_bias=True)

    def forward(self, outputs: Tensor) -> Tensor:
        """(N, D) -> log probabilities (N, V)."""
        return self.clusters.log_prob(outputs)

    def target_log_probs(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Log probability (N,) of the words `targets` (N,), a block of places at a time."""
        blocks = _blocks(outputs, targets, self.n_words)
        return torch.cat([self.clusters(block, words).output for block, words in blocks])

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log likelihood of `targets` (N,)."""
        return self.clusters(outputs, targets).loss  # type: ignore[no-any-return]


AnySoftmax = Softmax | AdaptiveSoftmax


def _blocks(outputs: Tensor, targets: Tensor, n_words: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Places (N, D) and their words (N,) in parts, so few at a time that their scores are BLOCK_VALUES."""
    rows = max(1, BLOCK_VALUES // n_words)
    return zip(outputs.split(rows), targets.split(rows), strict=True)


def default_cutoffs(n_words: int) -> list[int]:
    """Where the clusters of an adaptive softmax begin, for a vocabulary of `n_words` (at least 4)."""
    return sorted({max(1, n_words // 10), max(2, n_words // 3)})


class SampledWords(NamedTuple):
    """Words drawn for a sampled softmax, none twice, and how many draws it took."""

    words: Tensor  # (S,)
    draws: int


def draw_sample(n_words: int, count: int, generator: torch.Generator) -> SampledWords:
    """Draw `count` distinct words; P(k) = (ln(k + 2) - ln(k + 1)) / ln(V + 1), frequent ones first."""
    count = min(count, n_words)
    drawn = torch.empty(0, dtype=torch.long)
    while True:
        fresh = torch.rand(max(2 * count, 64), generator=generator, dtype=torch.double)
        ranks = torch.exp(fresh * log(n_words + 1)).sub_(1).long().clamp_(0, n_words - 1)
        drawn = torch.cat([drawn, ranks])
        words, places = drawn.unique(return_inverse=True)
        if len(words) >= count:
            break
    first = torch.full((len(words),), len(drawn)).scatter_reduce_(
        0, places, torch.arange(len(drawn)), reduce="amin"
    )
    kept = first.argsort()[:count]
    return SampledWords(words[kept], int(first[kept[-1]]) + 1)


def log_expected_count(words: Tensor, n_words: int, tries: int) -> Tensor:
    """Log of how often each of `words` is expected among the distinct words of `tries` draws."""
    ranks = words.cpu().double()  # not every device has doubles
    chance = torch.log1p(1 / (ranks + 1)) / log(n_words + 1)
    return torch.log(-torch.expm1(tries * torch.log1p(-chance))).float().to(words.device)
