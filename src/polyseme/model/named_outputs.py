"""Layers of sentences under the names and in the shapes of other programs.

    elmo  ->  model.named_outputs

TF-Hub's ELMo module returns a dictionary of padded arrays. Taggers of 2018 read a static vector joined with
contextual ones, in one of three ways.

B sentences, T tokens, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
JoinMethod = Literal["top", "concat", "mix"]
JOIN_METHODS = get_args(JoinMethod)


def pad_for_tf_hub(sentences: Sequence[Array], n_layers: int, size: int) -> dict[str, NDArray[np.generic]]:
    """Layers (L, T, H) of each sentence to the outputs of TF-Hub's module, padded with zeros."""
    lengths = np.array([layers.shape[1] for layers in sentences], np.int64)
    padded = np.zeros((n_layers, len(sentences), max(lengths, default=0), size), np.float32)
    for number, layers in enumerate(sentences):
        padded[:, number, : layers.shape[1]] = layers
    elmo = padded.mean(axis=0)
    mean = elmo.sum(axis=1) / np.maximum(lengths, 1)[:, None]
    recurrent = {f"lstm_outputs{number}": padded[number] for number in range(1, n_layers)}
    return {
        "word_emb": padded[0, ..., : size // 2],
        **recurrent,
        "elmo": elmo,
        "default": mean.astype(np.float32),
        "sequence_len": lengths,
    }


def join_context(static: Array, layers: Array, method: JoinMethod) -> Array:
    """Join static vectors (T, m) with the layers (L, T, H) of the same tokens: (T, m + …)."""
    if method == "concat":
        return np.concatenate([static, *layers[1:]], axis=1)
    context = layers[-1] if method == "top" else layers.mean(axis=0)
    return np.concatenate([static, context], axis=1)
