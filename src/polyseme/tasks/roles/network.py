"""The network of roles: tokens with the predicate marked, alternating LSTMs, a tag for each token.

    tasks.nn.alternating, tasks.nn.encoder, tasks.nn.crf  ->  tasks.roles.network

A sentence is read once; its frames are then rows of their own, which differ in the marked predicate. A
second, small biLSTM finds the predicates where they are not given.
B sentences, F frames, T tokens, K tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.tokens import make_embedding
from polyseme.tasks.data.tag_schemes import Span, read_spans, split_tag, write_spans
from polyseme.tasks.nn.alternating import AlternatingEncoder
from polyseme.tasks.nn.crf import FORBIDDEN, find_best_paths
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import Encoder
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures, pad_rows
from polyseme.tasks.roles.example import (
    PREDICATE,
    Frame,
    PredictedFrame,
    RolesExample,
    RoleSpan,
    RolesPrediction,
    bracket_spans,
)
from polyseme.tasks.roles.settings import RolesSettings

IGNORED = -100  # the target of padding, for the cross entropy
DECODED_FRAMES = 128  # at once, which bounds the memory of long lists of predicates


class SentenceVectors(NamedTuple):
    """The tokens of a batch: the encoder's input (B, T, D), what joins its output (B, T, H), the lengths."""

    inputs: Tensor
    late: Tensor | None
    lengths: Tensor


class RolesNetwork(nn.Module):
    """Roles of marked predicates, and predicates."""

    allowed: Tensor  # scores of a tag after another: 0, or FORBIDDEN (K, K)
    allowed_begin: Tensor  # of the first tag (K,)

    def __init__(self, featurizer: Featurizer, settings: RolesSettings, labels: Sequence[str]) -> None:
        super().__init__()
        head, encoder = settings.head, settings.encoder
        self.featurizer = featurizer
        self.mark = make_embedding(2, head.mark)
        self.encoder = AlternatingEncoder(
            featurizer.size + head.mark,
            encoder.size,
            encoder.layers,
            encoder.dropout,
            encoder.recurrent_dropout,
        )
        self.dense = Dense(encoder.size + featurizer.late_size, head.hidden, len(labels), head.dropout)
        self.finder = Encoder(featurizer.size, head.predicate_size, 1, 2, encoder.dropout, 0.0)
        self.found = Dense(self.finder.size + featurizer.late_size, 0, 1, head.dropout)
        self._labels, self._threshold = tuple(labels), head.threshold
        self._ids = {label: number for number, label in enumerate(labels)}
        allowed, begin = _make_bio_scores(labels)
        self.register_buffer("allowed", allowed, persistent=False)
        self.register_buffer("allowed_begin", begin, persistent=False)

    def read(self, batch: Sequence[RolesExample]) -> SentenceVectors:
        """The vectors of the sentences of a batch."""
        features: TokenFeatures = self.featurizer.read([example.text.tokens for example in batch])
        inputs, late = self.featurizer(features)
        return SentenceVectors(inputs, late, features.lengths)

    def find_predicates(self, sentences: SentenceVectors) -> Tensor:
        """The logit of each token being a predicate (B, T)."""
        outputs = _join(self.finder(sentences.inputs, sentences.lengths), sentences.late)
        return self.found(outputs)[..., 0]  # type: ignore[no-any-return]

    def tag(self, sentences: SentenceVectors, rows: Tensor, predicates: Tensor) -> Tensor:
        """The outputs of frames (F, T, K): `rows` are their sentences, `predicates` their positions (F,)."""
        inputs, lengths = sentences.inputs[rows], sentences.lengths[rows]
        positions = torch.arange(inputs.shape[1], device=inputs.device)
        marks = self.mark((positions == predicates[:, None]).long())  # (F, T, M)
        outputs = self.encoder(torch.cat([inputs, marks], dim=2), lengths)
        late = None if sentences.late is None else sentences.late[rows]
        return self.dense(_join(outputs, late))  # type: ignore[no-any-return]

    def loss(self, batch: Sequence[RolesExample]) -> tuple[Tensor, int]:
        """Cross entropy of the tags per token of a frame, and of the predicates per token of a sentence."""
        sentences = self.read(batch)
        device, width = sentences.inputs.device, sentences.inputs.shape[1]
        frames = [(row, frame) for row, example in enumerate(batch) for frame in example.frames or ()]
        targets = torch.zeros(len(batch), width, device=device)
        real = torch.arange(width, device=device) < sentences.lengths[:, None]  # (B, T)
        loss = targets.new_zeros(())
        if frames:
            rows = torch.tensor([row for row, _ in frames], device=device)
            predicates = torch.tensor([frame.predicate for _, frame in frames], device=device)
            targets[rows, predicates] = 1.0
            numbers = [self._tag_ids(frame, len(batch[row].text.tokens)) for row, frame in frames]
            outputs = self.tag(sentences, rows, predicates)
            tags = pad_rows(numbers, width, IGNORED).to(device)
            loss = F.cross_entropy(outputs.flatten(0, 1), tags.flatten(), ignore_index=IGNORED)
        logits = self.find_predicates(sentences)
        return loss + F.binary_cross_entropy_with_logits(logits[real], targets[real]), len(batch)

    def _tag_ids(self, frame: Frame, length: int) -> list[int]:
        return [self._ids[tag] for tag in write_spans(frame.spans, length, "iob2")]

    def decode(self, batch: Sequence[RolesExample]) -> list[RolesPrediction]:
        """The frames of each sentence, for the given predicates or for those that are found."""
        sentences = self.read(batch)
        chosen = self._choose_predicates(batch, sentences)
        frames: list[list[PredictedFrame]] = [[] for _ in batch]
        pairs = [
            (row, position, share)
            for row, predicates in enumerate(chosen)
            for position, share in predicates.items()
        ]
        for start in range(0, len(pairs), DECODED_FRAMES):
            part = pairs[start : start + DECODED_FRAMES]
            for (row, position, share), (tags, shares) in zip(
                part, self._decode_frames(sentences, part), strict=True
            ):
                frames[row].append(_make_frame(batch[row], position, share, tags, shares))
        return [
            RolesPrediction(example.text.tokens, tuple(predicates))
            for example, predicates in zip(batch, frames, strict=True)
        ]

    def _choose_predicates(
        self, batch: Sequence[RolesExample], sentences: SentenceVectors
    ) -> list[dict[int, float | None]]:
        """Of each sentence the predicates, with the probability of those that were found."""
        if all(example.predicates is not None for example in batch):
            return [dict.fromkeys(example.predicates or ()) for example in batch]
        probabilities = self.find_predicates(sentences).sigmoid().cpu()
        return [
            dict.fromkeys(example.predicates)
            if example.predicates is not None
            else {
                position: share
                for position, share in enumerate(row[: len(example.text.tokens)].tolist())
                if share >= self._threshold
            }
            for example, row in zip(batch, probabilities, strict=True)
        ]

    def _decode_frames(
        self, sentences: SentenceVectors, frames: Sequence[tuple[int, int, float | None]]
    ) -> Iterator[tuple[list[str], list[float]]]:
        """Yield the tags of each frame that BIO allows, and the probability of each."""
        device = sentences.inputs.device
        rows = torch.tensor([row for row, _, _ in frames], device=device)
        predicates = torch.tensor([position for _, position, _ in frames], device=device)
        scores = self.tag(sentences, rows, predicates).log_softmax(dim=2)  # (F, T, K)
        lengths = sentences.lengths[rows]
        probabilities = scores.exp().cpu()
        begin = self._ids[f"B-{PREDICATE}"]
        scores[..., begin] += FORBIDDEN  # the predicate begins at its position, and nowhere else
        scores[torch.arange(len(rows), device=device), predicates, begin] -= 2 * FORBIDDEN
        none = scores.new_zeros(scores.shape[2])
        paths = find_best_paths(scores, lengths, self.allowed, self.allowed_begin, none)
        for path, row in zip(paths, probabilities, strict=True):
            shares = [float(row[position, number]) for position, number in enumerate(path)]
            yield [self._labels[number] for number in path], shares


def _join(x: Tensor, late: Tensor | None) -> Tensor:
    return x if late is None else torch.cat([x, late], dim=2)


def _make_bio_scores(labels: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Scores of transitions (K, K) and of the first tag (K,): I-X follows only B-X and I-X."""
    parts = [split_tag(label) for label in labels]
    pairs = [[after[0] != "I" or before[1] == after[1] for after in parts] for before in parts]
    begin = [letter != "I" for letter, _ in parts]
    return (~torch.tensor(pairs)) * FORBIDDEN, (~torch.tensor(begin)) * FORBIDDEN


def _make_frame(
    example: RolesExample, predicate: int, share: float | None, tags: list[str], shares: list[float]
) -> PredictedFrame:
    """The frame that tags spell."""
    text = example.text
    spans: list[Span] = read_spans(tags)
    roles = tuple(
        RoleSpan(
            label,
            start,
            stop,
            text.span_text(start, stop),
            min(shares[start:stop]),
            text.span_offsets(start, stop),
        )
        for label, start, stop in spans
    )
    return PredictedFrame(predicate, share, roles, bracket_spans(text, spans))
