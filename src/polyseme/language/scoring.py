"""Log probability of each token of a sentence, given what is left or right of it.

    elmo, model.softmax  ->  language.scoring  ->  language.perplexity, language.reranking, api, server

B sentences, T tokens incl. <S> and </S>, n tokens of a sentence, D one direction, V words. Log probabilities
are natural logarithms. Must not change: a sentence of n tokens has n + 1 targets in each direction, and its
score does not depend on the batch unless `stateful`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.elmo import CHUNK, Counts, Elmo
from polyseme.errors import UsageError
from polyseme.io.html import Cell, render_table
from polyseme.io.progress import OnProgress, TokenProgress, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.model.fast.packing import BiState
from polyseme.model.softmax import AnySoftmax
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.validate import Sentences
from polyseme.text.vocab import Vocab

LogProbs = NDArray[np.float64]
OnBatch = Callable[[Sequence[list[str]]], None]
STRETCH_TOKENS = 10_000  # tokens over which the backward state is carried in one piece


@dataclass(frozen=True, eq=False, repr=False)
class SentenceScore:
    """Log probabilities of one sentence, both directions in the order of the text.

    Attributes:
        tokens: The n tokens.
        forward: (n + 1,) each token given what is left of it, then </S>.
        backward: (n + 1,) each token given what is right of it, then <S>.
        unknown: (n,) whether a token is outside the vocabulary and was scored as the unknown word.

    """

    tokens: list[str]
    forward: LogProbs
    backward: LogProbs
    unknown: NDArray[np.bool_]

    @property
    def mean(self) -> LogProbs:
        """(n + 1,) the mean of both directions; the last value is that of </S> and <S>."""
        return (self.forward + self.backward) / 2

    @property
    def totals(self) -> tuple[float, float, float]:
        """Log probability of the whole sentence: forward, backward, mean."""
        forward, backward = float(self.forward.sum()), float(self.backward.sum())
        return forward, backward, (forward + backward) / 2

    @property
    def per_token(self) -> tuple[float, float, float]:
        """The totals divided by the n + 1 predictions: to compare sentences of different lengths."""
        forward, backward, mean = (total / (len(self.tokens) + 1) for total in self.totals)
        return forward, backward, mean

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        forward, backward, mean = self.totals
        return {"forward": forward, "backward": backward, "mean": mean, "sentence": " ".join(self.tokens)}

    def __repr__(self) -> str:
        forward, backward, mean = self.totals
        text = " ".join(self.tokens)
        shown = text if len(text) <= 60 else f"{text[:59]}…"
        return f"SentenceScore({shown!r}, forward {forward:.2f}, backward {backward:.2f}, mean {mean:.2f})"

    def _repr_html_(self) -> str:
        rows: list[tuple[Cell, ...]] = [
            (token, float(forward), float(backward), float(mean), "unknown" if is_unknown else "")
            for token, forward, backward, mean, is_unknown in zip(
                [*self.tokens, "</S> <S>"],
                self.forward,
                self.backward,
                self.mean,
                [*self.unknown, False],
                strict=True,
            )
        ]
        forward, backward, mean = self.totals
        rows.append(("total", forward, backward, mean, ""))
        return render_table(["token", "forward", "backward", "mean", ""], rows, max_rows=len(rows))


class Predictor(NamedTuple):
    """What predicts words: a softmax and the vocabulary of its rows."""

    softmax: AnySoftmax
    vocab: Vocab

    def rows(self, tokens: Iterable[str]) -> Tensor:
        """Return the rows of the softmax (N,) of tokens."""
        return torch.from_numpy(self.vocab.ids(tokens) - 1)


def require_predictor(elmo: Elmo) -> Predictor:
    """Return the softmax of a model and its vocabulary.

    Raises:
        UsageError: The model has no softmax or no vocabulary.

    """
    softmax, vocab = elmo.model.softmax, elmo.model.vocab
    if softmax is None:
        raise UsageError(
            "The model has no softmax, so it cannot predict words (published ELMo files leave it out). "
            "Use a model trained with Polyseme, or train one from it: "
            "`polyseme.pretrain(text, out, base=model)`."
        )
    if vocab is None:
        raise UsageError("The model has a softmax but no vocabulary. Copy vocab.txt into its folder.")
    return Predictor(softmax, vocab)


def score(
    elmo: Elmo,
    sentences: Sentences,
    *,
    stateful: bool = False,
    segment: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> ResultList[SentenceScore]:
    """Score sentences: the log probability of every token in both directions.

    A sentence without tokens is scored as <S> </S>.

    Args:
        elmo: A model with a softmax.
        sentences: A string (one sentence), strings, or token lists.
        stateful: Carry the state from sentence to sentence: forward from the first to the last, backward
            from the last to the first. Otherwise each sentence is scored by itself.
        segment: How to split strings into tokens; as the model was trained if None.
        on_progress: Receives the progress after every batch; what it raises ends the call.

    Returns:
        One score per sentence.

    Raises:
        UsageError: The model has no softmax.

    Example:
        >>> score(elmo, ["The bank failed .", "Bank the . failed"])[0].totals

    """
    tokens = elmo.token_lists(sentences, segment)
    on_batch = TokenProgress(on_progress, "scoring", tokens).add
    return ResultList(score_stream(elmo, tokens, stateful=stateful, on_batch=on_batch))


def score_stream(
    elmo: Elmo,
    sentences: Iterable[list[str]],
    *,
    stateful: bool = False,
    stretch_tokens: int = STRETCH_TOKENS,
    on_batch: OnBatch | None = None,
) -> Iterator[SentenceScore]:
    """Score token lists one after the other, in order, in constant memory.

    Args:
        elmo: A model with a softmax.
        sentences: Token lists.
        stateful: As for `score`, but the backward state starts again every `stretch_tokens` tokens: a
            stream has no last sentence to start from.
        stretch_tokens: Tokens over which the backward state is carried.
        on_batch: Receives the sentences of every batch that was scored.

    Raises:
        UsageError: The model has no softmax; raised at once, not at the first sentence.

    """
    require_predictor(elmo)
    return _score_with_counts(elmo, sentences, stateful, stretch_tokens, on_batch)


def _score_with_counts(
    elmo: Elmo,
    sentences: Iterable[list[str]],
    stateful: bool,
    stretch_tokens: int,
    on_batch: OnBatch | None,
) -> Iterator[SentenceScore]:
    with elmo.track_counts() as counts:
        yield from score_sentences(
            elmo, sentences, counts, stateful=stateful, stretch_tokens=stretch_tokens, on_batch=on_batch
        )


def score_sentences(
    elmo: Elmo,
    sentences: Iterable[list[str]],
    counts: Counts,
    *,
    stateful: bool,
    stretch_tokens: int = STRETCH_TOKENS,
    on_batch: OnBatch | None = None,
) -> Iterator[SentenceScore]:
    """Score as `score_stream` does, and add what was read to `counts`."""
    predictor, report = require_predictor(elmo), on_batch or _ignore_batch
    if stateful:
        return _score_in_order(elmo, predictor, sentences, counts, stretch_tokens, report)
    return _score_in_batches(elmo, predictor, sentences, counts, report)


def _ignore_batch(sentences: Sequence[list[str]]) -> None:
    """Report nothing."""


@torch.inference_mode()
def _score_in_order(
    elmo: Elmo,
    predictor: Predictor,
    sentences: Iterable[list[str]],
    counts: Counts,
    stretch_tokens: int,
    report: OnBatch,
) -> Iterator[SentenceScore]:
    """The forward state comes from the sentence before, the backward state from the one after."""
    forward_state: BiState | None = None
    for stretch in chunk_sentences(sentences, stretch_tokens):
        backward_state: BiState | None = None
        backward_halves: list[Tensor] = []
        for sentence in reversed(stretch):
            layers, backward_state = elmo.compute_layers([sentence], backward_state, frame_empty=True)
            backward_halves.append(layers[-1, ..., elmo.config.size // 2 :].clone())
        for sentence in stretch:
            layers, forward_state = elmo.compute_layers([sentence], forward_state, frame_empty=True)
            top = torch.cat([layers[-1, ..., : elmo.config.size // 2], backward_halves.pop()], dim=-1)
            yield _score_batch(predictor, [sentence], top)[0]
            report([sentence])
        elmo.add_counts(stretch, counts)


def _score_in_batches(
    elmo: Elmo, predictor: Predictor, sentences: Iterable[list[str]], counts: Counts, report: OnBatch
) -> Iterator[SentenceScore]:
    for chunk in chunk_sentences(sentences, CHUNK * elmo.batch_tokens):
        scores: dict[int, SentenceScore] = {}
        for batch in elmo.batches(chunk):
            layers, _ = elmo.compute_layers(batch.sentences, frame_empty=True)
            scores |= zip(batch.numbers, _score_batch(predictor, batch.sentences, layers[-1]), strict=True)
            report(batch.sentences)
        elmo.add_counts(chunk, counts)
        yield from (scores[number] for number in range(len(chunk)))


@torch.inference_mode()
def _score_batch(predictor: Predictor, sentences: list[list[str]], top: Tensor) -> list[SentenceScore]:
    """Pick the log probability of every token from the top layer (B, T, H) of a batch."""
    size = top.shape[2] // 2
    forward_outputs = [rows[: len(tokens) + 1, :size] for rows, tokens in zip(top, sentences, strict=True)]
    backward_outputs = [rows[1 : len(tokens) + 2, size:] for rows, tokens in zip(top, sentences, strict=True)]
    vocab = predictor.vocab
    forward_rows = predictor.rows(word for tokens in sentences for word in (*tokens, vocab.end))
    backward_rows = predictor.rows(word for tokens in sentences for word in (vocab.begin, *tokens))
    targets = torch.cat([forward_rows, backward_rows]).to(top.device)
    outputs = torch.cat([*forward_outputs, *backward_outputs])
    log_probs = predictor.softmax.target_log_probs(outputs, targets).cpu().double().numpy()
    forward, backward = log_probs.reshape(2, len(forward_rows))
    unknown = forward_rows.numpy() == vocab.id(vocab.unknown) - 1
    scores = []
    start = 0
    for tokens in sentences:
        stop = start + len(tokens) + 1
        scores.append(
            SentenceScore(
                list(tokens),
                forward[start:stop].copy(),
                np.roll(backward[start:stop], -1),  # <S> goes last, so that positions agree
                unknown[start : stop - 1].copy(),
            )
        )
        start = stop
    return scores
