"""Compute the loss of a biLM on a batch, and its perplexity on held-out text.

    training.batches, model.fast.paired, model.softmax  ->  training.objective  ->  training.bilm_trainable

Each distinct token of a batch is encoded once, for both directions. The loss is the mean over the targets
of both directions; with a sampled softmax it is an estimate. Perplexity always uses the whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyseme.model.bilm import BiLM
from polyseme.model.device import copy_to_device
from polyseme.model.fast.kernels.lookups import take_rows
from polyseme.model.fast.paired import PairDropout, PairState, run_stacks_paired, zero_pair_state
from polyseme.model.softmax import AnySoftmax, SampledWords, Softmax
from polyseme.text.corpus.prepared import Corpus
from polyseme.training.batches import TrainingBatch


@dataclass(frozen=True)
class BatchPerplexity:
    """Perplexity of held-out text; targets are its words and the end mark of each sentence."""

    forward: float
    backward: float
    mean: float  # exp of the mean negative log likelihood over both directions
    targets: int  # predictions per direction


class BilmObjective(nn.Module):
    """A network and its softmax over the types of a corpus."""

    def __init__(self, network: BiLM, softmax: AnySoftmax, corpus: Corpus, dropout: PairDropout) -> None:
        super().__init__()
        self.network, self.softmax = network, softmax
        self.dropout = dropout
        self._corpus = corpus

    def forward(
        self, batch: TrainingBatch, state: PairState | None, sample: SampledWords | None
    ) -> tuple[Tensor, PairState]:
        """Compute the loss of a batch and the state after it.

        Args:
            batch: What to read and to predict.
            state: The carried state; None: zero.
            sample: Words for a sampled softmax; None: the full softmax.

        """
        outputs, targets, after = self._read(batch, state, self.dropout if self.training else PairDropout())
        if len(targets) == 0:  # this process has no targets of the batch: its gradients are zero
            return sum((weight.sum() * 0.0 for weight in self.parameters()), outputs.new_zeros(())), after
        if sample is not None and isinstance(self.softmax, Softmax):
            mean = self.softmax.sampled_loss(outputs, targets, sample)
        else:
            mean = self.softmax.loss(outputs, targets)
        return mean * (len(targets) / batch.weight), after

    def _read(
        self, batch: TrainingBatch, state: PairState | None, dropout: PairDropout
    ) -> tuple[Tensor, Tensor, PairState]:
        """Top outputs (M, D) of both directions, and the words to predict (M,)."""
        types, positions = np.unique(batch.inputs, return_inverse=True)
        vectors = encode_types(self.network, self._corpus, types)
        device = vectors.device
        numbers = copy_to_device(torch.from_numpy(positions.reshape(batch.inputs.shape)), device)
        x = take_rows(vectors, numbers)  # (2, N, D)
        state = zero_pair_state(self.network, batch.sizes[0]) if state is None else state
        top, after = run_stacks_paired(self.network, x, batch.sizes, state, dropout)
        targets = copy_to_device(torch.from_numpy(self._corpus.targets(batch.targets)), device)
        if batch.keep is None:
            return top.flatten(0, 1), targets.flatten(), after
        keep = copy_to_device(torch.from_numpy(batch.keep), device)
        return top[keep], targets[keep], after

    @torch.no_grad()
    def perplexity(self, batches: Iterable[TrainingBatch], *, carried: bool) -> BatchPerplexity:
        """Compute the perplexity of batches, with `carried` state or from zero state each."""
        was_training = self.training
        self.eval()
        total, count = np.zeros(2), np.zeros(2, dtype=np.int64)
        state: PairState | None = None
        for batch in batches:
            outputs, targets, after = self._read(batch, state, PairDropout())
            forward = batch.targets.shape[1] if batch.keep is None else int(batch.keep[0].sum())
            picked = self.softmax.target_log_probs(outputs, targets).cpu().double().numpy()
            total += picked[:forward].sum(), picked[forward:].sum()
            count += forward, len(picked) - forward
            state = after if carried else None
        self.train(was_training)
        forward_loss, backward_loss = (-total / np.maximum(count, 1)).tolist()
        return compute_perplexity(forward_loss, backward_loss, int(count[0]))


def encode_types(network: BiLM, corpus: Corpus, types: NDArray[np.integer[Any]]) -> Tensor:
    """Token vectors (U, D) of types of the corpus, from their characters, their words, or both."""
    chars = words = None
    if network.tokens.chars is not None and corpus.chars is not None:
        chars = copy_to_device(torch.from_numpy(corpus.chars[types].astype(np.int64)), network.device)
    if network.tokens.words is not None:
        words = copy_to_device(torch.from_numpy(corpus.targets(types) + 1), network.device)
    return network.tokens(chars, words)  # type: ignore[no-any-return]


def compute_perplexity(forward: float, backward: float, targets: int) -> BatchPerplexity:
    """Perplexity from the mean negative log likelihood of each direction; infinite if it overflows."""
    losses = (forward, backward, (forward + backward) / 2)
    values = [exp(loss) if loss < 700.0 else inf for loss in losses]
    return BatchPerplexity(values[0], values[1], values[2], targets)
