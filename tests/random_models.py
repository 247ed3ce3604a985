"""Small models with random weights, large enough to saturate, and ragged batches for them.

    a Case (one point of the grid)  ->  random_models  ->  config, network, ids

B sentences, T tokens incl. <S> and </S>, C characters, D one direction, M memory cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.config import ModelSettings
from polyseme.formats.models.pretrained import build_network
from polyseme.model.bilm import BiLM
from reference import byte_row

N_WORDS = 11
BYTE_CHARS, BYTE_PADDING = 262, 261  # the ids of formats.md plus 1
CODEPOINT_CHARS, CODEPOINT_BEGIN, CODEPOINT_END, CODEPOINT_PADDING = 30, 3, 29, 7  # any ids but 0 would do


class Case(NamedTuple):
    """One point of the grid of models."""

    cell: str = "lstm"
    layers: int = 2
    projected: bool = True
    clipped: bool = True
    residual: bool = True
    highways: int = 1
    activation: str = "relu"
    tokens: str = "bytes"  # bytes, codepoints, words, words+chars

    @property
    def name(self) -> str:
        """The id of a test."""
        flags = [name for name in ("projected", "clipped", "residual") if getattr(self, name)]
        parts = [self.cell, f"{self.layers}layers", *flags, f"{self.highways}highways"]
        return "-".join([*parts, self.activation, self.tokens])


class Batch(NamedTuple):
    """Ids of B sentences; shorter ones are padded."""

    chars: Tensor | None  # (B, T, C)
    words: Tensor | None  # (B, T)
    lengths: Tensor  # (B,)

    def rows(self, *numbers: int, width: int | None = None) -> Batch:
        """The sentences `numbers`, in that order, padded or cropped to `width` tokens."""
        rows = list(numbers)
        chars = None if self.chars is None else self.chars[rows, :width]
        words = None if self.words is None else self.words[rows, :width]
        return Batch(chars, words, self.lengths[rows])


def random_config(case: Case, rng: np.random.Generator) -> ModelSettings:
    """The settings of `case`; sizes, biases and the token projection are random."""
    outputs = int(rng.integers(3, 6))
    values: dict[str, Any] = {
        "recurrent": {
            "cell": case.cell,
            "layers": case.layers,
            "cells": outputs + (int(rng.integers(0, 4)) if case.projected else 0),
            "outputs": outputs,
            "projection": case.projected,
            "cell_clip": 0.3 if case.clipped else None,
            "output_clip": 0.1 if case.clipped else None,
            "residual": case.residual,
            "forget_bias": float(rng.choice([0.0, 1.0, -0.7])),
            "candidate_bias": bool(rng.integers(2)),
        }
    }
    if case.tokens != "words":
        max_chars = int(rng.integers(3, 13))
        widths = {1, int(rng.integers(1, max_chars + 1)), int(rng.choice([2, max_chars]))}
        values["chars"] = {
            "encoding": "codepoints" if case.tokens == "codepoints" else "bytes",
            "max_chars": max_chars,
            "dim": int(rng.integers(1, 5)),
            "filters": [(width, int(rng.integers(1, 4))) for width in sorted(widths)],
            "activation": case.activation,
            "highways": case.highways,
        }
    if case.tokens.startswith("words"):
        values["words"] = {"dim": outputs if rng.integers(2) else int(rng.integers(2, 6))}
    config = ModelSettings.model_validate(values)
    fits = config.token_size == outputs
    return config.model_copy(update={"token_projection": bool(rng.integers(2)) or not fits})


def random_network(config: ModelSettings, rng: np.random.Generator) -> BiLM:
    """A network with weights so large that gates saturate and values are clipped."""
    points = config.chars is not None and config.chars.encoding == "codepoints"
    network = build_network(
        config,
        n_chars=CODEPOINT_CHARS if points else BYTE_CHARS,
        n_words=N_WORDS,
        padding=CODEPOINT_PADDING if points else BYTE_PADDING,
    )
    with torch.no_grad():
        for name, weight in network.named_parameters():
            fan_in = weight[0].numel()
            gain = 1.5 if "input_weight" in name or "projection" in name else 1.0
            weight.copy_(torch.from_numpy(rng.normal(0, gain / np.sqrt(fan_in), tuple(weight.shape))))
            if name in ("tokens.chars.embedding.weight", "tokens.words.weight"):
                weight[0] = 0
    return network.eval()


def random_batch(config: ModelSettings, lengths: list[int], rng: np.random.Generator) -> Batch:
    """Sentences of `lengths`: short words, words at the limit and words beyond it."""
    width = max(lengths, default=0)
    chars = words = None
    if config.chars is not None:
        chars = np.zeros((len(lengths), width, config.chars.max_chars), np.int64)
        for b, length in enumerate(lengths):
            for t in range(length):
                mark = {0: "<S>", length - 1: "</S>"}.get(t) if length > 2 else None
                chars[b, t] = _char_row(config, mark, rng)
    if config.words is not None:
        words = rng.integers(1, N_WORDS + 1, (len(lengths), width))
        words[np.arange(width) >= np.array(lengths)[:, None]] = 0
    return Batch(
        None if chars is None else torch.from_numpy(chars),
        None if words is None else torch.from_numpy(words),
        torch.tensor(lengths, dtype=torch.long),
    )


def _char_row(config: ModelSettings, mark: str | None, rng: np.random.Generator) -> NDArray[np.int64]:
    assert config.chars is not None
    limit = config.chars.max_chars - 2
    length = int(rng.choice([0, 1, 2, limit - 1, limit, limit + 1, limit + 7]).clip(0))
    if config.chars.encoding == "bytes":
        word = mark or "".join(rng.choice(list("aeinst.é的"), length))
        return np.array(byte_row(word, config.chars.max_chars))
    inside = rng.choice([n for n in range(1, CODEPOINT_CHARS) if n != CODEPOINT_PADDING], length)[:limit]
    row = [CODEPOINT_BEGIN, *inside, CODEPOINT_END]
    return np.array(row + [CODEPOINT_PADDING] * (config.chars.max_chars - len(row)))


def arrays(network: BiLM) -> dict[str, NDArray[np.float32]]:
    """The weights of a network by name."""
    return {name: weight.numpy() for name, weight in network.state_dict().items()}
