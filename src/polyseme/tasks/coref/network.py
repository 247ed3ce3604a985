"""The network of coreference: span ranking, end to end (Lee et al. 2017 and 2018).

    tasks.nn.encoder, tasks.coref.spans  ->  tasks.coref.network

All spans of a sentence up to a width are candidates. A mention score keeps the best of them; a coarse,
bilinear score keeps the best antecedents of each; a fine score ranks these, and "none" with a score of 0.
Sentences are encoded in chunks, and antecedents come from a window of mentions, which bounds the memory for a
whole novel. Beyond the window, the last mention with the same words stays a candidate.

N tokens of a document, S candidate spans, W tokens of the widest one, M kept mentions, A antecedents,
E values of a token.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.dropout import Dropout
from polyseme.model.tokens import make_embedding
from polyseme.tasks.coref.example import (
    CorefDocument,
    CorefPrediction,
    PredictedCluster,
    PredictedMention,
    name_cluster,
)
from polyseme.tasks.coref.scores import Mention
from polyseme.tasks.coref.settings import CorefSettings
from polyseme.tasks.coref.spans import keep_spans, list_spans
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.nn.pooling import LOW

CHUNK_TOKENS = 4096  # with padding, encoded at once
CHUNK_STARTS = 4096  # tokens whose spans are scored at once
LEAST_ATTENTION = -60.0  # before the exponential, so that no sum is zero
BLOCK = 512  # mentions whose antecedents are ranked at once
DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)  # mentions between a mention and its antecedent
UNKNOWN_SPEAKER = -1


class Mentions(NamedTuple):
    """The kept mentions of a document, in its order."""

    starts: Tensor  # (M,)
    stops: Tensor  # (M,)
    vectors: Tensor  # (M, size)
    scores: Tensor  # (M,)
    words: Tensor  # (M,) the same number for the same words
    speakers: Tensor  # (M,) numbers; UNKNOWN_SPEAKER


class ProjectedTokens(NamedTuple):
    """What the tokens of a document add to the vectors of spans."""

    first: Tensor  # (N, size)
    last: Tensor  # (N, size)
    head: Tensor  # (N, size)
    widths: Tensor  # (W, size) of each width
    attention: Tensor  # (N,)


class RankedBlock(NamedTuple):
    """Some mentions and their antecedents."""

    first: int  # number of the first mention of the block
    antecedents: Tensor  # (B, A) numbers of mentions
    real: Tensor  # (B, A) whether it is one
    scores: Tensor  # (B, 1 + A), that of "none" first


class CorefNetwork(nn.Module):
    """Mentions and their antecedents."""

    def __init__(self, featurizer: Featurizer, settings: CorefSettings) -> None:
        super().__init__()
        head = settings.head
        self.stack = TokenStack(featurizer, settings.encoder)
        size = self.stack.size
        self.dropout = Dropout(head.dropout)
        self.attention = nn.Linear(size, 1)  # which token is the head of a span
        self.widths = make_embedding(head.max_width, head.features)
        self.span = nn.Linear(3 * size + head.features, head.size)
        self.mention = Dense(head.size, head.hidden, 1, head.dropout)
        self.coarse = nn.Linear(head.size, head.size, bias=False)
        self.distances = make_embedding(len(DISTANCES) + 1, head.features)
        self.same = make_embedding(6, head.features)  # same words (2) x speaker unknown, same, another (3)
        self.pair = Dense(3 * head.size + 2 * head.features, head.hidden, 1, head.dropout)
        self._head, self._singletons = head, settings.data.singletons
        self._max_tokens = settings.train.max_tokens

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def encode(self, document: CorefDocument) -> Tensor:
        """The tokens of a document (N, E)."""
        parts = []
        for chunk in _chunk_sentences(document):
            features = self.stack.read(chunk)
            parts.append(self.stack(features)[features.mask])
        return torch.cat(parts)

    def find_mentions(self, document: CorefDocument) -> tuple[Mentions, Tensor, Tensor]:
        """The kept mentions, and the start and stop (S, 2) and the score (S,) of all candidates."""
        tokens = self.encode(document)
        spans = list_spans(document.starts, self._head.max_width).to(tokens.device)  # (S, 2)
        begins = range(0, max(1, len(tokens)), CHUNK_STARTS)
        bounds = torch.searchsorted(spans[:, 0].contiguous(), torch.tensor([*begins, len(tokens)]).to(spans))
        chunks = [spans[start:stop] for start, stop in pairwise(bounds.tolist())]
        projected = self._project(tokens)
        vectors = self._represent(projected, chunks[0])
        # The vectors of all spans of a novel would be gigabytes: those of the kept ones are computed again.
        rest = (self._represent(projected, chunk) for chunk in chunks[1:])
        scores = torch.cat([self.mention(part)[:, 0] for part in chain([vectors], rest)])
        count = max(1, round(self._head.spans_per_token * len(tokens)))
        kept = torch.from_numpy(keep_spans(spans.cpu().numpy(), scores.detach().cpu().numpy(), count))
        kept = kept.to(tokens.device)
        starts, stops = spans[kept].unbind(dim=1)
        if len(chunks) == 1:
            vectors = vectors[kept]
        else:
            parts = torch.searchsorted(kept, bounds).tolist()
            vectors = torch.cat(
                [
                    self._represent(projected, chunk)[kept[first:last] - start]
                    for chunk, start, (first, last) in zip(
                        chunks, bounds.tolist(), pairwise(parts), strict=False
                    )
                ]
            )
        words, speakers = _describe(document, starts.tolist(), stops.tolist())
        mentions = Mentions(
            starts, stops, vectors, scores[kept], words.to(starts.device), speakers.to(starts.device)
        )
        return mentions, spans, scores

    def _project(self, tokens: Tensor) -> ProjectedTokens:
        """What each token (N, E) adds to the vector of a span as its first, its last and its head token.

        A product for each token is a dozen times cheaper than one for each span.
        """
        size, weight = tokens.shape[1], self.span.weight
        dropped = self.dropout(tokens)
        first, last, head = (F.linear(dropped, part) for part in weight[:, : 3 * size].split(size, dim=1))
        widths = self.dropout(self.widths(torch.arange(self._head.max_width, device=tokens.device)))
        of_widths = F.linear(widths, weight[:, 3 * size :], self.span.bias)
        return ProjectedTokens(first, last, head, of_widths, self.attention(tokens)[:, 0])

    def _represent(self, tokens: ProjectedTokens, spans: Tensor) -> Tensor:
        """The vectors of successive spans (S, size): first and last token, attended head, width."""
        if not len(spans):
            return tokens.first[:0]
        width, begin = self._head.max_width, int(spans[0, 0])
        stop = int(spans[-1, 0]) + 1
        chosen = slice(begin, stop + width - 1)
        missing = stop + width - 1 - min(stop + width - 1, len(tokens.first))

        def slide(values: Tensor, filler: float = 0.0) -> Tensor:
            """Values (N, …) -> of each token, those of the tokens from it on (…, width)."""
            padding = values.new_full((missing, *values.shape[1:]), filler)
            return torch.cat([values[chosen], padding]).unfold(0, width, 1)

        attention = slide(tokens.attention, LOW)  # (n, W)
        attention = (attention - attention.amax(dim=1, keepdim=True)).clamp(min=LEAST_ATTENTION).exp()
        heads = (slide(tokens.head) * attention[:, None]).cumsum(dim=2) / attention.cumsum(dim=1)[:, None]
        summed = tokens.first[begin:stop, :, None] + slide(tokens.last) + heads + tokens.widths.T
        rows, columns = spans[:, 0] - begin, spans[:, 1] - spans[:, 0] - 1
        return torch.relu(summed.transpose(1, 2)[rows, columns])

    def rank(self, mentions: Mentions) -> Iterator[RankedBlock]:
        """Score the antecedents of all mentions, block by block."""
        projected = self.coarse(mentions.vectors)  # (M, size)
        previous = _find_last_same_words(mentions.words)
        for first in range(0, len(mentions.starts), BLOCK):
            numbers = torch.arange(first, min(first + BLOCK, len(mentions.starts)), device=projected.device)
            begin = max(0, first - self._head.window)
            candidates = torch.arange(begin, int(numbers[-1]) + 1, device=projected.device)
            coarse = projected[numbers] @ mentions.vectors[candidates].T
            coarse = coarse + mentions.scores[numbers, None] + mentions.scores[candidates]
            before = (candidates < numbers[:, None]) & (candidates >= numbers[:, None] - self._head.window)
            coarse = coarse.masked_fill(~before, LOW)
            best = coarse.topk(min(self._head.antecedents, len(candidates)), dim=1).indices
            antecedents, real = candidates[best], before.gather(1, best)
            far = previous[numbers].to(projected.device)  # beyond the window
            use_far = (far >= 0) & (far < numbers - self._head.window)
            if use_far.any():
                antecedents = torch.cat([antecedents, far.clamp(min=0)[:, None]], dim=1)
                real = torch.cat([real, use_far[:, None]], dim=1)
            scores = self._score_pairs(mentions, projected, numbers, antecedents)
            none = scores.new_zeros(len(numbers), 1)
            yield RankedBlock(
                first, antecedents, real, torch.cat([none, scores.masked_fill(~real, LOW)], dim=1)
            )

    def _score_pairs(
        self, mentions: Mentions, projected: Tensor, numbers: Tensor, antecedents: Tensor
    ) -> Tensor:
        """The coarse and the fine score of pairs (B, A)."""
        vectors, others = mentions.vectors[numbers][:, None], mentions.vectors[antecedents]  # (B, A, size)
        distance = torch.bucketize(
            numbers[:, None] - antecedents, torch.tensor(DISTANCES, device=numbers.device), right=True
        )
        same_words = mentions.words[numbers][:, None] == mentions.words[antecedents]
        speakers, other_speakers = mentions.speakers[numbers][:, None], mentions.speakers[antecedents]
        known = (speakers != UNKNOWN_SPEAKER) & (other_speakers != UNKNOWN_SPEAKER)
        speaker = torch.where(known, 1 + (speakers != other_speakers).long(), 0)
        features = torch.cat([self.distances(distance), self.same(3 * same_words.long() + speaker)], dim=2)
        pairs = torch.cat([vectors.expand_as(others), others, vectors * others, features], dim=2)
        coarse = (projected[numbers][:, None] * others).sum(dim=2)
        scores = mentions.scores[numbers][:, None] + mentions.scores[antecedents]
        return scores + coarse + self.pair(pairs)[..., 0]  # type: ignore[no-any-return]

    def loss(self, batch: Sequence[CorefDocument]) -> tuple[Tensor, int]:
        """Of antecedents, the marginal log likelihood per mention; with singletons, of mentions, too."""
        losses = [self._compute_loss(draw_part(document, self._max_tokens)) for document in batch]
        return torch.stack(losses).mean(), len(batch)

    def _compute_loss(self, document: CorefDocument) -> Tensor:
        mentions, spans, scores = self.find_mentions(document)
        owners = {
            mention: number for number, cluster in enumerate(document.clusters or ()) for mention in cluster
        }
        pairs = zip(mentions.starts.tolist(), mentions.stops.tolist(), strict=True)
        clusters = torch.tensor([owners.get(pair, -1) for pair in pairs], device=spans.device)  # (M,)
        total = scores.new_zeros(())
        for block in self.rank(mentions):
            wanted = clusters[block.first : block.first + len(block.scores)]
            is_antecedent = (
                block.real & (clusters[block.antecedents] == wanted[:, None]) & (wanted[:, None] >= 0)
            )
            is_antecedent = torch.cat(
                [~is_antecedent.any(dim=1, keepdim=True), is_antecedent], dim=1
            )  # none, if there is no other
            log_probabilities = block.scores.log_softmax(dim=1)
            total = total - log_probabilities.masked_fill(~is_antecedent, LOW).logsumexp(dim=1).sum()
        loss = total / len(mentions.starts)
        if self._singletons:
            size = document.starts[-1] + 1
            wanted = torch.tensor([start * size + stop for start, stop in owners], dtype=torch.long)
            targets = torch.isin(spans[:, 0] * size + spans[:, 1], wanted.to(spans.device)).float()
            mention_loss = F.binary_cross_entropy_with_logits(scores, targets, reduction="sum")
            loss = loss + mention_loss / targets.sum().clamp(min=1)
        return loss

    def decode(self, batch: Sequence[CorefDocument]) -> list[CorefPrediction]:
        """The clusters of each document."""
        return [self._decode(document) for document in batch]

    def _decode(self, document: CorefDocument) -> CorefPrediction:
        mentions, _, _ = self.find_mentions(document)
        cluster_of: dict[int, int] = {}
        clusters: list[list[int]] = []
        probabilities: dict[int, float] = {}
        for block in self.rank(mentions):
            antecedents = block.antecedents.tolist()
            likeliest = block.scores.softmax(dim=1).max(dim=1)
            for offset, (best, probability) in enumerate(
                zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
            ):
                number = block.first + offset
                if best:  # 0: none of them
                    antecedent = antecedents[offset][best - 1]
                    if antecedent not in cluster_of:
                        cluster_of[antecedent] = len(clusters)
                        clusters.append([antecedent])
                    cluster_of[number] = cluster_of[antecedent]
                    clusters[cluster_of[number]].append(number)
                    probabilities[number] = probability
        if self._singletons:
            alone = (mentions.scores > 0).tolist()
            clusters += [[n] for n in range(len(mentions.starts)) if alone[n] and n not in cluster_of]
        spans = list(zip(mentions.starts.tolist(), mentions.stops.tolist(), strict=True))
        made = [
            _make_cluster(document, sorted((spans[n], probabilities.get(n)) for n in cluster))
            for cluster in clusters
        ]
        made.sort(key=lambda cluster: (-len(cluster.mentions), cluster.mentions[0].start))
        return CorefPrediction(document.name, document.texts, tuple(made))


def draw_part(document: CorefDocument, max_tokens: int) -> CorefDocument:
    """The document, or of a longer one a random run of sentences, with what of its clusters is inside."""
    if document.starts[-1] <= max_tokens:
        return document
    first = int(torch.randint(len(document.texts), ()))
    last = max(first + 1, bisect_right(document.starts, document.starts[first] + max_tokens) - 1)
    while first and document.starts[last] - document.starts[first - 1] <= max_tokens:
        first -= 1  # near the end, a whole part all the same
    begin, end = document.starts[first], document.starts[last]
    clusters = (
        tuple((start - begin, stop - begin) for start, stop in cluster if begin <= start and stop <= end)
        for cluster in document.clusters or ()
    )
    return CorefDocument(
        document.location,
        document.name,
        document.texts[first:last],
        tuple(cluster for cluster in clusters if cluster),
        document.speakers[first:last],
    )


def _chunk_sentences(document: CorefDocument) -> Iterator[list[tuple[str, ...]]]:
    """Yield sentences in order, as many as fit CHUNK_TOKENS with padding."""
    chunk: list[tuple[str, ...]] = []
    longest = 0
    for sentence in document.sentences:
        if chunk and max(longest, len(sentence)) * (len(chunk) + 1) > CHUNK_TOKENS:
            yield chunk
            chunk, longest = [], 0
        chunk.append(sentence)
        longest = max(longest, len(sentence))
    yield chunk


def _describe(document: CorefDocument, starts: list[int], stops: list[int]) -> tuple[Tensor, Tensor]:
    """Numbers for the words (M,) and the speakers (M,) of mentions."""
    tokens = [token.lower() for text in document.texts for token in text.tokens]
    words: dict[tuple[str, ...], int] = {}
    numbers = [
        words.setdefault(tuple(tokens[start:stop]), len(words))
        for start, stop in zip(starts, stops, strict=True)
    ]
    names: dict[str, int] = {}
    speakers = document.speakers or [None] * len(document.texts)
    by_token = [
        UNKNOWN_SPEAKER if speaker is None else names.setdefault(speaker, len(names))
        for text, speaker in zip(document.texts, speakers, strict=True)
        for _ in text.tokens
    ]
    return torch.tensor(numbers), torch.tensor([by_token[start] for start in starts])


def _find_last_same_words(words: Tensor) -> Tensor:
    """The number of the last mention with the same words (M,); -1 if there is none."""
    latest: dict[int, int] = {}
    previous = []
    for number, word in enumerate(words.tolist()):
        previous.append(latest.get(word, -1))
        latest[word] = number
    return torch.tensor(previous)


def _make_cluster(document: CorefDocument, spans: Sequence[tuple[Mention, float | None]]) -> PredictedCluster:
    mentions = tuple(_make_mention(document, *span, probability) for span, probability in spans)
    return PredictedCluster(name_cluster([mention.text for mention in mentions]), mentions)


def _make_mention(
    document: CorefDocument, start: int, stop: int, probability: float | None
) -> PredictedMention:
    sentence = document.find_sentence(start)
    text, first = document.texts[sentence], document.starts[sentence]
    local = (start - first, stop - first)
    return PredictedMention(start, stop, text.span_text(*local), text.span_offsets(*local), probability)
