"""Floating-point operations (FLOPs) of a pretraining step, counted from shapes, for benchmarks/pretrain.py.

Only necessary work counts: each distinct word of the batch is encoded once for both directions, with
filters over the windows that the longest word needs; each target is scored against itself and the sampled
words. A product of (a, b) by (b, c) is 2abc operations, and its gradient is two more products of the same
size. Additions, activations and lookups are not counted.
"""

from __future__ import annotations

import numpy as np

from polyseme.config import ModelSettings
from polyseme.text.corpus.prepared import Corpus
from polyseme.training.batches import TrainingBatch


def step_flops(model: ModelSettings, corpus: Corpus, batch: TrainingBatch, scored: int) -> float:
    """FLOPs of one step, forward and backward. Each target is scored against `scored` words and itself."""
    types = np.unique(batch.inputs)
    tokens = batch.inputs.shape[1]
    targets = 2 * tokens if batch.keep is None else int(batch.keep.sum())
    products = (
        len(types) * _encoding(model, corpus, types)
        + 2 * tokens * _recurrent(model)
        + targets * (scored + 1) * model.recurrent.outputs
    )
    return 3 * 2.0 * products


def _encoding(model: ModelSettings, corpus: Corpus, types: np.ndarray) -> float:
    """Multiplications to encode one word: filters, highways, projection."""
    products = 0.0
    if model.chars is not None and corpus.chars is not None and corpus.alphabet is not None:
        rows = corpus.chars[types]
        longest = int((rows != corpus.alphabet.padding).sum(axis=1).max())
        widest = max(width for width, _ in model.chars.filters)
        positions = min(rows.shape[1], longest + widest)
        products += sum(
            count * width * model.chars.dim * (positions - width + 1) for width, count in model.chars.filters
        )
        products += model.chars.highways * 2 * model.chars.size**2
    if model.projects_tokens:
        products += model.token_size * model.recurrent.outputs
    return products


def _recurrent(model: ModelSettings) -> float:
    """Multiplications per token in one direction: gates and projection."""
    shape = model.recurrent
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[shape.cell] * shape.cells
    projection = shape.cells * shape.outputs if shape.projects else 0
    return shape.layers * (gates * 2 * shape.outputs + projection)
