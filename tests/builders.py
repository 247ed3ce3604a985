"""Small complete models with random weights, in memory and as files of other programs.

    a config  ->  builders.random_model  ->  Pretrained
    a Bilm    ->  builders.write_bilm    ->  options.json and model.hdf5, written without polyseme.formats

L layers, T tokens without <S> and </S>, H = both directions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.config import ModelSettings
from polyseme.formats.models.pretrained import Pretrained, assemble, build_network
from polyseme.model.fast.kernels import native
from polyseme.model.fast.packing import BatchOutput
from polyseme.text.chars import SPECIALS, ByteAlphabet, CodepointAlphabet
from polyseme.text.vocab import Vocab

Array = NDArray[np.float32]
WORDS = ("the", "bank", "of", "river", "failed", "他", "银行", "naïve", "!")
SENTENCES = [
    ["the", "bank", "failed", "!"],
    ["他", "unknown-and-much-longer-than-any-row-of-characters", "银行", "naïve", "x"],
    ["river"],
]
# How far the same vectors may be apart in two places of memory: the C library gives the same bits, torch's
# products round by alignment.
ROUNDING = 0.0 if native.is_available() else 1e-5
BILM_MARKS = {"begin": "<S>", "end": "</S>", "unknown": "<UNK>"}


def small_config(**changes: Any) -> ModelSettings:
    """A very small model of the published architecture; `changes` replace whole sections."""
    values: dict[str, Any] = {
        "chars": {"max_chars": 12, "dim": 3, "filters": [[1, 2], [2, 3]], "highways": 1},
        "recurrent": {"layers": 2, "cells": 6, "outputs": 4},
    }
    return ModelSettings.model_validate(values | changes)


def random_model(
    config: ModelSettings,
    seed: int = 0,
    *,
    words: Sequence[str] | None = WORDS,
    softmax: bool = False,
    marks: Mapping[str, str] = BILM_MARKS,
) -> Pretrained:
    """A model of `config` with random weights and the vocabulary `marks` + `words` (None: no vocabulary)."""
    strings: dict[str, Any] = dict(marks)
    vocab = Vocab([*marks.values(), *words], **strings) if words is not None else None
    alphabet: ByteAlphabet | CodepointAlphabet | None = None
    if config.chars is not None and config.chars.encoding == "bytes":
        alphabet = ByteAlphabet(config.chars.max_chars)
    elif config.chars is not None:
        alphabet = CodepointAlphabet([*SPECIALS, *sorted(set("".join(WORDS)))], config.chars.max_chars)
    network = build_network(
        config,
        n_chars=alphabet.size if alphabet else 0,
        n_words=len(vocab) if vocab else 0,
        padding=alphabet.padding if alphabet else 0,
    )
    rng = np.random.default_rng(seed)
    tensors = {name: _random(tensor.shape, rng) for name, tensor in network.state_dict().items()}
    for name in ("tokens.chars.embedding.weight", "tokens.words.weight"):
        if name in tensors:
            tensors[name][0] = 0
    if softmax and vocab is not None:
        tensors["softmax.weight"] = _random((len(vocab), config.recurrent.outputs), rng)
        tensors["softmax.bias"] = _random((len(vocab),), rng)
    return assemble(
        config, tensors, alphabet=alphabet, vocab=vocab, origin={"made": "at random"}, source="test"
    )


def _random(shape: Sequence[int], rng: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(rng.normal(0, 0.7, tuple(shape)).astype(np.float32))


@torch.inference_mode()
def all_layers(model: Pretrained, sentences: Sequence[Sequence[str]] = SENTENCES) -> list[Array]:
    """All layers of all tokens: (L, T, H) per sentence, each from zero state."""
    results = []
    for sentence in sentences:
        vectors = model.network.tokens(*model.token_ids(sentence))
        rows = torch.tensor([[0, *range(2, len(sentence) + 2), 1]])
        layers = model.network.run_stacks(vectors, rows, torch.tensor([len(sentence) + 2])).layers()
        results.append(layers[:, 0, 1:-1].numpy())
    return results


def filled(output: BatchOutput, value: float) -> BatchOutput:
    """The output of a model with every value replaced by `value`."""
    parts = [
        part._replace(layers=[torch.full_like(layer, value) for layer in part.layers])
        for part in output.parts
    ]
    return replace(output, parts=parts)


def assert_same_vectors(model: Pretrained, expected: Pretrained, atol: float = 1e-6) -> None:
    """Both models give all tokens of SENTENCES the same layers."""
    for layers, expected_layers in zip(all_layers(model), all_layers(expected), strict=True):
        np.testing.assert_allclose(layers, expected_layers, atol=atol)


@dataclass(frozen=True)
class Bilm:
    """A model as bilm-tf describes it."""

    layers: int = 2
    cells: int = 6
    outputs: int = 4
    filters: tuple[tuple[int, int], ...] = ((1, 2), (2, 3))  # () means a model of word ids
    highways: int = 1
    projection: bool | None = None  # CNN_proj; None: if the sum of the filters is not `outputs`
    char_rows: int = 261
    n_characters: int = 262
    softmax: bool = False
    alone: bool = False  # RNN/LSTMCell without MultiRNNCell, as one-layer models are dumped

    def options(self) -> dict[str, Any]:
        """The content of options.json, with some keys that training adds."""
        lstm = {"dim": self.cells, "projection_dim": self.outputs, "n_layers": self.layers}
        lstm |= {"cell_clip": 3, "proj_clip": 3, "use_skip_connections": True}
        options: dict[str, Any] = {"lstm": lstm, "bidirectional": True, "n_epochs": 10}
        if self.filters:
            options["char_cnn"] = {
                "activation": "relu",
                "embedding": {"dim": 3},
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.highways,
                "n_characters": self.n_characters,
                "max_characters_per_token": 12,
            }
        return options

    def datasets(self, seed: int = 0) -> dict[str, Array]:
        """Random weights with bilm-tf's names."""
        size = sum(count for _, count in self.filters)
        shapes: dict[str, tuple[int, ...]] = {}
        if self.filters:
            shapes["char_embed"] = (self.char_rows, 3)
            for number, (width, count) in enumerate(self.filters):
                shapes |= {f"CNN/W_cnn_{number}": (1, width, 3, count), f"CNN/b_cnn_{number}": (count,)}
            for number in range(self.highways):
                for part in ("carry", "transform"):
                    shapes[f"CNN_high_{number}/W_{part}"] = (size, size)
                    shapes[f"CNN_high_{number}/b_{part}"] = (size,)
            if size != self.outputs if self.projection is None else self.projection:
                shapes |= {"CNN_proj/W_proj": (size, self.outputs), "CNN_proj/b_proj": (self.outputs,)}
        else:
            shapes["embedding"] = (len(WORDS) + 3, self.outputs)
        for direction in (0, 1):
            for layer in range(self.layers):
                prefix = f"RNN_{direction}/RNN/" + ("" if self.alone else f"MultiRNNCell/Cell{layer}/")
                shapes[f"{prefix}LSTMCell/W_0"] = (2 * self.outputs, 4 * self.cells)
                shapes[f"{prefix}LSTMCell/B"] = (4 * self.cells,)
                if self.cells != self.outputs:
                    shapes[f"{prefix}LSTMCell/W_P_0"] = (self.cells, self.outputs)
        if self.softmax:
            shapes |= {"softmax/W": (len(WORDS) + 3, self.outputs), "softmax/b": (len(WORDS) + 3,)}
        rng = np.random.default_rng(seed)
        return {name: rng.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def write_bilm(
    folder: Path,
    bilm: Bilm = Bilm(),  # frozen
    *,
    weights: str = "model.hdf5",
    options: str = "options.json",
    vocab: str | None = "vocab.txt",
    changes: Mapping[str, Any] = {},
) -> Path:
    """Write a random model with bilm-tf's names; `changes` replace datasets (None: leave out)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / options).write_text(json.dumps(bilm.options()))
    with h5py.File(folder / weights, "w") as file:
        for name, values in (bilm.datasets() | dict(changes)).items():
            if values is not None:
                file.create_dataset(name, data=values)
    if vocab is not None:
        (folder / vocab).write_text("\n".join([*BILM_MARKS.values(), *WORDS, ""]), encoding="utf-8")
    return folder


def read_datasets(path: Path) -> dict[str, Array]:
    """All datasets of an hdf5 file by name."""
    datasets: dict[str, Array] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: datasets.update({name: item[()]} if hasattr(item, "shape") else {})
        )
    return datasets
