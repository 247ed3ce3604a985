"""The network of classification: tokens, encoder, pooling, dense layers.

    tasks.nn.encoder, tasks.nn.pooling, tasks.nn.dense  ->  tasks.classification.network

B texts, T tokens, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.tasks.classification.example import (
    ClassificationExample,
    ClassificationPrediction,
    MultiLabelPrediction,
)
from polyseme.tasks.classification.settings import ClassificationSettings
from polyseme.tasks.labels import rank_labels
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.nn.pooling import Attention, Biattention, maximum, mean

HALF = 0.5  # the probability above which one of several labels is predicted


class Classifier(nn.Module):
    """Tokens to one vector to K outputs."""

    weights: Tensor  # of the labels in the loss (K,)

    def __init__(
        self, featurizer: Featurizer, settings: ClassificationSettings, labels: Sequence[str], weights: Tensor
    ) -> None:
        super().__init__()
        self.stack = TokenStack(featurizer, settings.encoder)
        self._pool, self._multi = settings.head.pool, settings.data.multi
        self._labels = tuple(labels)
        self._ids = {label: number for number, label in enumerate(labels)}
        size = self.stack.size
        self.attention: Attention | Biattention | None = None
        if self._pool in ("attention", "biattention"):
            self.attention = (Attention if self._pool == "attention" else Biattention)(size)
            size = self.attention.size
        self.dense = Dense(size, settings.head.hidden, len(weights), settings.head.dropout)
        self.register_buffer("weights", weights)

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, batch: Sequence[ClassificationExample]) -> Tensor:
        """A batch to (B, K)."""
        features = self.stack.read([example.text.tokens for example in batch])
        outputs, mask = self.stack(features), features.mask
        if self.attention is not None:
            pooled = self.attention(outputs, mask)
        elif self._pool == "last":
            pooled = self._select_last(outputs, features.lengths)
        else:
            pooled = (mean if self._pool == "mean" else maximum)(outputs, mask)
        return self.dense(pooled)  # type: ignore[no-any-return]

    def _select_last(self, outputs: Tensor, lengths: Tensor) -> Tensor:
        """The last outputs of the encoder, and the mean of ELMo after it."""
        encoder = self.stack.encoder
        assert encoder is not None  # noqa: S101  # the settings make sure
        last = encoder.last(outputs[..., : encoder.size], lengths)
        late = outputs[..., encoder.size :]
        width = torch.arange(outputs.shape[1], device=lengths.device)
        return torch.cat([last, mean(late, width < lengths[:, None])], dim=1)

    def loss(self, batch: Sequence[ClassificationExample]) -> tuple[Tensor, int]:
        """Cross entropy; with several labels per text, that of each label."""
        outputs = self(batch)
        if self._multi:
            targets = torch.zeros_like(outputs)
            for row, example in enumerate(batch):
                for label in example.labels or ():
                    targets[row, self._ids[label]] = 1.0
            return F.binary_cross_entropy_with_logits(outputs, targets, pos_weight=self.weights), len(batch)
        numbers = [self._ids[label] for example in batch for label in example.labels or ()]
        targets = torch.tensor(numbers, device=outputs.device)
        return F.cross_entropy(outputs, targets, self.weights), len(batch)

    def decode(
        self, batch: Sequence[ClassificationExample]
    ) -> list[ClassificationPrediction | MultiLabelPrediction]:
        """The most probable label of each text, or all labels that are more probable than not."""
        outputs = self(batch)
        predictions: list[ClassificationPrediction | MultiLabelPrediction] = []
        for example, row in zip(
            batch, (outputs.sigmoid() if self._multi else outputs.softmax(dim=1)).cpu(), strict=True
        ):
            probabilities = rank_labels(self._labels, row)
            tokens = example.text.tokens
            if self._multi:
                labels = tuple(label for label in self._labels if probabilities[label] > HALF)
                predictions.append(MultiLabelPrediction(tokens, labels, probabilities))
            else:
                best = next(iter(probabilities))
                predictions.append(ClassificationPrediction(tokens, best, probabilities[best], probabilities))
        return predictions
