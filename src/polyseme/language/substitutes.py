"""A sentence with a marked place to the words that fit there: from the left, from the right, from both.

    embedder, model.softmax  ->  language.substitutes  ->  api, server

V words of the vocabulary, D one direction. The place is marked with brackets, 他 骑 着 [马] 走 了, and an
empty pair marks a gap. A bracket that is part of the text is written with a backslash before it.

Joint ranking: P(w | left, right) is proportional to P(w | left) P(w | right) / P(w) where left and right
tell nothing of each other once w is known. P(w) comes from counts where the caller has them; otherwise
from Zipf's law, because a vocabulary stands by falling frequency. Without P(w) frequent words, likely on
both sides, would be counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.language.scoring import Predictor, predictor
from polyseme.model.fast.packing import BiState
from polyseme.text.brackets import parse_brackets
from polyseme.text.validate import check_tokens
from polyseme.text.vocab import Vocab

LogProbs = NDArray[np.float64]


class Substitute(NamedTuple):
    """A word and its log probability."""

    word: str
    log_prob: float


@dataclass(frozen=True)
class RankedSubstitutes:
    """The best words by one measure, and where the word that stood there comes."""

    best: list[Substitute]
    rank: int | None  # of the original word, from 1; None for a gap or a word outside the vocabulary
    log_prob: float | None  # of the original word


@dataclass(frozen=True)
class Substitutes:
    """What fits the marked place of a sentence."""

    tokens: list[str]  # the whole sentence; a gap is the empty string
    place: int
    forward: RankedSubstitutes  # P(w | what stands left)
    backward: RankedSubstitutes  # P(w | what stands right)
    joint: RankedSubstitutes  # both, normalised over the words of the vocabulary

    @property
    def word(self) -> str:
        """The word that stood there."""
        return self.tokens[self.place]


def substitutes(
    elmo: Elmo,
    sentence: str,
    k: int = 10,
    *,
    context: Sequence[str] | Sequence[Sequence[str]] = (),
    following: Sequence[str] | Sequence[Sequence[str]] = (),
    counts: Mapping[str, int] | None = None,
    segment: str | None = None,
) -> Substitutes:
    """The `k` words that fit best where `sentence` has its brackets: He sat on the [bank] of the river .

    The bracketed text is one token; what stands around it is segmented as the model was trained.
    context, following: sentences before and after, whose state the two directions go on from.
    counts: how often words occur, for the joint ranking; without them Zipf's law is assumed.
    """
    left, marked, right = parse_brackets(sentence)
    around = [elmo.token_texts(part, segment) for part in (left, right)]
    tokens = [*around[0], marked, *around[1]]
    return find_substitutes_at(
        elmo,
        tokens,
        len(around[0]),
        k,
        context=elmo.token_lists(context, segment),
        following=elmo.token_lists(following, segment),
        counts=counts,
    )


def find_substitutes_at(
    elmo: Elmo,
    tokens: Sequence[str],
    place: int,
    k: int = 10,
    *,
    context: Sequence[Sequence[str]] = (),
    following: Sequence[Sequence[str]] = (),
    counts: Mapping[str, int] | None = None,
) -> Substitutes:
    """The `k` words that fit best at `place` of a sentence of tokens; an empty token there is a gap."""
    predict = predictor(elmo)
    if k < 1:
        raise UsageError(f"k is {k}, expected 1 or more.")
    if not 0 <= place < len(tokens):
        raise UsageError(f"place is {place}, the sentence has tokens 0 to {len(tokens) - 1}.")
    word = tokens[place]
    filled = [*tokens[:place], word or predict.vocab.unknown, *tokens[place + 1 :]]
    forward, backward = _predictions(elmo, predict, check_tokens(filled, 0), place, context, following)
    usable = np.array([row for row, known in enumerate(predict.vocab.words) if known not in _marks(predict)])
    joint = joint_log_probs(forward, backward, _log_prior(predict, counts), usable)
    rankings = (_ranking(predict, values, usable, word, k) for values in (forward, backward, joint))
    return Substitutes(list(tokens), place, *rankings)


@torch.inference_mode()
def _predictions(
    elmo: Elmo,
    predict: Predictor,
    tokens: list[str],
    place: int,
    context: Sequence[Sequence[str]],
    following: Sequence[Sequence[str]],
) -> tuple[LogProbs, LogProbs]:
    """Log probabilities (V,) of every word at `place`, from the left and from the right."""
    before = _state_after(elmo, context)
    behind = _state_after(elmo, following[::-1])
    state = None
    if before or behind:
        zero = elmo.model.network.zero_state(1)
        state = BiState((before or zero).forward, (behind or zero).backward)
    layers, _ = elmo.compute_layers([tokens], state)
    top = layers[-1, 0]  # (T, H), with <S> at 0, so that token i stands at i + 1
    half = top.shape[1] // 2
    outputs = torch.stack([top[place, :half], top[place + 2, half:]])
    forward, backward = predict.softmax(outputs).cpu().double().numpy()
    return forward, backward


def _state_after(elmo: Elmo, sentences: Sequence[Sequence[str]]) -> BiState | None:
    """The state when `sentences` have been read one after the other."""
    state: BiState | None = None
    for sentence in sentences:
        _, state = elmo.compute_layers([sentence], state)
    return state


def joint_log_probs(
    forward: LogProbs, backward: LogProbs, log_prior: LogProbs, usable: NDArray[np.int64]
) -> LogProbs:
    """Both directions over the prior (V,), normalised over the `usable` rows; the others are impossible."""
    both = np.full(len(forward), -np.inf)
    both[usable] = (forward + backward - log_prior)[usable]
    top = both.max(initial=-np.inf)
    if not np.isfinite(top):
        return both
    normalised: LogProbs = both - top - np.log(np.exp(both - top).sum())
    return normalised


def _log_prior(predict: Predictor, counts: Mapping[str, int] | None) -> LogProbs:
    """Log probability of every word (V,) without any context."""
    if counts is None:
        ranks = np.arange(len(predict.vocab), dtype=np.float64)
        weights = np.log1p(1 / (ranks + 1))
    else:
        weights = np.array([counts.get(word, 0) + 0.5 for word in predict.vocab.words])
    log_prior: LogProbs = np.log(weights / weights.sum())
    return log_prior


def _marks(predict: Predictor) -> tuple[str, str, str]:
    vocab: Vocab = predict.vocab
    return vocab.begin, vocab.end, vocab.unknown


def _ranking(
    predict: Predictor, log_probs: LogProbs, usable: NDArray[np.int64], word: str, k: int
) -> RankedSubstitutes:
    """The k best of the usable rows, and the place of `word` among them."""
    values = log_probs[usable]
    order = np.argsort(-values, kind="stable")[:k]
    best = [Substitute(predict.vocab.words[usable[number]], float(values[number])) for number in order]
    if word not in predict.vocab or word in _marks(predict):
        return RankedSubstitutes(best, None, None)
    own = float(log_probs[predict.vocab.id(word) - 1])
    return RankedSubstitutes(best, int((values > own).sum()) + 1, own)
