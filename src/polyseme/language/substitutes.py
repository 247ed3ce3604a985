"""Rank the words that fit a position of a sentence: from the left, from the right, from both.

    elmo, model.softmax, text.brackets  ->  language.substitutes  ->  api, server

Brackets mark the position: 他 骑 着 [马] 走 了. An empty pair marks a gap. V words, D one direction.

Joint ranking: P(w | left, right) is proportional to P(w | left) P(w | right) / P(w) if left and right are
independent given w. P(w) comes from the caller's counts, or else from Zipf's law, since a vocabulary is
sorted by frequency. Without P(w), frequent words, which are likely on both sides, would count twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.io.html import Cell, format_table, render_table
from polyseme.io.result_list import ResultList
from polyseme.language.scoring import LogProbs, Predictor, require_predictor
from polyseme.model.fast.packing import BiState
from polyseme.text.brackets import parse_brackets
from polyseme.text.validate import check_tokens


class Substitute(NamedTuple):
    """A word and its natural log probability."""

    word: str
    log_prob: float

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {"word": self.word, "log probability": self.log_prob}


@dataclass(frozen=True)
class RankedSubstitutes:
    """The best words by one ranking, and the rank of the original word.

    Attributes:
        best: The best words with their log probabilities.
        rank: The rank of the original word, from 1; None for a gap or a word outside the vocabulary.
        log_prob: The log probability of the original word; None as above.

    """

    best: ResultList[Substitute]
    rank: int | None
    log_prob: float | None


@dataclass(frozen=True, repr=False)
class Substitutes:
    """The words that fit a position of a sentence.

    Attributes:
        tokens: The sentence; a gap is the empty string.
        position: The position of the marked token.
        forward: Ranked by P(w | left).
        backward: Ranked by P(w | right).
        joint: Ranked by both, normalized over the vocabulary.

    """

    tokens: list[str]
    position: int
    forward: RankedSubstitutes
    backward: RankedSubstitutes
    joint: RankedSubstitutes

    @property
    def word(self) -> str:
        """The original word; empty for a gap."""
        return self.tokens[self.position]

    def __repr__(self) -> str:
        columns, rows, caption = self._make_table()
        return format_table(columns, rows, caption=caption)

    def _repr_html_(self) -> str:
        columns, rows, caption = self._make_table()
        return render_table(columns, rows, caption=caption)

    def _make_table(self) -> tuple[list[str], list[list[Cell]], str]:
        """The three rankings side by side, each word with its log probability."""
        rankings = {"both": self.joint, "left": self.forward, "right": self.backward}
        columns = [heading for name in rankings for heading in (f"from {name}", "log p")]
        rows: list[list[Cell]] = [
            [cell for entry in row for cell in (entry or (None, None))]
            for row in zip_longest(*(ranking.best for ranking in rankings.values()))
        ]
        before, after = self.tokens[: self.position], self.tokens[self.position + 1 :]
        caption = " ".join([*before, f"[{self.word}]", *after])
        ranks = [f"{ranking.rank:,} from {name}" for name, ranking in rankings.items() if ranking.rank]
        return columns, rows, caption + (f" (rank of {self.word}: {', '.join(ranks)})" if ranks else "")


def find_substitutes(
    elmo: Elmo,
    sentence: str,
    k: int = 10,
    *,
    context: Sequence[str] | Sequence[Sequence[str]] = (),
    following: Sequence[str] | Sequence[Sequence[str]] = (),
    counts: Mapping[str, int] | None = None,
    segment: str | None = None,
) -> Substitutes:
    """Rank the words that fit the bracketed position of a sentence.

    Args:
        elmo: A model with a softmax.
        sentence: A sentence with one word in brackets, which stays one token, or [] for a gap.
        k: How many words to return for each ranking.
        context: Sentences before it, whose state the forward direction starts from.
        following: Sentences after it, whose state the backward direction starts from.
        counts: How often words occur, for the joint ranking; None assumes Zipf's law.
        segment: How to split text into tokens; as the model was trained if None.

    Returns:
        Three rankings: from the left, from the right, and from both.

    Raises:
        UsageError: The sentence has no pair of brackets, the model has no softmax, or `k` is less than 1.

    Example:
        >>> found = find_substitutes(elmo, "He sat on the [bank] of the river .", 5)
        >>> [word for word, log_prob in found.joint.best], found.joint.rank

    """
    text = parse_brackets(sentence)
    before, after = elmo.token_texts(text.before, segment), elmo.token_texts(text.after, segment)
    return find_substitutes_at(
        elmo,
        [*before, text.marked, *after],
        len(before),
        k,
        context=elmo.token_lists(context, segment),
        following=elmo.token_lists(following, segment),
        counts=counts,
    )


def find_substitutes_at(
    elmo: Elmo,
    tokens: Sequence[str],
    position: int,
    k: int = 10,
    *,
    context: Sequence[Sequence[str]] = (),
    following: Sequence[Sequence[str]] = (),
    counts: Mapping[str, int] | None = None,
) -> Substitutes:
    """Rank the words that fit a position of a tokenized sentence; an empty token there is a gap.

    Args:
        elmo: A model with a softmax.
        tokens: The sentence.
        position: The position of the token to replace, from 0.
        k: How many words to return for each ranking.
        context: Tokenized sentences before it.
        following: Tokenized sentences after it.
        counts: How often words occur, for the joint ranking; None assumes Zipf's law.

    Raises:
        UsageError: The model has no softmax, or `k` or `position` is out of range.

    """
    predictor = require_predictor(elmo)
    if k < 1:
        raise UsageError(f"k is {k}, expected 1 or more.")
    if not 0 <= position < len(tokens):
        raise UsageError(f"position is {position}, the sentence has tokens 0 to {len(tokens) - 1}.")
    word = tokens[position]
    filled = [*tokens[:position], word or predictor.vocab.unknown, *tokens[position + 1 :]]
    forward, backward = _predict(elmo, predictor, check_tokens(filled, 0), position, context, following)
    special = _list_special_tokens(predictor)
    usable = np.array([row for row, known in enumerate(predictor.vocab.words) if known not in special])
    joint = join_log_probs(forward, backward, _log_prior(predictor, counts), usable)
    rankings = (_rank(predictor, values, usable, word, k) for values in (forward, backward, joint))
    return Substitutes(list(tokens), position, *rankings)


@torch.inference_mode()
def _predict(
    elmo: Elmo,
    predictor: Predictor,
    tokens: list[str],
    position: int,
    context: Sequence[Sequence[str]],
    following: Sequence[Sequence[str]],
) -> tuple[LogProbs, LogProbs]:
    """Log probabilities (V,) of every word at a position, from the left and from the right."""
    before = _state_after(elmo, context)
    after = _state_after(elmo, following[::-1])
    state = None
    if before or after:
        zero = elmo.model.network.zero_state(1)
        state = BiState((before or zero).forward, (after or zero).backward)
    layers, _ = elmo.compute_layers([tokens], state)
    top = layers[-1, 0]  # (T, H), with <S> at 0, so that token i is at i + 1
    half = top.shape[1] // 2
    outputs = torch.stack([top[position, :half], top[position + 2, half:]])
    forward, backward = predictor.softmax(outputs).cpu().double().numpy()
    return forward, backward


def _state_after(elmo: Elmo, sentences: Sequence[Sequence[str]]) -> BiState | None:
    """The state after reading `sentences` in order."""
    state: BiState | None = None
    for sentence in sentences:
        _, state = elmo.compute_layers([sentence], state)
    return state


def join_log_probs(
    forward: LogProbs, backward: LogProbs, log_prior: LogProbs, usable: NDArray[np.int64]
) -> LogProbs:
    """Combine both directions and the prior (V,), normalized over the `usable` rows; the others get -inf."""
    both = np.full(len(forward), -np.inf)
    both[usable] = (forward + backward - log_prior)[usable]
    top = both.max(initial=-np.inf)
    if not np.isfinite(top):
        return both
    normalized: LogProbs = both - top - np.log(np.exp(both - top).sum())
    return normalized


def _log_prior(predictor: Predictor, counts: Mapping[str, int] | None) -> LogProbs:
    """Log probability of every word (V,) without context."""
    if counts is None:
        ranks = np.arange(len(predictor.vocab), dtype=np.float64)
        weights = np.log1p(1 / (ranks + 1))
    else:
        weights = np.array([counts.get(word, 0) + 0.5 for word in predictor.vocab.words])
    log_prior: LogProbs = np.log(weights / weights.sum())
    return log_prior


def _list_special_tokens(predictor: Predictor) -> tuple[str, str, str]:
    vocab = predictor.vocab
    return vocab.begin, vocab.end, vocab.unknown


def _rank(
    predictor: Predictor, log_probs: LogProbs, usable: NDArray[np.int64], word: str, k: int
) -> RankedSubstitutes:
    """The k best of the usable rows, and the rank of `word` among them."""
    values = log_probs[usable]
    order = np.argsort(-values, kind="stable")[:k]
    words = predictor.vocab.words
    best = ResultList(Substitute(words[usable[number]], float(values[number])) for number in order)
    if word not in predictor.vocab or word in _list_special_tokens(predictor):
        return RankedSubstitutes(best, None, None)
    log_prob = float(log_probs[predictor.vocab.id(word) - 1])
    return RankedSubstitutes(best, int((values > log_prob).sum()) + 1, log_prob)
