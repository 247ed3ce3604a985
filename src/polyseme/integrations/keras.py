"""Keras 3: batches of ELMo layers, and the layer that mixes them.

    elmo  ->  integrations.keras  ->  the models of users

The vectors are computed once, before training, and kept as float16; Keras trains the mix and what follows.
Works with every backend of Keras: KERAS_BACKEND, or that of ~/.keras/keras.json if it is installed (Keras
writes the file by itself and names TensorFlow in it). Otherwise it is torch, which Polyseme needs anyway.

B texts, T tokens, L layers, H values.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import Elmo, check_loaded
from polyseme.errors import UsageError, require
from polyseme.text.validate import Sentences, list_values


def _has_backend() -> bool:
    """Whether the backend of the settings of Keras is installed."""
    settings = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "keras.json"
    if not settings.is_file():
        return False
    backend = json.loads(settings.read_text(encoding="utf-8")).get("backend", "tensorflow")
    return find_spec(backend) is not None


if "keras" not in sys.modules and "KERAS_BACKEND" not in os.environ and not _has_backend():
    os.environ["KERAS_BACKEND"] = "torch"
require("keras", "keras", "The Keras integration")

import keras  # noqa: E402  # after its backend is chosen
from keras import ops  # noqa: E402

PADDING, UNKNOWN = 0, 1  # word ids


@keras.saving.register_keras_serializable("polyseme")
class WeightedSum(keras.layers.Layer):
    """Mixes layers (B, T, L, H) into vectors (B, T, H): gamma * sum_l softmax(w)_l * layer_l.

    Example:
        >>> vectors = WeightedSum()(keras.Input((None, 3, 384)))

    """

    def build(self, shape: tuple[int | None, ...]) -> None:
        """Create the weights; equal ones give the mean of the layers."""
        if len(shape) != 4:
            raise ValueError(f"The input has the shape {shape}, expected (texts, tokens, layers, values).")
        self.mix = self.add_weight(shape=(shape[2],), initializer="zeros", name="mix")
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")

    def call(self, layers: Any) -> Any:
        """Mix the layers of a batch."""
        return self.gamma * ops.einsum("btlh,l->bth", layers, ops.softmax(self.mix))

    def compute_output_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B, T, H)."""
        return shape[0], shape[1], shape[3]

    @property
    def shares(self) -> list[float]:
        """The weight of each layer after the softmax."""
        return [float(share) for share in ops.convert_to_numpy(ops.softmax(self.mix))]


class ElmoBatches(keras.utils.PyDataset):
    """Texts as batches for `fit`, `evaluate` and `predict`: ({"elmo", "words"}, labels).

    "elmo" is (B, T, L, H) with all layers, or (B, T, H) with another `layer`; "words" has the word ids
    (B, T), 0 for padding, 1 for words that are not in the vocabulary.

    Args:
        elmo: The model.
        texts: As for `Elmo.embed`.
        labels: The number of the class of each text; None to predict.
        layer: As in `Elmo.embed`.
        vocabulary: Ids of words, those of the training texts; None makes them from these texts.
        batch_size: Texts of a batch.
        shuffle: Whether to shuffle the texts before each epoch, with `seed`.
        seed: Of the shuffling.
        segment: As in `Elmo.embed`.

    Raises:
        ValueError: If there are no texts, one is empty, or an argument is invalid.

    Example:
        >>> batches = ElmoBatches(polyseme.load("en"), texts, labels)
        >>> model.fit(batches, epochs=5)

    """

    def __init__(
        self,
        elmo: Elmo,
        texts: Sentences,
        labels: Iterable[int] | None = None,
        *,
        layer: Any = "all",
        vocabulary: dict[str, int] | None = None,
        batch_size: int = 32,
        shuffle: bool = False,
        seed: int = 0,
        segment: str | None = None,
    ) -> None:
        super().__init__()
        check_loaded(elmo, "elmo")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size is {batch_size!r}, expected a whole number, 1 or more.")
        self._tokens = elmo.token_lists(texts, segment)
        if not self._tokens:
            raise UsageError("There are no texts.")
        self._labels = None if labels is None else _check_labels(list_values(labels, "labels"))
        if self._labels is not None and len(self._labels) != len(self._tokens):
            raise UsageError(f"{len(self._labels)} labels for {len(self._tokens)} texts. Pass one for each.")
        empty = [number for number, tokens in enumerate(self._tokens) if not tokens]
        if empty:
            raise UsageError(f"text {empty[0]} is empty. Leave it out.")
        self.vocabulary = make_vocabulary(self._tokens) if vocabulary is None else vocabulary
        plan = elmo.plan_embedding([], layer=layer)
        with elmo.track_counts() as counts:
            vectors = elmo.embed_tokens(self._tokens, plan.spec, counts)
        # All tokens in one table, and row 0 for padding: a batch is one look-up.
        self._lengths = np.array([len(tokens) for tokens in self._tokens], np.int64)
        self._starts = 1 + np.cumsum(self._lengths) - self._lengths
        self._vectors = _join_rows(vectors, int(self._lengths.sum()))
        ids = (self.vocabulary.get(token, UNKNOWN) for token in chain.from_iterable(self._tokens))
        self._words = np.array([PADDING, *ids], np.int32)
        self._batch_size, self._shuffle = batch_size, shuffle
        self._random = np.random.default_rng(seed)
        self._order = np.arange(len(self._tokens))
        self.on_epoch_end()

    def __len__(self) -> int:
        return math.ceil(len(self._tokens) / self._batch_size)

    def __getitem__(self, index: int) -> Any:
        numbers = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        lengths, steps = self._lengths[numbers, None], np.arange(self._lengths[numbers].max())
        rows = np.where(steps < lengths, self._starts[numbers, None] + steps, 0)  # (B, T)
        inputs = {
            "elmo": torch.from_numpy(self._vectors[rows]).float().numpy(),
            "words": self._words[rows],
        }
        return (inputs,) if self._labels is None else (inputs, self._labels[numbers])

    def on_epoch_end(self) -> None:
        """Shuffle for the next epoch; Keras calls this."""
        if self._shuffle:
            self._random.shuffle(self._order)


def make_vocabulary(texts: Iterable[Iterable[str]]) -> dict[str, int]:
    """Number the words of token lists from 2, in the order of their first use."""
    words = dict.fromkeys(chain.from_iterable(texts))
    return {word: number for number, word in enumerate(words, start=UNKNOWN + 1)}


def _check_labels(labels: list[Any]) -> NDArray[Any]:
    """The labels as an array; Keras would fail at strings, and train on NaN to a loss of NaN."""
    for number, label in enumerate(labels):
        if not isinstance(label, int | np.integer):  # bool is one
            raise UsageError(f"label {number} is {label!r:.40}, expected the number of a class.")
    return np.array(labels, np.int64)


def _join_rows(vectors: list[NDArray[np.float32]], n_tokens: int) -> NDArray[np.float16]:
    """A row of zeros, then the tokens of all texts: (1 + tokens, L, H) of (L, T, H), or (1 + tokens, H).

    torch rounds, because numpy takes seven times as long.
    """
    shape = vectors[0].shape
    joined = np.zeros((1 + n_tokens, *shape[:-2], shape[-1]), np.float16)
    out, start = torch.from_numpy(joined), 1
    for array in vectors:  # (L, T, H) or (T, H)
        rows = torch.from_numpy(array).movedim(-2, 0)
        out[start : start + len(rows)] = rows
        start += len(rows)
    return joined
