"""A prompt to new text, word by word, with the forward language model.

    model.recurrent (the forward stack), model.softmax  ->  language.generation  ->  api, server

The state is carried from word to word, so that a word costs the same wherever it stands. What must not
change: the same model, prompt, settings and seed give the same words, and they are the words that reading
the whole text anew for each of them would give.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.language.detokenize import join
from polyseme.language.scoring import Predictor, predictor
from polyseme.model.recurrent import State
from polyseme.text.segment import sentences

BEGIN, END = 0, 1  # rows of <S> and </S> in what `Pretrained.token_ids` gives


@dataclass(frozen=True)
class GeneratedText:
    """A prompt and how the model went on."""

    prompt: str
    tokens: list[str]  # the new words, without marks
    log_probs: list[float]  # of the new words under the model itself, whatever the temperature
    ended: bool  # whether the model ended its sentence, with `stop_at_end`

    @property
    def text(self) -> str:
        """The prompt and the new words, readable."""
        return self.prompt + join(self.tokens, self.prompt)


class ForwardReader:
    """The forward half of a model, reading word by word with its state."""

    def __init__(self, elmo: Elmo) -> None:
        self._model = elmo.model
        elmo.model.network.pack()  # the weights of a loaded model are final
        self._stack = elmo.model.network.forward_stack
        self._states: list[State] = self._stack.zero_state(1)
        self._known: dict[str, Tensor] = {}  # vectors of words read before

    def begin(self) -> Tensor:
        """Read <S>: what predicts the first word, (1, D)."""
        return self._read(self._vectors([])[BEGIN : BEGIN + 1])

    def end(self) -> None:
        """Read </S>."""
        self._read(self._vectors([])[END : END + 1])

    def words(self, tokens: list[str]) -> Tensor:
        """Read one word or more: what predicts the next one, (1, D)."""
        new = [token for token in dict.fromkeys(tokens) if token not in self._known]
        if new:
            self._known |= zip(new, self._vectors(new)[2:].split(1), strict=True)
        return self._read(torch.cat([self._known[token] for token in tokens]))

    def _vectors(self, tokens: list[str]) -> Tensor:
        vectors: Tensor = self._model.network.tokens(*self._model.token_ids(tokens))
        return vectors

    def _read(self, x: Tensor) -> Tensor:
        layers, self._states = self._stack(x, [1] * len(x), self._states)
        top: Tensor = layers[-1]
        return top[-1:]


@torch.inference_mode()
def generate(
    elmo: Elmo,
    prompt: str = "",
    *,
    tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    stop_at_end: bool = True,
    segment: str | None = None,
) -> GeneratedText:
    """Go on after `prompt` for at most `tokens` words.

    temperature: below 1 the likely words become likelier, 0 always takes the likeliest.
    top_k: choose among the k likeliest words only.
    stop_at_end: stop where the model ends the sentence; otherwise it begins the next one.
    The last sentence of the prompt is taken as not yet ended. No mark is ever drawn but </S>.
    """
    _check(tokens, temperature, top_k, seed)
    predict = predictor(elmo)
    rng = np.random.default_rng(seed)
    reader = ForwardReader(elmo)
    output, fresh = _read_prompt(reader, prompt, elmo.config.segment if segment is None else segment)
    words: list[str] = []
    log_probs: list[float] = []
    while len(words) < tokens:
        scores = predict.softmax(output)[0].cpu().double().numpy()  # (V,)
        row = _draw(scores, _allowed(predict, end=not fresh), temperature, top_k, rng)
        word = predict.vocab.words[row]
        if word == predict.vocab.end:
            if stop_at_end:
                return GeneratedText(prompt, words, log_probs, ended=True)
            reader.end()
            output, fresh = reader.begin(), True
            continue
        words.append(word)
        log_probs.append(float(scores[row]))
        output, fresh = reader.words([word]), False
    return GeneratedText(prompt, words, log_probs, ended=False)


def _check(tokens: int, temperature: float, top_k: int | None, seed: int) -> None:
    if tokens < 1:
        raise UsageError(f"tokens is {tokens}, expected 1 or more.")
    if not (isfinite(temperature) and temperature >= 0):
        raise UsageError(f"temperature is {temperature}, expected a number from 0 (always the likeliest) up.")
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k is {top_k}, expected 1 or more, or None for all words.")
    if seed < 0:
        raise UsageError(f"seed is {seed}, expected 0 or more.")


def _read_prompt(reader: ForwardReader, prompt: str, how: str) -> tuple[Tensor, bool]:
    """Read the prompt: what predicts the next word (1, D), and whether its sentence is still empty."""
    output = reader.begin()
    fresh = True
    for sentence in sentences(prompt, how):
        if not fresh:
            reader.end()
            reader.begin()
        output, fresh = reader.words([token.text for token in sentence]), False
    return output, fresh


def _allowed(predict: Predictor, *, end: bool) -> NDArray[np.bool_]:
    """Which rows may be drawn (V,): words, </S> if asked for, and the unknown word where no other is."""
    vocab = predict.vocab
    allowed = np.ones(len(vocab), dtype=np.bool_)
    allowed[_rows(predict, (vocab.begin, vocab.end, vocab.unknown))] = False
    if not allowed.any():
        allowed[_rows(predict, (vocab.unknown,))] = True
    if end:
        allowed[_rows(predict, (vocab.end,))] = True
    return allowed


def _rows(predict: Predictor, words: Iterable[str]) -> list[int]:
    return [predict.vocab.id(word) - 1 for word in words]


def _draw(
    scores: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    temperature: float,
    top_k: int | None,
    rng: np.random.Generator,
) -> int:
    """Draw a row from log probabilities (V,)."""
    rows = np.flatnonzero(allowed)
    if temperature == 0:
        return int(rows[scores[rows].argmax()])
    if top_k is not None and top_k < len(rows):
        rows = rows[np.sort(np.argsort(-scores[rows], kind="stable")[:top_k])]
    shifted = (scores[rows] - scores[rows].max()) / temperature
    cumulated = np.cumsum(np.exp(shifted))
    place = np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")
    return int(rows[min(place, len(rows) - 1)])
