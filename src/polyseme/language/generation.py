"""Generate text word by word with the forward language model.

    model.recurrent (the forward stack), model.softmax  ->  language.generation  ->  api, server

The state is carried from word to word, so each word costs the same. Must not change: the same model, prompt,
settings and seed give the same words, and they are the words that reading the whole text again for each word
would give. D one direction, V words.
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
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter, ignore_progress
from polyseme.language.detokenize import join_tokens
from polyseme.language.scoring import Predictor, require_predictor
from polyseme.model.recurrent import State
from polyseme.text.segment import Token

BEGIN, END = 0, 1  # rows of <S> and </S> in `Pretrained.token_ids`


@dataclass(frozen=True, repr=False)
class GeneratedText:
    """A prompt and its continuation.

    Attributes:
        prompt: The prompt.
        tokens: The new words, without <S> and </S>.
        log_probs: Natural log probability of each new word under the model, whatever the temperature.
        ended: Whether the model ended the sentence (only with `stop_at_end`).

    """

    prompt: str
    tokens: list[str]
    log_probs: list[float]
    ended: bool

    @property
    def text(self) -> str:
        """The prompt and the new words as readable text."""
        return self.prompt + join_tokens(self.tokens, self.prompt)

    def __repr__(self) -> str:
        return f"GeneratedText({self.text!r})"


class ForwardReader:
    """Reads word by word with the forward half of a model and keeps its state."""

    def __init__(self, elmo: Elmo) -> None:
        self._model = elmo.model
        elmo.model.network.pack()  # the weights of a loaded model are final
        self._stack = elmo.model.network.forward_stack
        self._states: list[State] = self._stack.zero_state(1)
        self._token_vectors: dict[str, Tensor] = {}  # of words read before

    def begin_sentence(self) -> Tensor:
        """Read <S>; return the output (1, D) that predicts the first word."""
        return self._read(self._embed([])[BEGIN : BEGIN + 1])

    def end_sentence(self) -> None:
        """Read </S>."""
        self._read(self._embed([])[END : END + 1])

    def read_words(self, tokens: list[str]) -> Tensor:
        """Read one or more words; return the output (1, D) that predicts the next one."""
        new = [token for token in dict.fromkeys(tokens) if token not in self._token_vectors]
        if new:
            self._token_vectors |= zip(new, self._embed(new)[2:].split(1), strict=True)
        return self._read(torch.cat([self._token_vectors[token] for token in tokens]))

    def _embed(self, tokens: list[str]) -> Tensor:
        """The token vectors of <S>, </S> and `tokens`."""
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
    on_progress: OnProgress = ignore_progress,
) -> GeneratedText:
    """Continue a prompt.

    The last sentence of the prompt counts as unfinished. <S> and the unknown word are never generated.

    Args:
        elmo: A model with a softmax.
        prompt: The text to continue; empty to start a new sentence.
        tokens: The largest number of new words.
        temperature: Below 1, likely words become likelier; 0 always takes the likeliest word.
        top_k: Choose only among the k likeliest words.
        seed: Seeds the choices.
        stop_at_end: Stop when the model ends the sentence; otherwise start the next one.
        segment: How to split the prompt into tokens; as the model was trained if None.
        on_progress: Receives the progress after every word.

    Returns:
        The prompt with its continuation.

    Raises:
        UsageError: The model has no softmax, or a setting is out of range.

    Example:
        >>> generate(elmo, "却说", tokens=20, temperature=0.8).text

    """
    _check_settings(tokens, temperature, top_k, seed)
    predictor = require_predictor(elmo)
    rng = np.random.default_rng(seed)
    reader = ForwardReader(elmo)
    output, is_empty = _read_prompt(reader, elmo.split_sentences(prompt, segment))
    words: list[str] = []
    log_probs: list[float] = []
    meter = RateMeter()
    while len(words) < tokens:
        scores = predictor.softmax(output)[0].cpu().double().numpy()  # (V,)
        row = _draw(scores, _select_allowed(predictor, end=not is_empty), temperature, top_k, rng)
        word = predictor.vocab.words[row]
        if word == predictor.vocab.end:
            if stop_at_end:
                return GeneratedText(prompt, words, log_probs, ended=True)
            reader.end_sentence()
            output, is_empty = reader.begin_sentence(), True
            continue
        words.append(word)
        log_probs.append(float(scores[row]))
        output, is_empty = reader.read_words([word]), False
        on_progress(ProgressEvent("generating", len(words), tokens, meter.add(1)))
    return GeneratedText(prompt, words, log_probs, ended=False)


def _check_settings(tokens: int, temperature: float, top_k: int | None, seed: int) -> None:
    if tokens < 1:
        raise UsageError(f"tokens is {tokens}, expected 1 or more.")
    if not (isfinite(temperature) and temperature >= 0):
        raise UsageError(f"temperature is {temperature}, expected 0 (always the likeliest word) or more.")
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k is {top_k}, expected 1 or more, or None for all words.")
    if seed < 0:
        raise UsageError(f"seed is {seed}, expected 0 or more.")


def _read_prompt(reader: ForwardReader, sentences: list[list[Token]]) -> tuple[Tensor, bool]:
    """Read the prompt; return the output (1, D) for the next word, and whether the sentence is empty."""
    output = reader.begin_sentence()
    is_empty = True
    for sentence in sentences:
        if not is_empty:
            reader.end_sentence()
            reader.begin_sentence()
        output, is_empty = reader.read_words([token.text for token in sentence]), False
    return output, is_empty


def _select_allowed(predictor: Predictor, *, end: bool) -> NDArray[np.bool_]:
    """Which rows may be drawn (V,): words, </S> if `end`, and the unknown word if there is no other."""
    vocab = predictor.vocab
    allowed = np.ones(len(vocab), dtype=np.bool_)
    allowed[_find_rows(predictor, (vocab.begin, vocab.end, vocab.unknown))] = False
    if not allowed.any():
        allowed[_find_rows(predictor, (vocab.unknown,))] = True
    if end:
        allowed[_find_rows(predictor, (vocab.end,))] = True
    return allowed


def _find_rows(predictor: Predictor, words: Iterable[str]) -> list[int]:
    return [predictor.vocab.id(word) - 1 for word in words]


def _draw(
    scores: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    temperature: float,
    top_k: int | None,
    rng: np.random.Generator,
) -> int:
    """Draw a row by its log probability (V,)."""
    rows = np.flatnonzero(allowed)
    if temperature == 0:
        return int(rows[scores[rows].argmax()])
    if top_k is not None and top_k < len(rows):
        rows = rows[np.sort(np.argsort(-scores[rows], kind="stable")[:top_k])]
    shifted = (scores[rows] - scores[rows].max()) / temperature
    cumulated = np.cumsum(np.exp(shifted))
    number = np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")
    return int(rows[min(number, len(rows) - 1)])
