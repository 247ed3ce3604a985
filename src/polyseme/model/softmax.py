"""Outputs of one direction to the probability of the next word: full, sampled or adaptive.

    model.bilm, model.fast.paired (one half of the top layer)  ->  model.softmax  ->  language, training

N positions, D one direction, V words of the vocabulary, S sampled words, U distinct words. Both directions
share one softmax. Words are numbered from 0 by falling frequency (sampler and clusters rely on that).
What must not change: calling a softmax and `target_log_probs` are exact; only `sampled_loss` is an estimate,
and it is not a perplexity.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.fast.kernels import loss as softmax_in_c
from polyseme.model.fast.kernels.lookups import take_rows

BLOCK_VALUES = 1 << 24  # scores in memory at once in `target_log_probs`


class Softmax(nn.Module):
    """A row and a bias for each word; a `tied` softmax uses the rows of a word table."""

    def __init__(self, n_words: int, size: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.weight = None if tied else nn.Parameter(torch.zeros(n_words, size))
        self.bias = nn.Parameter(torch.zeros(n_words))
        self._table = [tied]  # in a list, so that the table is a submodule of its encoder only

    def rows(self) -> Tensor:
        """The row of each word (V, D), of this softmax or of the tied table."""
        table = self._table[0]
        return table.weight[1:] if table is not None else self.weight  # type: ignore[return-value]

    def select_rows(self, words: Tensor) -> Tensor:
        """The rows (U, D) of `words` (U,); the gradient goes to the table without a copy of it."""
        table = self._table[0]
        if table is not None:
            return take_rows(table.weight, words + 1)
        return take_rows(self.weight, words)  # type: ignore[arg-type]

    @property
    def n_words(self) -> int:
        """V, the number of words."""
        return len(self.bias)

    def forward(self, outputs: Tensor) -> Tensor:
        """(N, D) -> log probabilities (N, V)."""
        return torch.log_softmax(torch.addmm(self.bias, outputs, self.rows().t()), dim=1)

    def target_log_probs(
        self, outputs: Tensor, targets: Tensor, *, block_values: int = BLOCK_VALUES
    ) -> Tensor:
        """Log probability (N,) of the words `targets` (N,), at most `block_values` scores at a time."""
        blocks = _split_blocks(outputs, targets, self.n_words, block_values)
        return torch.cat([self(block).gather(1, words[:, None])[:, 0] for block, words in blocks])

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log likelihood of `targets` (N,)."""
        dtype, rows = choose_product_dtype(outputs), self.rows()
        if softmax_in_c.is_supported(outputs.float(), rows, self.bias, dtype):
            return softmax_in_c.mean_loss(outputs.float(), rows, self.bias, targets, len(rows), dtype)
        return F.cross_entropy(torch.addmm(self.bias, outputs, self.rows().t()), targets)

    def sampled_loss(self, outputs: Tensor, targets: Tensor, sample: SampledWords) -> Tensor:
        """Estimate `loss` from the targets and the `sample` only; it is too low to be a perplexity.

        Scores are corrected by the log of the expected count of a word in a sample; a sampled word that is
        the target itself is left out.
        """
        words, labels = index_labels(sample.words, targets, self.n_words)
        rows = self.select_rows(words)  # (U, D): gathered once, so that there is one gradient
        bias = self.bias[words] - log_expected_count(words, self.n_words, sample.draws)
        dtype = choose_product_dtype(outputs)
        samples = len(sample.words)
        if softmax_in_c.is_supported(outputs.float(), rows, bias, dtype):
            return softmax_in_c.mean_loss(outputs.float(), rows, bias, labels, samples, dtype)
        scores = torch.addmm(bias[:samples], outputs, rows[:samples].t())  # (N, S)
        matches = (labels < samples).nonzero().flatten()
        scores.index_put_((matches, labels[matches]), scores.new_tensor(float("-inf")))
        label_scores = (outputs * F.embedding(labels, rows)).sum(dim=1) + bias[labels]
        return (torch.logaddexp(label_scores, scores.logsumexp(dim=1)) - label_scores).mean()


def index_labels(samples: Tensor, targets: Tensor, n_words: int) -> tuple[Tensor, Tensor]:
    """The distinct words (U,) of `samples` (S,), which come first, and `targets`; labels (N,) among them."""
    numbers = torch.arange(len(samples), device=samples.device)
    position = targets.new_full((n_words,), -1).index_put_((samples,), numbers)  # of each word
    unsampled = torch.unique(targets[position[targets] < 0])
    position[unsampled] = torch.arange(len(samples), len(samples) + len(unsampled), device=samples.device)
    return torch.cat([samples, unsampled]), position[targets]


def choose_product_dtype(like: Tensor) -> torch.dtype:
    """The dtype of the factors of products: that of autocast, or float32."""
    autocast = torch.is_autocast_enabled(like.device.type)
    return torch.get_autocast_dtype(like.device.type) if autocast else torch.float32


class AdaptiveSoftmax(nn.Module):
    """Frequent words in a head of full size, rare ones in clusters of smaller size (Grave et al. 2017)."""

    def __init__(self, n_words: int, size: int, cutoffs: list[int]) -> None:
        super().__init__()
        self.n_words = n_words
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(size, n_words, cutoffs, div_value=4.0, head_bias=True)

    def forward(self, outputs: Tensor) -> Tensor:
        """(N, D) -> log probabilities (N, V)."""
        return self.clusters.log_prob(outputs)

    def target_log_probs(
        self, outputs: Tensor, targets: Tensor, *, block_values: int = BLOCK_VALUES
    ) -> Tensor:
        """Log probability (N,) of the words `targets` (N,), at most `block_values` scores at a time."""
        blocks = _split_blocks(outputs, targets, self.n_words, block_values)
        return torch.cat([self.clusters(block, words).output for block, words in blocks])

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log likelihood of `targets` (N,)."""
        return self.clusters(outputs, targets).loss  # type: ignore[no-any-return]


AnySoftmax = Softmax | AdaptiveSoftmax


def _split_blocks(
    outputs: Tensor, targets: Tensor, n_words: int, block_values: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Split outputs (N, D) and targets (N,) into blocks with at most `block_values` scores."""
    rows = max(1, block_values // n_words)
    return zip(outputs.split(rows), targets.split(rows), strict=True)


def choose_cutoffs(n_words: int) -> list[int]:
    """First words of the clusters of an adaptive softmax, for a vocabulary of `n_words` (at least 4)."""
    return sorted({max(1, n_words // 10), max(2, n_words // 3)})


class SampledWords(NamedTuple):
    """Distinct words drawn for a sampled softmax, and the number of draws it took."""

    words: Tensor  # (S,)
    draws: int


def draw_sample(n_words: int, count: int, generator: torch.Generator) -> SampledWords:
    """Draw `count` distinct words; P(k) = (ln(k + 2) - ln(k + 1)) / ln(V + 1), higher for frequent words."""
    count = min(count, n_words)
    drawn = np.empty(0, np.int64)
    while True:
        fresh = torch.rand(max(2 * count, 64), generator=generator, dtype=torch.double, device="cpu")
        ranks = np.expm1(fresh.numpy() * log(n_words + 1)).astype(np.int64).clip(0, n_words - 1)
        drawn = np.concatenate([drawn, ranks])
        first = np.unique(drawn, return_index=True)[1]  # the draw that brought each word
        if len(first) >= count:
            break
    earliest = np.sort(first)[:count]
    return SampledWords(torch.from_numpy(drawn[earliest]), int(earliest[-1]) + 1)


def log_expected_count(words: Tensor, n_words: int, draws: int) -> Tensor:
    """Log of the expected count of each of `words` among the distinct words of a number of draws."""
    ranks = words.cpu().double()  # some devices have no float64
    chance = torch.log1p(1 / (ranks + 1)) / log(n_words + 1)
    return torch.log(-torch.expm1(draws * torch.log1p(-chance))).float().to(words.device)
