"""ELMoForManyLangs folders, read only: config.json, an architecture, char.dic, word.dic and pickled weights.

    a folder  ->  formats.models.manylangs  ->  formats.models.pretrained

Their conventions, and ours:
    <bow>, <eow>            their program uses <eow> for the begin of a word and <bow> for its end, and the
                            models are trained so: the two names are swapped in our alphabet
    *_linearity (4D, P)     rows i, f, g, o, the forget bias included  ->  our i, f, o, g, forget_bias = 0
    highways (2F, F)        [transform; gate], y = g x + (1 - g) relu(·)  ->  our carry gate is 1 - g: the
                            signs of its weights and bias are inverted
    projection (P, W + F)   the word table first, then the characters, as ours
    tables of characters and words have no row for sentence padding  ->  our row 0
A full softmax is kept (`classifier.name` "softmax"); the sampled and the CNN softmax have no table over all
words and are dropped. Only tensors are unpickled, never code.
"""

from __future__ import annotations

import os
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from polyseme.config import CharsSettings, ModelSettings, parse_settings, read_values
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.pretrained import Pretrained, assemble, check_weights
from polyseme.text.chars import CodepointAlphabet
from polyseme.text.vocab import Vocab

CONFIG, CHARS, WORDS = "config.json", "char.dic", "word.dic"
ENCODER, EMBEDDER, CLASSIFIER = "encoder.pkl", "token_embedder.pkl", "classifier.pkl"
MARKS = {"begin": "<bos>", "end": "<eos>", "unknown": "<oov>"}
SWAPPED = {"<bow>": "<eow>", "<eow>": "<bow>"}

# The architecture of all released models. Most of their zips name it but do not contain it.
PUBLISHED_NAME = "cnn_50_100_512_4096_sample.json"
PUBLISHED: dict[str, Any] = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 8192},
}


def is_manylangs(folder: Path) -> bool:
    """Whether `folder` is a model of ELMoForManyLangs."""
    return (folder / ENCODER).is_file() or (folder / EMBEDDER).is_file()


def read(folder: Path) -> Pretrained:
    """Read a model folder of ELMoForManyLangs."""
    architecture, source = _read_architecture(folder)
    config = _read_config(architecture, source)
    embedder = _PickledWeights(folder / EMBEDDER, source)
    tensors = _read_tokens(embedder, config) | _read_stacks(_PickledWeights(folder / ENCODER, source), config)
    alphabet = _read_alphabet(folder / CHARS, config.chars, tensors) if config.chars is not None else None
    vocab = None
    if config.words is not None or (folder / WORDS).is_file():
        vocab = _read_vocab(folder / WORDS, tensors)
    return assemble(
        config,
        tensors | _read_softmax(folder, architecture, config, len(vocab) if vocab else 0, source),
        alphabet=alphabet,
        vocab=vocab,
        origin={"format": "ELMoForManyLangs", "folder": folder.name},
        source=str(folder),
    )


def _read_architecture(folder: Path) -> tuple[dict[str, Any], Path]:
    """The architecture that config.json names, and its file; `config_path` cannot point outside `folder`."""
    path = folder / CONFIG
    config_path = read_values(path).get("config_path")
    base = re.split(r"[/\\]", config_path)[-1] if isinstance(config_path, str) else ""
    if base in ("", ".", ".."):
        raise FormatError(
            f"{path}: config_path is {config_path!r}, expected the name of the architecture's file."
        )
    source = folder / base
    if os.path.isfile(source):  # False for a name that is too long, too
        return read_values(source), source
    if base == PUBLISHED_NAME:
        return PUBLISHED, source
    raise FormatError(
        f"{folder / base[:60]}: no such file, but {CONFIG} names it as the model's architecture. "
        "Copy it into the folder, from the folder configs where the model was trained."
    )


def _read_config(architecture: Mapping[str, Any], source: Path) -> ModelSettings:
    encoder, embedder = (_get_section(architecture, name, source) for name in ("encoder", "token_embedder"))
    if str(encoder.get("name")).lower() != "elmo":
        raise FormatError(
            f"{source}: encoder.name is {encoder.get('name')!r}; only 'elmo' is supported. "
            "Their 'lstm' feeds both directions into each upper layer, unlike the published ELMo."
        )
    if str(embedder.get("name")).lower() != "cnn":
        raise FormatError(
            f"{source}: token_embedder.name is {embedder.get('name')!r}; only 'cnn' is supported. "
            "Their 'lstm' reads characters with an LSTM, unlike the published ELMo."
        )
    values: dict[str, Any] = {"segment": "split", "token_projection": True}
    values["recurrent"] = {
        "cell": "lstm",
        "layers": encoder.get("n_layers"),
        "cells": encoder.get("dim"),
        "outputs": encoder.get("projection_dim"),
        "projection": True,
        "cell_clip": encoder.get("cell_clip") or None,
        "output_clip": encoder.get("proj_clip") or None,
        "residual": True,
        "forget_bias": 0.0,
    }
    if embedder.get("word_dim"):
        values["words"] = {"dim": embedder["word_dim"]}
    if embedder.get("char_dim"):
        values["chars"] = {
            "encoding": "codepoints",
            "max_chars": embedder.get("max_characters_per_token"),
            "dim": embedder["char_dim"],
            "filters": embedder.get("filters"),
            "activation": embedder.get("activation"),
            "highways": embedder.get("n_highway"),
        }
    return parse_settings(ModelSettings, values, str(source))


def _get_section(values: Mapping[str, Any], name: str, source: Path) -> dict[str, Any]:
    section = values.get(name)
    if not isinstance(section, dict):
        raise FormatError(
            f"{source}: no section {name!r}. Is it the architecture of an ELMoForManyLangs model?"
        )
    return section


class _PickledWeights:
    """The tensors of a pickled state by name."""

    def __init__(self, path: Path, source: Path) -> None:
        self.path = path
        self._source = source  # the architecture's file, for errors about shapes
        self._tensors = _unpickle(path)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str, *shape: int, because: str) -> Tensor:
        """The tensor `name`, whose shape must be `shape` (-1: any) because of the setting `because`."""
        if name not in self._tensors:
            raise FormatError(
                f"{self.path}: {name} is missing, but {because} in {self._source.name} require it."
            )
        tensor = self._tensors[name]
        if len(shape) != tensor.ndim or any(
            w not in (-1, f) for w, f in zip(shape, tensor.shape, strict=True)
        ):
            expected = str(shape).replace("-1", "any")
            raise FormatError(
                f"{self.path}: {name} is {tuple(tensor.shape)}, but {because} in {self._source.name} require "
                f"{expected}. Are they of the same model?"
            )
        return tensor


def _unpickle(path: Path) -> dict[str, Tensor]:
    """The tensors in `path`; a pickle that would run code is refused before anything runs."""
    try:
        _refuse_compressed(path)
        values = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise FormatError(
            f"{path}: no such file, but it holds the model's weights. Copy it into the folder."
        ) from None
    except pickle.UnpicklingError as problem:
        reason = str(problem).partition("\n")[0]
        raise FormatError(
            f"{path}: contains more than tensors ({reason:.120}): refused, and nothing in it was run. "
            "Ask for the model from a source you trust."
        ) from None
    except Exception as problem:  # a damaged pickle can raise anything
        reason = str(problem).partition("\n")[0]
        raise FormatError(f"{path}: damaged or not torch's format ({reason:.120}). Copy it again.") from None
    is_state = isinstance(values, dict) and all(
        isinstance(name, str) and isinstance(value, Tensor) and value.layout == torch.strided
        for name, value in values.items()
    )
    if not is_state:
        raise FormatError(f"{path}: expected tensors by name. Is it a state of ELMoForManyLangs?")
    size = path.stat().st_size
    for name, value in values.items():
        if value.numel() * value.element_size() > size:  # a stride of 0 repeats one number
            raise FormatError(
                f"{path}: {name} declares {value.numel():,} numbers in a file of {size:,} bytes."
            )
    return check_weights(values, str(path))


def _refuse_compressed(path: Path) -> None:
    """Refuse compressed archives: torch does not write them, and they may be bombs."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            return
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise pickle.UnpicklingError("compressed records")


def _read_alphabet(path: Path, chars: CharsSettings, tensors: Mapping[str, Tensor]) -> CodepointAlphabet:
    rows = len(tensors["tokens.chars.embedding.weight"]) - 1
    characters = [SWAPPED.get(entry, entry) for entry in _read_dic(path, rows)]
    try:
        return CodepointAlphabet(characters, chars.max_chars)
    except UsageError as problem:
        raise FormatError(f"{path}: {problem}") from None


def _read_vocab(path: Path, tensors: Mapping[str, Tensor]) -> Vocab:
    table = tensors.get("tokens.words.weight")
    words = _read_dic(path, len(table) - 1 if table is not None else None)
    try:
        return Vocab(words, begin=MARKS["begin"], end=MARKS["end"], unknown=MARKS["unknown"])
    except UsageError as problem:
        raise FormatError(f"{path}: {problem}") from None


def _read_dic(path: Path, rows: int | None) -> list[str]:
    """The entries of a .dic by number; `rows` is the number of rows of the table, None if there is no table.

    Lines are read as in ELMoForManyLangs: white space is stripped, a line with only a number stands for
    U+3000, and of two equal entries the later counts. A row without an entry gets a name with a space, which
    no token has.
    """
    numbers: dict[str, int] = {}
    for line_number, line in enumerate(_read_lines(path), start=1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        entry, number = ("\u3000", fields[0]) if len(fields) == 1 else (fields[0], fields[-1])
        if len(fields) > 2 or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise FormatError(f"{path}:{line_number}: {line!r:.60}, expected an entry, a tab and its number.")
        numbers[entry] = int(number)
    count = rows if rows is not None else len(numbers)
    entries = [f"<unused {row}>" for row in range(count)]
    for entry, row in numbers.items():
        if row >= count:
            raise FormatError(
                f"{path}: {entry!r:.40} has number {row}, but there are {count} rows. Is it of this model?"
            )
        entries[row] = entry
    return entries


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file, but the model needs it. Copy it into the folder.") from None
    except OSError as problem:
        raise FormatError(f"{path}: cannot be read ({problem.strerror}). Check its permissions.") from None
    except UnicodeDecodeError as problem:
        raise FormatError(f"{path}: not UTF-8 (byte {problem.start}). Copy it again.") from None


def _read_tokens(state: _PickledWeights, config: ModelSettings) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    if config.words is not None:
        name = "word_emb_layer.embedding.weight"
        table = state.take(name, -1, config.words.dim, because="token_embedder.word_dim")
        tensors["tokens.words.weight"] = _add_padding_row(table)
    if config.chars is not None:
        tensors |= _read_char_cnn(state, config.chars)
    because = "encoder.projection_dim, word_dim and filters"
    outputs = config.recurrent.outputs
    weight = state.take("projection.weight", outputs, config.token_size, because=because)
    bias = state.take("projection.bias", outputs, because=because)
    return tensors | {"tokens.projection.weight": weight, "tokens.projection.bias": bias}


def _read_char_cnn(state: _PickledWeights, chars: CharsSettings) -> dict[str, Tensor]:
    table = state.take("char_emb_layer.embedding.weight", -1, chars.dim, because="token_embedder.char_dim")
    tensors = {"tokens.chars.embedding.weight": _add_padding_row(table)}
    because = "token_embedder.filters and char_dim"
    for number, (width, count) in enumerate(chars.filters):
        source, name = f"convolutions.{number}", f"tokens.chars.convolutions.{number}"
        tensors[f"{name}.weight"] = state.take(f"{source}.weight", count, chars.dim, width, because=because)
        tensors[f"{name}.bias"] = state.take(f"{source}.bias", count, because=because)
    because, size = "token_embedder.n_highway and filters", chars.size
    for number in range(chars.highways):
        source, name = f"highways._layers.{number}", f"tokens.chars.highways.{number}"
        weight = state.take(f"{source}.weight", 2 * size, size, because=because)
        bias = state.take(f"{source}.bias", 2 * size, because=because)
        tensors |= {
            f"{name}.transform.weight": weight[:size].clone(),
            f"{name}.transform.bias": bias[:size].clone(),
        }
        tensors |= {f"{name}.carry.weight": -weight[size:], f"{name}.carry.bias": -bias[size:]}
    for more in (f"convolutions.{len(chars.filters)}.bias", f"highways._layers.{chars.highways}.bias"):
        if more in state:
            raise FormatError(
                f"{state.path}: has {more}, more than the architecture says. Are they of the same model?"
            )
    return tensors


def _read_stacks(state: _PickledWeights, config: ModelSettings) -> dict[str, Tensor]:
    cells, outputs = config.recurrent.cells, config.recurrent.outputs
    because = "encoder.n_layers, dim and projection_dim"
    tensors: dict[str, Tensor] = {}
    for direction in ("forward", "backward"):
        for layer in range(config.recurrent.layers):
            source, cell = f"{direction}_layer_{layer}", f"{direction}_stack.cells.{layer}"
            for source_part, part in (("input", "input_weight"), ("state", "hidden_weight")):
                name = f"{source}.{source_part}_linearity.weight"
                tensors[f"{cell}.{part}"] = _to_our_gates(
                    state.take(name, 4 * cells, outputs, because=because)
                )
            bias = state.take(f"{source}.state_linearity.bias", 4 * cells, because=because)
            tensors[f"{cell}.bias"] = _to_our_gates(bias)
            name = f"{source}.state_projection.weight"
            tensors[f"{cell}.projection"] = state.take(name, outputs, cells, because=because)
        if f"{direction}_layer_{config.recurrent.layers}.state_linearity.bias" in state:
            raise FormatError(
                f"{state.path}: has more layers than encoder.n_layers says. Are they of one model?"
            )
    return tensors


def _read_softmax(
    folder: Path, architecture: Mapping[str, Any], config: ModelSettings, words: int, source: Path
) -> dict[str, Tensor]:
    """The full softmax over all `words`, or nothing."""
    classifier = architecture.get("classifier")
    is_full = isinstance(classifier, dict) and str(classifier.get("name")).lower() == "softmax"
    if not is_full or not words or not (folder / CLASSIFIER).is_file():
        return {}
    state = _PickledWeights(folder / CLASSIFIER, source)
    because = f"{WORDS} and encoder.projection_dim"
    return {
        "softmax.weight": state.take("hidden2tag.weight", words, config.recurrent.outputs, because=because),
        "softmax.bias": state.take("hidden2tag.bias", words, because=because),
    }


def _to_our_gates(rows: Tensor) -> Tensor:
    """Reorder the first axis from i, f, g, o to i, f, o, g."""
    i, f, g, o = rows.chunk(4)
    return torch.cat([i, f, o, g])


def _add_padding_row(rows: Tensor) -> Tensor:
    return torch.cat([rows.new_zeros(1, rows.shape[1]), rows])
