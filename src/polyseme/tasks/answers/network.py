"""The network of question answering: BiDAF with self-attention (Seo et al. 2017, Clark and Gardner 2018).

    tasks.nn.encoder, tasks.nn.attention, tasks.answers.windows  ->  tasks.answers.network

Question and text share the featurizer and the first LSTM, which also reads which words both have. The text
attends to the question, then to itself; two more LSTMs score the start and the stop of the answer beside the
score of "no answer in this window". A long text is read in windows, a few at a time; the window whose best
span exceeds its "no answer" by most has the answer. For that to be comparable, training asks some questions
about other texts of the same article, too.

W windows, T tokens of a window, Q tokens of a question, E values of a token.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from polyseme.model.dropout import Dropout
from polyseme.tasks.answers.example import AnswerPrediction, AnswersExample, BestSpan, make_prediction
from polyseme.tasks.answers.scores import score_answer
from polyseme.tasks.answers.settings import AnswersSettings
from polyseme.tasks.answers.windows import SHARED_FEATURES, Window, describe_shared, split_windows
from polyseme.tasks.examples import Tokens
from polyseme.tasks.nn.attention import CrossAttention, SelfAttention
from polyseme.tasks.nn.encoder import Encoder
from polyseme.tasks.nn.featurizer import Featurizer, pad_rows
from polyseme.tasks.nn.pooling import LOW, maximum
from polyseme.text.length_batches import batch_by_length

CHUNK_TOKENS = 8192  # of windows, with padding, that are decoded at once
GROUP_TOKENS = 1024  # of sentences, with padding, whose vectors are mixed at once


class WindowScores(NamedTuple):
    """Log probabilities of the start and the stop of the answer, each (W, 1 + T); "no answer" is first."""

    starts: Tensor
    stops: Tensor


class SequenceBatch(NamedTuple):
    """Texts of a batch as tensors: the encoder's input, what joins its output, lengths, mask."""

    inputs: Tensor  # (W, T, D)
    late: Tensor | None  # (W, T, H)
    lengths: Tensor  # (W,)
    mask: Tensor  # (W, T)


class AnswersNetwork(nn.Module):
    """Start and stop of answers."""

    threshold: Tensor  # () least margin of an answer; `tune` sets it

    def __init__(
        self, featurizer: Featurizer, settings: AnswersSettings, examples: Sequence[AnswersExample]
    ) -> None:
        super().__init__()
        head, encoder, train = settings.head, settings.encoder, settings.train
        self.featurizer = featurizer
        inputs = featurizer.size + SHARED_FEATURES
        drop = (encoder.dropout, encoder.recurrent_dropout)
        self.encoder = Encoder(inputs, encoder.size, encoder.layers, encoder.directions, *drop)
        size = self.encoder.size
        self.attention = CrossAttention(size + featurizer.late_size)
        self.join = nn.Linear(self.attention.size, size)
        self.again = Encoder(size, encoder.size, 1, encoder.directions, *drop)
        self.self_attention = SelfAttention(size)
        self.join_self = nn.Linear(self.self_attention.size, size)
        self.start = Encoder(size, encoder.size, 1, encoder.directions, *drop)
        self.stop = Encoder(2 * size, encoder.size, 1, encoder.directions, *drop)
        self.start_score, self.stop_score = nn.Linear(size, 1), nn.Linear(size, 1)
        self.none_score = nn.Linear(size, 1)
        self.dropout = Dropout(head.dropout)
        self.register_buffer("threshold", torch.zeros(()))
        self._data, self._head, self._negatives = settings.data, head, train.negatives
        self._texts = _group_texts(examples) if train.negatives else {}

    def forward(self, windows: Sequence[Window]) -> WindowScores:
        """Score all starts and stops of windows."""
        texts, questions = self._read(windows)
        text, question = self._encode(texts), self._encode(questions)
        joined = self.attention(text, question, texts.mask, questions.mask)
        x = torch.relu(self.join(self.dropout(joined)))
        x = self.again(self.dropout(x), texts.lengths)
        x = x + torch.relu(self.join_self(self.dropout(self.self_attention(x, texts.mask))))
        starting = self.start(x, texts.lengths)
        stopping = self.stop(torch.cat([x, starting], dim=2), texts.lengths)
        none = self.none_score(self.dropout(maximum(x, texts.mask)))  # (W, 1)
        starts = self.start_score(self.dropout(starting))[..., 0].masked_fill(~texts.mask, LOW)
        stops = self.stop_score(self.dropout(stopping))[..., 0].masked_fill(~texts.mask, LOW)
        return WindowScores(
            torch.cat([none, starts], dim=1).log_softmax(dim=1),
            torch.cat([none, stops], dim=1).log_softmax(dim=1),
        )

    def _encode(self, batch: SequenceBatch) -> Tensor:
        """(W, T, D) -> (W, T, E), with ELMo beside the output if so set."""
        encoded = self.encoder(batch.inputs, batch.lengths)
        return encoded if batch.late is None else torch.cat([encoded, batch.late], dim=2)

    def _read(self, windows: Sequence[Window]) -> tuple[SequenceBatch, SequenceBatch]:
        """The texts and the questions of windows; each distinct sentence is read once."""
        rows = [_list_sentences(window) for window in windows]
        distinct = dict.fromkeys(
            tokens for window, row in zip(windows, rows, strict=True) for tokens in (window.question, *row[0])
        )
        flat, flat_late, firsts = self._embed(list(distinct))
        texts, questions = [], []
        for window, (sentences, skipped) in zip(windows, rows, strict=True):
            positions = [
                n for tokens in sentences for n in range(firsts[tokens], firsts[tokens] + len(tokens))
            ]
            texts.append(positions[skipped : skipped + window.stop - window.start])
            first = firsts[window.question]
            questions.append(list(range(first, first + len(window.question))))
        shared = [describe_shared(window.tokens, window.question) for window in windows]
        asked = [describe_shared(window.question, window.tokens) for window in windows]
        return _gather(flat, flat_late, texts, shared), _gather(flat, flat_late, questions, asked)

    def _embed(self, sentences: Sequence[Tokens]) -> tuple[Tensor, Tensor | None, dict[Tokens, int]]:
        """The tokens of all sentences (N, D), their late vectors (N, H), the first token of each sentence.

        Sentences are read in groups of similar length, with little padding.
        """
        parts, late_parts, firsts, total = list[Tensor](), list[Tensor](), dict[Tokens, int](), 0
        for numbers in batch_by_length([len(tokens) for tokens in sentences], max_tokens=GROUP_TOKENS):
            group = [sentences[number] for number in numbers]
            features = self.featurizer.read(group)
            x, late = self.featurizer(features)
            parts.append(x[features.mask])
            if late is not None:
                late_parts.append(late[features.mask])
            for tokens in group:
                firsts[tokens] = total
                total += len(tokens)
        return torch.cat(parts), torch.cat(late_parts) if late_parts else None, firsts

    def loss(self, batch: Sequence[AnswersExample]) -> tuple[Tensor, int]:
        """Negative log likelihood of start and stop; in windows without a labelled answer, of none."""
        windows = [
            window
            for example in batch
            for window in split_windows(example, self._data.window, self._data.overlap)
        ]
        windows += self._draw_negatives(batch)
        scores = self(windows)
        width = scores.starts.shape[1]
        total = scores.starts.new_zeros(())
        for values, end in ((scores.starts, 0), (scores.stops, 1)):
            targets = torch.zeros(len(windows), width, dtype=torch.bool)
            for row, window in enumerate(windows):
                for span in window.labels:
                    targets[row, 1 + span[end] - end] = True
                if not window.labels:
                    targets[row, 0] = True
            hidden = values.masked_fill(~targets.to(values.device), LOW)
            total = total - hidden.logsumexp(dim=1).mean()
        return total, len(batch)

    def _draw_negatives(self, batch: Sequence[AnswersExample]) -> Iterator[Window]:
        """Ask some questions about another text of their article that does not have the answer."""
        for example in batch:
            texts = self._texts.get(example.group, ())
            if not texts or not example.answers or float(torch.rand(())) >= self._negatives:
                continue
            drawn = texts[int(torch.randint(len(texts), ()))]
            words = str(drawn.text.text).lower()
            if any(answer.text.lower() in words for answer in example.answers):
                continue
            window = next(split_windows(drawn, self._data.window, self._data.overlap))
            yield window._replace(question=example.question.tokens, labels=())

    def decode(self, batch: Sequence[AnswersExample]) -> list[AnswerPrediction]:
        """The best legal span of each text, or that it has no answer."""
        best: dict[int, BestSpan] = {}
        for numbers, windows in self._chunk(batch):
            for number, span in zip(numbers, self._find_spans(windows), strict=True):
                if number not in best or span.margin > best[number].margin:
                    best[number] = span
        return [self._decide(example, best[number]) for number, example in enumerate(batch)]

    def _decide(self, example: AnswersExample, best: BestSpan) -> AnswerPrediction:
        has_answer = not self._head.allow_no_answer or best.margin > float(self.threshold)
        return make_prediction(example, best, has_answer=has_answer)

    def _chunk(self, batch: Sequence[AnswersExample]) -> Iterator[tuple[list[int], list[Window]]]:
        """Yield windows, with the numbers of their examples, as many as fit CHUNK_TOKENS with padding."""
        numbers, windows, longest = list[int](), list[Window](), 0
        for number, example in enumerate(batch):
            for window in split_windows(example, self._data.window, self._data.overlap):
                longest = max(longest, window.stop - window.start)
                if windows and longest * (len(windows) + 1) > CHUNK_TOKENS:
                    yield numbers, windows
                    numbers, windows, longest = [], [], window.stop - window.start
                numbers.append(number)
                windows.append(window)
        yield numbers, windows

    def _find_spans(self, windows: Sequence[Window]) -> Iterator[BestSpan]:
        """Yield the best legal span of each window, in tokens of its text."""
        scores = self(windows)
        width = scores.starts.shape[1] - 1
        sums = scores.starts[:, 1:, None] + scores.stops[:, None, 1:]  # (W, T, T)
        legal = torch.ones(width, width, dtype=torch.bool, device=sums.device).triu()
        legal &= ~legal.triu(self._head.max_answer_tokens)
        values, numbers = sums.masked_fill(~legal, 4 * LOW).flatten(1).max(dim=1)
        none = scores.starts[:, 0] + scores.stops[:, 0]
        rows = torch.stack([values - none, values.exp(), none.exp()], dim=1).tolist()
        for window, (margin, chance, no_chance), number in zip(windows, rows, numbers.tolist(), strict=True):
            start, last = divmod(number, width)
            yield BestSpan(margin, chance, no_chance, window.start + start, window.start + last + 1)

    def tune(
        self, examples: Sequence[AnswersExample], predictions: Sequence[AnswerPrediction]
    ) -> list[AnswerPrediction]:
        """Set the threshold of "no answer" to the best one for labelled examples.

        Returns:
            The predictions with this threshold.

        """
        if not self._head.allow_no_answer:
            return list(predictions)
        gains = []
        for example, prediction in zip(examples, predictions, strict=True):
            best, question = prediction.best, prediction.question
            labels = [answer.text for answer in example.answers or ()]
            answered = score_answer(question, labels, example.text.span_text(best.start, best.stop))
            gains.append((best.margin, answered[1] - score_answer(question, labels, None)[1]))
        self.threshold.fill_(find_threshold(gains))
        return [self._decide(e, p.best) for e, p in zip(examples, predictions, strict=True)]


def find_threshold(gains: Sequence[tuple[float, float]]) -> float:
    """The margin above which answering gains most, of pairs of margin and gain of answering."""
    ordered = sorted(gains, reverse=True)
    best, total = 0.0, 0.0
    threshold = ordered[0][0] if ordered else 0.0  # nothing is answered
    for (margin, gain), (following, _) in pairwise([*ordered, (float("-inf"), 0.0)]):
        total += gain
        if total > best and margin > following:
            best = total
            threshold = margin - 1.0 if following == float("-inf") else (margin + following) / 2
    return threshold


def _group_texts(examples: Sequence[AnswersExample]) -> dict[str, list[AnswersExample]]:
    """Of each group one example for each of its distinct texts; of groups with several texts."""
    texts: defaultdict[str, dict[Tokens, AnswersExample]] = defaultdict(dict)
    for example in examples:
        texts[example.group].setdefault(example.text.tokens, example)
    return {group: list(by_text.values()) for group, by_text in texts.items() if len(by_text) > 1}


def _list_sentences(window: Window) -> tuple[list[Tokens], int]:
    """The sentences that a window touches, and how many tokens of the first are before it."""
    starts, tokens = window.example.starts, window.example.text.tokens
    first, stop = bisect_right(starts, window.start) - 1, bisect_left(starts, window.stop)
    bounds = [*starts[first:stop], starts[stop] if stop < len(starts) else len(tokens)]
    return [tokens[start:end] for start, end in pairwise(bounds)], window.start - starts[first]


def _gather(
    flat: Tensor,
    late: Tensor | None,
    positions: Sequence[Sequence[int]],
    shared: Sequence[Sequence[tuple[float, ...]]],
) -> SequenceBatch:
    """Rows of tokens (N, D) as padded sequences, with the features of shared words beside them."""
    device = flat.device
    lengths = torch.tensor([len(row) for row in positions], device=device)
    width = int(lengths.max())
    mask = torch.arange(width, device=device) < lengths[:, None]
    index = pad_rows(positions, width).to(device)
    features = flat.new_zeros(len(positions), width, SHARED_FEATURES)
    features[mask] = torch.tensor([values for row in shared for values in row], device=device)
    inputs = torch.cat([flat[index], features], dim=2) * mask[..., None]
    return SequenceBatch(inputs, None if late is None else late[index] * mask[..., None], lengths, mask)
