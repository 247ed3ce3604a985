"""Sentences to the log probability of each of their tokens, given what stands left or right of it.

    embedder, model.softmax  ->  language.scoring  ->  language.perplexity, language.reranking, api

B sentences, T tokens incl. <S> and </S>, n tokens of a sentence, D one direction, V words.
Log probabilities are natural logarithms. What must not change: every sentence of n tokens has n + 1
targets in each direction, and its score does not depend on the batch, unless state is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.elmo import CHUNK, Counts, Elmo
from polyseme.errors import UsageError
from polyseme.model.fast.packing import BiState
from polyseme.model.softmax import AnySoftmax
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.validate import Sentences
from polyseme.text.vocab import Vocab

LogProbs = NDArray[np.float64]
STRETCH = 10_000  # tokens over which the backward half carries its state, in one piece


@dataclass(frozen=True, eq=False)
class SentenceScore:
    """Log probabilities of one sentence, in the order of the text in both directions."""

    tokens: list[str]
    forward: LogProbs  # (n + 1,): w1 … wn, each given what stands left of it, then </S>
    backward: LogProbs  # (n + 1,): w1 … wn, each given what stands right of it, then <S>
    unknown: NDArray[np.bool_]  # (n,): outside the vocabulary, predicted as the unknown word

    @property
    def mean(self) -> LogProbs:
        """(n + 1,): the mean of both directions; the last is that of the two marks."""
        return (self.forward + self.backward) / 2

    @property
    def totals(self) -> tuple[float, float, float]:
        """Log probability of the whole sentence: forward, backward, mean."""
        forward, backward = float(self.forward.sum()), float(self.backward.sum())
        return forward, backward, (forward + backward) / 2


class Predictor(NamedTuple):
    """What predicts words: a softmax and the vocabulary of its rows."""

    softmax: AnySoftmax
    vocab: Vocab

    def rows(self, tokens: Iterable[str]) -> Tensor:
        """Rows of the softmax (N,) of `tokens`."""
        return torch.from_numpy(self.vocab.ids(tokens) - 1)


def predictor(elmo: Elmo) -> Predictor:
    """The softmax of a model, or a clear refusal."""
    softmax, vocab = elmo.model.softmax, elmo.model.vocab
    if softmax is None:
        raise UsageError(
            "The model has no softmax, so it cannot predict words (published ELMo files leave it out). "
            "Use a model that was trained here, or train one from it: "
            "polyseme pretrain TEXT --from MODEL --out FOLDER"
        )
    if vocab is None:
        raise UsageError("The model has a softmax and no vocabulary. Put its vocab.txt beside the weights.")
    return Predictor(softmax, vocab)


def score(
    elmo: Elmo, sentences: Sentences, *, stateful: bool = False, segment: str | None = None
) -> list[SentenceScore]:
    """Log probabilities of `sentences`: a string (one sentence), a list of strings or of token lists.

    stateful: both directions carry their state from sentence to sentence, forward from the first to the
        last, backward from the last to the first; otherwise each sentence is scored for itself.
    A sentence without tokens is scored as <S> </S>.
    """
    return list(score_stream(elmo, elmo.token_lists(sentences, segment), stateful=stateful))


def score_stream(
    elmo: Elmo, sentences: Iterable[list[str]], *, stateful: bool = False
) -> Iterator[SentenceScore]:
    """Score token lists one after the other, in their order; memory holds a few batches.

    `stateful` works as in `score`, but the backward state begins anew every STRETCH tokens: a stream has
    no last sentence to begin from.
    """
    predictor(elmo)  # refuses a model without one at once, not at the first sentence
    return _one_call(elmo, sentences, stateful=stateful)


def _one_call(elmo: Elmo, sentences: Iterable[list[str]], *, stateful: bool) -> Iterator[SentenceScore]:
    with elmo.track_counts() as counts:
        yield from score_sentences(elmo, sentences, counts, stateful=stateful)


def score_sentences(
    elmo: Elmo, sentences: Iterable[list[str]], counts: Counts, *, stateful: bool
) -> Iterator[SentenceScore]:
    """As `score_stream`, as a part of the call whose `counts` these are."""
    run = _in_order if stateful else _in_batches
    return run(elmo, predictor(elmo), sentences, counts)


@torch.inference_mode()
def _in_order(
    elmo: Elmo, predict: Predictor, sentences: Iterable[list[str]], counts: Counts
) -> Iterator[SentenceScore]:
    """The forward half goes on from the sentence before, the backward half from the one behind."""
    ahead: BiState | None = None
    for stretch in chunk_sentences(sentences, STRETCH):
        behind: BiState | None = None
        halves: list[Tensor] = []
        for sentence in reversed(stretch):
            layers, behind = elmo.compute_layers([sentence], behind, frame_empty=True)
            halves.append(layers[-1, ..., elmo.config.size // 2 :].clone())
        for sentence in stretch:
            layers, ahead = elmo.compute_layers([sentence], ahead, frame_empty=True)
            top = torch.cat([layers[-1, ..., : elmo.config.size // 2], halves.pop()], dim=-1)
            yield _scored(predict, [sentence], top)[0]
        elmo.add_counts(stretch, counts)


def _in_batches(
    elmo: Elmo, predict: Predictor, sentences: Iterable[list[str]], counts: Counts
) -> Iterator[SentenceScore]:
    for chunk in chunk_sentences(sentences, CHUNK * elmo.batch_tokens):
        results: dict[int, SentenceScore] = {}
        for batch in elmo.batches(chunk):
            layers, _ = elmo.compute_layers(batch.sentences, frame_empty=True)
            results |= zip(batch.numbers, _scored(predict, batch.sentences, layers[-1]), strict=True)
        elmo.add_counts(chunk, counts)
        yield from (results[number] for number in range(len(chunk)))


@torch.inference_mode()
def _scored(predict: Predictor, sentences: list[list[str]], top: Tensor) -> list[SentenceScore]:
    """Pick the log probability of every token out of the top layer (B, T, H) of a batch."""
    size = top.shape[2] // 2
    ahead = [rows[: len(tokens) + 1, :size] for rows, tokens in zip(top, sentences, strict=True)]
    behind = [rows[1 : len(tokens) + 2, size:] for rows, tokens in zip(top, sentences, strict=True)]
    vocab = predict.vocab
    flat = predict.rows(word for tokens in sentences for word in (*tokens, vocab.end))
    flat_back = predict.rows(word for tokens in sentences for word in (vocab.begin, *tokens))
    targets = torch.cat([flat, flat_back]).to(top.device)
    picked = predict.softmax.target_log_probs(torch.cat([*ahead, *behind]), targets)
    forward, backward = picked.cpu().double().numpy().reshape(2, len(flat))
    unknown = flat.numpy() == vocab.id(vocab.unknown) - 1
    results = []
    start = 0
    for tokens in sentences:
        stop = start + len(tokens) + 1
        results.append(
            SentenceScore(
                list(tokens),
                forward[start:stop].copy(),
                np.roll(backward[start:stop], -1),  # <S> goes last, so that places agree
                unknown[start : stop - 1].copy(),
            )
        )
        start = stop
    return results
