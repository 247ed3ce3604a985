"""The network of pairs, modelled on ESIM (Chen et al. 2017).

    tasks.nn.encoder  ->  tasks.pairs.network

Both texts are encoded; each token attends to the other text; both views are compared, encoded again, pooled.
B pairs, T tokens, E values, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.dropout import Dropout
from polyseme.tasks.labels import rank_labels
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import Encoder, TokenStack
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.nn.pooling import LOW, maximum, mean
from polyseme.tasks.pairs.example import NumberPrediction, PairExample, PairPrediction
from polyseme.tasks.pairs.settings import PairsSettings


class Matcher(nn.Module):
    """Both texts to K outputs, or to one number if there are no labels."""

    weights: Tensor  # of the labels in the loss (K,)
    scale: Tensor  # of numbers: their mean and deviation in training (2,)

    def __init__(
        self,
        featurizer: Featurizer,
        settings: PairsSettings,
        labels: Sequence[str],
        weights: Tensor,
        scale: Tensor,
    ) -> None:
        super().__init__()
        self._labels = tuple(labels)
        self._ids = {label: number for number, label in enumerate(labels)}
        self.stack = TokenStack(featurizer, settings.encoder)
        size = settings.encoder.size
        self.compare = nn.Linear(4 * self.stack.size, size)
        self.again = Encoder(size, size, 1, 2, settings.encoder.dropout, settings.encoder.recurrent_dropout)
        self.dropout = Dropout(settings.head.dropout)
        self.dense = Dense(4 * self.again.size, settings.head.hidden, len(weights), settings.head.dropout)
        self.register_buffer("weights", weights)
        self.register_buffer("scale", scale)

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, batch: Sequence[PairExample]) -> Tensor:
        """A batch to (B, K)."""
        first = self.stack.read([example.first.tokens for example in batch])
        second = self.stack.read([example.second.tokens for example in batch])
        a, b = self.stack(first), self.stack(second)
        similarity = torch.bmm(a, b.transpose(1, 2))  # (B, T of the first, T of the second)
        attended_by_a = torch.bmm(similarity.masked_fill(~second.mask[:, None], LOW).softmax(dim=2), b)
        transposed = similarity.transpose(1, 2)
        attended_by_b = torch.bmm(transposed.masked_fill(~first.mask[:, None], LOW).softmax(dim=2), a)
        pooled = [
            *self._compose(a, attended_by_a, first.lengths, first.mask),
            *self._compose(b, attended_by_b, second.lengths, second.mask),
        ]
        return self.dense(torch.cat(pooled, dim=1))  # type: ignore[no-any-return]

    def _compose(
        self, encoded: Tensor, attended: Tensor, lengths: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A text beside what it attends to: compared, encoded again; its mean and maximum (B, E)."""
        joined = torch.cat([encoded, attended, encoded - attended, encoded * attended], dim=2)
        read = self.again(self.dropout(torch.relu(self.compare(joined))), lengths)
        return mean(read, mask), maximum(read, mask)

    def loss(self, batch: Sequence[PairExample]) -> tuple[Tensor, int]:
        """Cross entropy; of numbers the squared error in units of their deviation."""
        outputs = self(batch)
        if not self._labels:
            numbers = torch.tensor([example.label for example in batch], device=outputs.device)
            return F.mse_loss(outputs[:, 0], (numbers - self.scale[0]) / self.scale[1]), len(batch)
        targets = torch.tensor([self._ids[str(example.label)] for example in batch], device=outputs.device)
        return F.cross_entropy(outputs, targets, self.weights), len(batch)

    def decode(self, batch: Sequence[PairExample]) -> list[PairPrediction | NumberPrediction]:
        """The most probable label of each pair, or its number."""
        outputs = self(batch)
        predictions: list[PairPrediction | NumberPrediction] = []
        if not self._labels:
            numbers = (outputs[:, 0] * self.scale[1] + self.scale[0]).tolist()
            for example, number in zip(batch, numbers, strict=True):
                predictions.append(NumberPrediction((example.first.tokens, example.second.tokens), number))
            return predictions
        for example, row in zip(batch, outputs.softmax(dim=1).cpu(), strict=True):
            probabilities = rank_labels(self._labels, row)
            best = next(iter(probabilities))
            tokens = (example.first.tokens, example.second.tokens)
            predictions.append(PairPrediction(tokens, best, probabilities[best], probabilities))
        return predictions
