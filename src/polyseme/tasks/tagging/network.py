"""The network of tagging: tokens, encoder, a dense layer, and a CRF over the tags.

    tasks.nn.encoder, tasks.nn.crf  ->  tasks.tagging.network

B sentences, T tokens, K tags.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.tasks.data.tag_schemes import may_follow, read_spans, split_tag, write_spans
from polyseme.tasks.nn.crf import Crf
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, pad_rows
from polyseme.tasks.tagging.example import TaggedSpan, TaggingExample, TaggingPrediction
from polyseme.tasks.tagging.settings import TaggingSettings

IGNORED = -100  # the target of padding, for the cross entropy


class Tagger(nn.Module):
    """Tokens to K outputs each, and a CRF over them if the settings ask for it."""

    weights: Tensor  # of the tags in the loss (K,)

    def __init__(
        self, featurizer: Featurizer, settings: TaggingSettings, labels: Sequence[str], weights: Tensor
    ) -> None:
        super().__init__()
        crf = make_crf(labels, spans=settings.data.scheme != "none") if settings.head.crf else None
        self.stack = TokenStack(featurizer, settings.encoder)
        self.dense = Dense(self.stack.size, settings.head.hidden, len(weights), settings.head.dropout)
        self.crf = crf
        self.register_buffer("weights", weights)
        self._labels, self._scheme = tuple(labels), settings.data.scheme
        self._ids = {label: number for number, label in enumerate(labels)}

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, batch: Sequence[TaggingExample]) -> Tensor:
        """A batch to (B, T, K)."""
        return self.dense(self.stack(self.stack.read([example.text.tokens for example in batch])))  # type: ignore[no-any-return]

    def loss(self, batch: Sequence[TaggingExample]) -> tuple[Tensor, int]:
        """The negative log likelihood of the tags, per token."""
        outputs = self(batch)
        numbers = [[self._ids[tag] for tag in example.tags or ()] for example in batch]
        targets = pad_rows(numbers, outputs.shape[1], IGNORED).to(outputs.device)
        if self.crf is None:
            return F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), self.weights), len(batch)
        lengths = (targets != IGNORED).sum(dim=1)
        losses = self.crf.loss(outputs, targets.clamp(min=0), lengths)
        return losses.sum() / lengths.sum(), len(batch)

    def decode(self, batch: Sequence[TaggingExample]) -> list[TaggingPrediction]:
        """The best sequence of tags of each sentence, and the spans it spells."""
        outputs = self(batch)
        lengths = torch.tensor([len(example.text.tokens) for example in batch], device=outputs.device)
        if self.crf is None:
            probabilities = outputs.softmax(dim=2).cpu()
            paths = [
                row[:length].argmax(dim=1).tolist()
                for row, length in zip(probabilities, lengths, strict=True)
            ]
        else:
            probabilities = self.crf.marginals(outputs, lengths).cpu()
            paths = self.crf.best(outputs, lengths)
        return [
            self._predict(example, path, row)
            for example, path, row in zip(batch, paths, probabilities, strict=True)
        ]

    def _predict(self, example: TaggingExample, path: list[int], probabilities: Tensor) -> TaggingPrediction:
        """The prediction of a sequence of tags; `probabilities` (T, K)."""
        text, tags = example.text, [self._labels[number] for number in path]
        by_token = tuple(float(probabilities[position, number]) for position, number in enumerate(path))
        if self._scheme == "none":
            return TaggingPrediction(text.tokens, tuple(tags), min(by_token), by_token)
        spans = read_spans(tags)
        scheme = example.scheme if example.scheme != "none" else self._scheme
        tagged = tuple(
            TaggedSpan(
                span.label,
                span.start,
                span.stop,
                text.span_text(span.start, span.stop),
                min(by_token[span.start : span.stop]),
                text.span_offsets(span.start, span.stop),
            )
            for span in spans
        )
        written = tuple(write_spans(spans, len(tags), scheme))
        return TaggingPrediction(text.tokens, written, min(by_token), by_token, tagged)


def make_crf(labels: Sequence[str], *, spans: bool) -> Crf:
    """A CRF over tags: any may follow any, or, if they spell spans, those that BIOES allows."""
    if not spans:
        free = torch.ones(len(labels), len(labels), dtype=torch.bool)
        return Crf(free, free[0], free[0])
    parts = [split_tag(label) for label in labels]
    pairs = torch.tensor([[may_follow(*before, *after) for after in parts] for before in parts])
    begins = torch.tensor([may_follow("O", "", *after) for after in parts])
    ends = torch.tensor([may_follow(*before, "O", "") for before in parts])
    return Crf(pairs, begins, ends)
