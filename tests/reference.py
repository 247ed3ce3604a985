"""A biLM in plain numpy, one token at a time, in float64: the fast model must agree with it.

    config + weights by our names + ids  ->  reference  ->  layers of every sentence, last state

Follows the published formulas and shares no code with polyseme.model: no batching, no packing, no
cropping, no products ahead of time. B sentences, T tokens incl. <S> and </S>, C characters, D one direction,
M memory cells, H = 2D, L layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.config import CharsSettings, ModelSettings, RecurrentSettings

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Weights = Mapping[str, NDArray[np.floating]]
LayerState = tuple[Array, Array]  # the output that recurs (D,) and the memory (M,)
DIRECTIONS = ("forward", "backward")


class Read(NamedTuple):
    """The result of the reference for a batch."""

    layers: list[Array]  # (L, T_b, H) for each sentence
    state: dict[str, list[list[LayerState]]]  # by direction, sentence and layer
    clipped: Counter[str]  # number of values that each clip changed


def read(
    config: ModelSettings,
    weights: Weights,
    lengths: Sequence[int],
    *,
    chars: Ids | None = None,
    words: Ids | None = None,
    state: dict[str, list[list[LayerState]]] | None = None,
) -> Read:
    """Run sentences of character ids (B, T, C), word ids (B, T) or both."""
    weights = {name: value.astype(np.float64) for name, value in weights.items()}
    state = state or {direction: [zero_state(config)] * len(lengths) for direction in DIRECTIONS}
    final: dict[str, list[list[LayerState]]] = {direction: [] for direction in DIRECTIONS}
    clipped: Counter[str] = Counter()
    sentences = []
    for b, length in enumerate(lengths):
        x = [token_vector(config, weights, _at(chars, b, t), _at(words, b, t)) for t in range(length)]
        forward, last = run_stack(config.recurrent, weights, "forward_stack", x, state["forward"][b], clipped)
        final["forward"].append(last)
        backward, last = run_stack(
            config.recurrent, weights, "backward_stack", x[::-1], state["backward"][b], clipped
        )
        final["backward"].append(last)
        tokens = np.array([np.concatenate([v, v]) for v in x]).reshape(1, length, config.size)
        context = [np.concatenate([f, g[::-1]], axis=1) for f, g in zip(forward, backward, strict=True)]
        sentences.append(np.concatenate([tokens, np.array(context)]))  # (L, T_b, H)
    return Read(sentences, final, clipped)


def _at(ids: Ids | None, b: int, t: int) -> Ids | None:
    return None if ids is None else ids[b, t]


def zero_state(config: ModelSettings) -> list[LayerState]:
    """The state before the first token of one sentence in one direction, a pair per layer."""
    recurrent = config.recurrent
    return [(np.zeros(recurrent.outputs), np.zeros(recurrent.cells)) for _ in range(recurrent.layers)]


def token_vector(config: ModelSettings, weights: Weights, chars: Ids | None, word: Ids | None) -> Array:
    """One token before any context: word row, characters, or both, then the projection."""
    parts = []
    if config.words is not None:
        parts.append(_weight(weights, "tokens.words.weight")[word])
    if config.chars is not None:
        assert chars is not None
        parts.append(char_vector(config.chars, weights, chars))
    vector = np.concatenate(parts)
    if "tokens.projection.weight" in weights:
        vector = _linear(weights, "tokens.projection", vector)
    return vector


def byte_row(word: str, max_chars: int) -> list[int]:
    """The bytes of a word as the published models read them: plus 1, since 0 is the padding of sentences."""
    inside = {"<S>": [256], "</S>": [257]}.get(word) or list(word.encode("utf-8", "ignore")[: max_chars - 2])
    row = [258, *inside, 259]
    return [1 + value for value in row + [260] * (max_chars - len(row))]


def char_vector(config: CharsSettings, weights: Weights, chars: Ids) -> Array:
    """One word from its row of character ids (C,), the padding included."""
    embedded = _weight(weights, "tokens.chars.embedding.weight")[chars]  # (C, dim)
    maxima = []
    for number, (width, _) in enumerate(config.filters):
        name = f"tokens.chars.convolutions.{number}"
        kernel = _weight(weights, f"{name}.weight")  # (count, dim, width)
        windows = [embedded[start : start + width] for start in range(len(chars) - width + 1)]
        values = [(kernel * window.T).sum(axis=(1, 2)) for window in windows]
        maxima.append(np.max(values, axis=0) + _weight(weights, f"{name}.bias"))
    vector = np.concatenate(maxima)
    vector = np.maximum(vector, 0) if config.activation == "relu" else np.tanh(vector)
    for number in range(config.highways):
        name = f"tokens.chars.highways.{number}"
        gate = _sigmoid(_linear(weights, f"{name}.carry", vector))
        vector = gate * np.maximum(_linear(weights, f"{name}.transform", vector), 0) + (1 - gate) * vector
    return vector


def run_stack(
    config: RecurrentSettings,
    weights: Weights,
    stack: str,
    x: Sequence[Array],
    state: list[LayerState],
    clipped: Counter[str],
) -> tuple[list[Array], list[LayerState]]:
    """One direction over one sentence: the outputs (T, D) of every layer, and the last state."""
    layers, final = [], []
    below = list(x)
    for number in range(config.layers):
        cell = {
            name.removeprefix(f"{stack}.cells.{number}."): np.asarray(value, dtype=np.float64)
            for name, value in weights.items()
            if name.startswith(f"{stack}.cells.{number}.")
        }
        output, memory = state[number]
        outputs = []
        for vector in below:
            output, memory = step(config, cell, vector, output, memory, clipped)
            outputs.append(output)
        final.append((output, memory))
        if config.residual and number > 0:
            outputs = [y + vector for y, vector in zip(outputs, below, strict=True)]
        layers.append(np.array(outputs).reshape(len(outputs), config.outputs))
        below = outputs
    return layers, final


def step(
    config: RecurrentSettings,
    cell: Mapping[str, Array],
    x: Array,
    y: Array,
    memory: Array,
    clipped: Counter[str],
) -> LayerState:
    """One token: the next output, projected and clipped, and the next memory."""
    advance = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}[config.cell]
    raw, memory = advance(config, cell, x, y, memory, clipped)
    if "projection" not in cell:
        return raw, memory
    return _clip(cell["projection"] @ raw, config.output_clip, "output", clipped), memory


def _lstm(
    config: RecurrentSettings, cell: Mapping[str, Array], x: Array, y: Array, c: Array, clipped: Counter[str]
) -> LayerState:
    z = cell["input_weight"] @ x + cell["hidden_weight"] @ y + cell["bias"]
    i, f, o, candidate = np.split(z, 4)
    c = _sigmoid(f + config.forget_bias) * c + _sigmoid(i) * np.tanh(candidate)
    c = _clip(c, config.cell_clip, "memory", clipped)
    return _sigmoid(o) * np.tanh(c), c


def _gru(
    config: RecurrentSettings, cell: Mapping[str, Array], x: Array, y: Array, m: Array, clipped: Counter[str]
) -> LayerState:
    cuts = [len(y), len(y) + len(m)]  # rows of r, z and the candidate
    w_r, w_z, w_c = np.split(cell["input_weight"], cuts)
    u_r, u_z, u_c = np.split(cell["hidden_weight"], cuts)
    b_r, b_z, b_c = np.split(cell["bias"], cuts)
    r = _sigmoid(w_r @ x + u_r @ y + b_r)
    z = _sigmoid(w_z @ x + u_z @ y + b_z)
    candidate = u_c @ (r * y) + w_c @ x
    if config.candidate_bias:
        candidate = candidate + b_c
    m = _clip((1 - z) * m + z * np.tanh(candidate), config.cell_clip, "memory", clipped)
    return m, m


def _rnn(
    config: RecurrentSettings, cell: Mapping[str, Array], x: Array, y: Array, m: Array, clipped: Counter[str]
) -> LayerState:
    m = np.tanh(cell["input_weight"] @ x + cell["hidden_weight"] @ y + cell["bias"])
    m = _clip(m, config.cell_clip, "memory", clipped)
    return m, m


def mix(layers: Array, weights: Sequence[float], gamma: float) -> Array:
    """(L, ...) -> (...): gamma * sum_l softmax(w)_l * h_l."""
    powers = [np.exp(weight) for weight in weights]
    return gamma * sum(power / sum(powers) * layer for power, layer in zip(powers, layers, strict=True))


def _clip(values: Array, limit: float | None, name: str, clipped: Counter[str]) -> Array:
    if limit is None:
        return values
    clipped[name] += int((np.abs(values) > limit).sum())
    return np.clip(values, -limit, limit)


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _linear(weights: Weights, name: str, x: Array) -> Array:
    return _weight(weights, f"{name}.weight") @ x + _weight(weights, f"{name}.bias")


def _weight(weights: Weights, name: str) -> Array:
    return np.asarray(weights[name], dtype=np.float64)
