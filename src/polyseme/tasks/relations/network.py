"""The network of relations: tokens with their distances to both entities, encoder, pooling.

    tasks.nn.encoder, tasks.nn.pooling  ->  tasks.relations.network

B sentences, T tokens, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.tokens import make_embedding
from polyseme.tasks.labels import rank_labels
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.nn.pooling import Attention, maximum
from polyseme.tasks.relations.example import RelationExample, RelationPrediction
from polyseme.tasks.relations.settings import RelationsSettings

MAX_DISTANCE = 30  # tokens; larger distances share an embedding


class RelationNetwork(nn.Module):
    """Tokens, positions, encoder; both entities and the sentence pooled; K outputs."""

    weights: Tensor  # of the labels in the loss (K,)

    def __init__(
        self, featurizer: Featurizer, settings: RelationsSettings, labels: Sequence[str], weights: Tensor
    ) -> None:
        super().__init__()
        self._labels = tuple(labels)
        self._ids = {label: number for number, label in enumerate(labels)}
        size = settings.head.positions
        self.positions = nn.ModuleList(
            make_embedding(2 * MAX_DISTANCE + 2, size) for _ in range(2 if size else 0)
        )
        self.stack = TokenStack(featurizer, settings.encoder, 2 * size)
        self.attention = Attention(self.stack.size)
        self.dense = Dense(3 * self.stack.size, settings.head.hidden, len(weights), settings.head.dropout)
        self.register_buffer("weights", weights)

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, batch: Sequence[RelationExample]) -> Tensor:
        """A batch to (B, K)."""
        features = self.stack.read([example.text.tokens for example in batch])
        mask = features.mask
        times = torch.arange(mask.shape[1], device=mask.device)[None]  # (1, T)
        inside, distances = [], []
        for number in range(2):
            spans = torch.tensor([(e.entities[number].start, e.entities[number].stop) for e in batch])
            start, stop = spans.to(mask.device)[:, :, None].unbind(dim=1)  # (B, 1)
            inside.append((times >= start) & (times < stop) & mask)
            away = torch.where(times < start, times - start, (times - stop + 1).clamp(min=0))
            distances.append(away.clamp(-MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE + 1)
        extra = [table(away) for table, away in zip(self.positions, distances, strict=False)]
        outputs = self.stack(features, torch.cat(extra, dim=2) if extra else None)
        pooled = [*(maximum(outputs, entity) for entity in inside), self.attention(outputs, mask)]
        return self.dense(torch.cat(pooled, dim=1))  # type: ignore[no-any-return]

    def loss(self, batch: Sequence[RelationExample]) -> tuple[Tensor, int]:
        """Cross entropy."""
        outputs = self(batch)
        targets = torch.tensor([self._ids[str(example.label)] for example in batch], device=outputs.device)
        return F.cross_entropy(outputs, targets, self.weights), len(batch)

    def decode(self, batch: Sequence[RelationExample]) -> list[RelationPrediction]:
        """The most probable relation of each sentence."""
        predictions = []
        for example, row in zip(batch, self(batch).softmax(dim=1).cpu(), strict=True):
            probabilities = rank_labels(self._labels, row)
            best = next(iter(probabilities))
            text = example.text
            first, second = (text.span_text(span.start, span.stop) for span in example.entities)
            offsets = tuple(text.span_offsets(span.start, span.stop) for span in example.entities)
            predictions.append(
                RelationPrediction(
                    text.tokens,
                    (first, second),
                    best,
                    probabilities[best],
                    probabilities,
                    (offsets[0], offsets[1]),
                )
            )
        return predictions
