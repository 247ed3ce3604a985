"""bilm-tf and AllenNLP: options.json and a weights .hdf5, read and written.

    formats.models.pretrained  <->  formats.models.hdf5  <->  options.json, *.hdf5

Their names and conventions, and ours:
    W_0 (2P, 4D)            rows [input; hidden], columns i, j, f, o  ->  our rows i, f, o, candidate (= j)
    B (4D)                  the forget bias of 1 is not stored        ->  our forget_bias = 1
    char_embed (261, C)     no row for sentence padding               ->  our row 0
    W_cnn (1, width, C, n)  -> Conv1d (n, C, width);  highway and projection (in, out) -> (out, in)
Converting there and back gives the same bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.config import CharsSettings, ModelSettings, RecurrentSettings, read_values
from polyseme.errors import FormatError
from polyseme.formats.hdf5_writing import Hdf5File
from polyseme.formats.models.options import read_options, read_word_list
from polyseme.formats.models.pretrained import Pretrained, assemble
from polyseme.formats.safe_hdf5 import SafeFile, open_hdf5
from polyseme.io.progress import ByteProgress, OnProgress, ignore_progress
from polyseme.model.softmax import AdaptiveSoftmax, Softmax
from polyseme.text.chars import ByteAlphabet
from polyseme.text.vocab import Vocab

Array = NDArray[np.float32]
DIRECTIONS = ("forward_stack", "backward_stack")
SAME_MODEL = "Are options and weights of the same model?"


def read(
    weights: Path, options: Path, vocab: Path | None, progress: OnProgress = ignore_progress
) -> Pretrained:
    """Read the model in `weights` as described by `options`."""
    values = read_values(options)
    config = read_options(values, options)
    with open_hdf5(weights, progress) as file:
        tensors, projected = _read_tokens(file, config, options)
        for direction, stack in enumerate(DIRECTIONS):
            for layer in range(config.recurrent.layers):
                cell = _read_cell(file, config.recurrent, direction, layer, options)
                tensors |= {f"{stack}.cells.{layer}.{name}": value for name, value in cell.items()}
        tensors |= _read_softmax(file, config)
    words = Vocab.read(vocab) if vocab is not None else None
    return assemble(
        config.model_copy(update={"token_projection": projected}),
        tensors,
        alphabet=ByteAlphabet(config.chars.max_chars) if config.chars else None,
        vocab=words,
        origin={"format": "bilm-tf/AllenNLP hdf5", "file": weights.name},
        source=str(weights),
        word_list=read_word_list(values, options),
    )


def _read_tokens(file: SafeFile, config: ModelSettings, options: Path) -> tuple[dict[str, Tensor], bool]:
    """Tensors of the token encoder, and whether it has a projection."""
    outputs = config.recurrent.outputs
    if config.chars is None:
        embedding = _read_array(file, "embedding", (-1, outputs), "lstm.projection_dim", options)
        return {"tokens.words.weight": _add_padding_row(embedding)}, False
    tensors = _read_char_cnn(file, config.chars, options)
    size = config.chars.size
    projected = "CNN_proj" in file
    if not projected and size != outputs:
        raise FormatError(
            f"{file.path}: CNN_proj is missing, but {options.name} has {size} filters "
            f"and lstm.projection_dim {outputs}. {SAME_MODEL}"
        )
    if projected:
        weight = _read_array(
            file, "CNN_proj/W_proj", (size, outputs), "char_cnn.filters, lstm.projection_dim", options
        )
        tensors["tokens.projection.weight"] = _to_tensor(weight.T)
        bias = _read_array(file, "CNN_proj/b_proj", (outputs,), "lstm.projection_dim", options)
        tensors["tokens.projection.bias"] = _to_tensor(bias)
    return tensors, projected


def _read_char_cnn(file: SafeFile, chars: CharsSettings, options: Path) -> dict[str, Tensor]:
    embedding = _read_array(file, "char_embed", (-1, chars.dim), "char_cnn.embedding.dim", options)
    tensors = {"tokens.chars.embedding.weight": _add_padding_row(embedding)}
    for number, (width, count) in enumerate(chars.filters):
        name = f"tokens.chars.convolutions.{number}"
        because = f"char_cnn.filters[{number}] and embedding.dim"
        weight = _read_array(file, f"CNN/W_cnn_{number}", (1, width, chars.dim, count), because, options)
        tensors[f"{name}.weight"] = _to_tensor(weight[0].transpose(2, 1, 0))
        tensors[f"{name}.bias"] = _to_tensor(
            _read_array(file, f"CNN/b_cnn_{number}", (count,), because, options)
        )
    for number in range(chars.highways):
        for part in ("transform", "carry"):
            name = f"tokens.chars.highways.{number}.{part}"
            group, size = f"CNN_high_{number}", chars.size
            weight = _read_array(file, f"{group}/W_{part}", (size, size), "char_cnn.filters", options)
            tensors[f"{name}.weight"] = _to_tensor(weight.T)
            bias = _read_array(file, f"{group}/b_{part}", (size,), "char_cnn.filters", options)
            tensors[f"{name}.bias"] = _to_tensor(bias)
    if f"CNN_high_{chars.highways}" in file:
        raise FormatError(
            f"{file.path}: has more highway layers than char_cnn.n_highway in {options.name}. {SAME_MODEL}"
        )
    return tensors


def _read_cell(
    file: SafeFile, recurrent: RecurrentSettings, direction: int, layer: int, options: Path
) -> dict[str, Tensor]:
    group = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    single = f"RNN_{direction}/RNN/LSTMCell"  # the name in a one-layer model
    if recurrent.layers == 1 and group not in file and single in file:
        group = single
    outputs, cells = recurrent.outputs, recurrent.cells
    because = "lstm.projection_dim and lstm.dim"
    weight = _read_array(file, f"{group}/W_0", (2 * outputs, 4 * cells), because, options)
    tensors = {
        "input_weight": _to_tensor(_to_our_gates(weight[:outputs]).T),
        "hidden_weight": _to_tensor(_to_our_gates(weight[outputs:]).T),
        "bias": _to_tensor(_to_our_gates(_read_array(file, f"{group}/B", (4 * cells,), "lstm.dim", options))),
    }
    if recurrent.projects:
        tensors["projection"] = _to_tensor(
            _read_array(file, f"{group}/W_P_0", (cells, outputs), because, options).T
        )
    if f"RNN_{direction}/RNN/MultiRNNCell/Cell{recurrent.layers}" in file:
        raise FormatError(f"{file.path}: has more layers than lstm.n_layers in {options.name}. {SAME_MODEL}")
    return tensors


def _read_softmax(file: SafeFile, config: ModelSettings) -> dict[str, Tensor]:
    if "softmax/W" not in file:
        return {}
    shape, outputs = file.shape("softmax/W"), config.recurrent.outputs
    if len(shape) != 2 or shape[1] != outputs or file.shape("softmax/b") != shape[:1]:
        raise FormatError(
            f"{file.path}: softmax/W is {shape} and softmax/b {file.shape('softmax/b')}, "
            f"expected (words, {outputs}) and (words,). {SAME_MODEL}"
        )
    return {
        "softmax.weight": _to_tensor(file.read("softmax/W")),
        "softmax.bias": _to_tensor(file.read("softmax/b")),
    }


def _read_array(file: SafeFile, name: str, shape: tuple[int, ...], because: str, options: Path) -> Array:
    """Read `name`, whose shape must be `shape` (-1: any) because of the option `because`."""
    actual = file.shape(name)
    if len(actual) != len(shape) or any(w not in (-1, n) for w, n in zip(shape, actual, strict=True)):
        expected = str(shape).replace("-1", "any")
        raise FormatError(
            f"{file.path}: {name} is {actual}, but {because} in {options.name} require {expected}. "
            + SAME_MODEL
        )
    return file.read(name)


def _to_tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def _add_padding_row(rows: Array) -> Tensor:
    return _to_tensor(np.concatenate([np.zeros((1, rows.shape[1]), np.float32), rows]))


def _to_our_gates(columns: Array) -> Array:
    """Reorder the last axis from i, j, f, o to i, f, o, j."""
    i, j, f, o = np.split(columns, 4, axis=-1)
    return np.concatenate([i, f, o, j], axis=-1)


def _to_their_gates(columns: Array) -> Array:
    """Reorder the last axis from i, f, o, j to i, j, f, o."""
    i, f, o, j = np.split(columns, 4, axis=-1)
    return np.concatenate([i, j, f, o], axis=-1)


def write(model: Pretrained, weights: Path, options: Path, progress: OnProgress = ignore_progress) -> None:
    """Write `model` as an hdf5 file and its options, as bilm-tf and AllenNLP read them."""
    check_representable(model)
    options.write_text(json.dumps(_make_options(model), indent=2) + "\n", encoding="utf-8")
    datasets = _make_datasets(model)
    written = ByteProgress(progress, "writing", sum(values.nbytes for values in datasets.values()))
    with Hdf5File(weights) as file:
        for name, values in datasets.items():
            file.create_dataset(name, data=values, dtype="float32")
            written.add(values.nbytes)


def check_representable(model: Pretrained) -> None:
    """Refuse a model that the hdf5 layout cannot represent.

    Raises:
        FormatError: Names what it cannot represent.

    """
    config, reason = model.config, None
    if config.recurrent.cell != "lstm":
        reason = f"{config.recurrent.cell} cells, only LSTM cells"
    elif config.chars is not None and config.words is not None:
        reason = "both a word table and a char-CNN"
    elif config.chars is not None and config.chars.encoding != "bytes":
        reason = "characters as code points, only bytes"
    elif config.words is not None and config.projects_tokens:
        reason = "a projected word table"
    elif config.recurrent.projects and config.recurrent.outputs == config.recurrent.cells:
        reason = "a projection that does not reduce the size"
    elif isinstance(model.softmax, AdaptiveSoftmax):
        reason = "an adaptive softmax"
    if reason is not None:
        raise FormatError(
            f'The bilm-tf hdf5 layout cannot represent {reason}. Use the native format: `to="native"`.'
        )


def _make_options(model: Pretrained) -> dict[str, Any]:
    """The options.json of `model`, with all keys, since AllenNLP and bilm-tf each require some.

    For a single layer the residual connection is always declared: it has no effect, and AllenNLP requires it.
    """
    recurrent, chars = model.config.recurrent, model.config.chars
    options: dict[str, Any] = {
        "lstm": {
            "dim": recurrent.cells,
            "projection_dim": recurrent.outputs,
            "n_layers": recurrent.layers,
            "cell_clip": recurrent.cell_clip,
            "proj_clip": recurrent.output_clip,
            "use_skip_connections": recurrent.residual or recurrent.layers == 1,
        }
    }
    if chars is not None:
        options["char_cnn"] = {
            "activation": chars.activation,
            "embedding": {"dim": chars.dim},
            "filters": [list(pair) for pair in chars.filters],
            "n_highway": chars.highways,
            "n_characters": 262,
            "max_characters_per_token": chars.max_chars,
        }
    if model.vocab is not None:
        options["n_tokens_vocab"] = len(model.vocab)
    if model.config.segment != "split":
        options["polyseme"] = {"segment": model.config.segment}  # other programs ignore unknown keys
        if model.word_list is not None:
            options["polyseme"]["words"] = model.word_list.lines()
    return options


def _make_datasets(model: Pretrained) -> dict[str, Array]:
    """All weights by bilm-tf's names."""
    tensors = {name: tensor.detach().float().cpu().numpy() for name, tensor in model.tensors().items()}
    datasets: dict[str, Array] = {}
    if model.config.words is not None:
        datasets["embedding"] = tensors["tokens.words.weight"][1:]
    if model.config.chars is not None:
        datasets |= _make_char_cnn_datasets(tensors, model.config.chars)
    if model.config.projects_tokens:
        datasets["CNN_proj/W_proj"] = tensors["tokens.projection.weight"].T
        datasets["CNN_proj/b_proj"] = tensors["tokens.projection.bias"]
    for direction, stack in enumerate(DIRECTIONS):
        for layer in range(model.config.recurrent.layers):
            group = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            cell = f"{stack}.cells.{layer}"
            both = np.concatenate([tensors[f"{cell}.input_weight"].T, tensors[f"{cell}.hidden_weight"].T])
            datasets[f"{group}/W_0"] = _to_their_gates(both)
            datasets[f"{group}/B"] = _to_stored_bias(tensors[f"{cell}.bias"], model.config.recurrent)
            if model.config.recurrent.projects:
                datasets[f"{group}/W_P_0"] = tensors[f"{cell}.projection"].T
    if isinstance(model.softmax, Softmax):
        rows = model.softmax.rows().detach().float().cpu().numpy()
        datasets |= {"softmax/W": rows, "softmax/b": tensors["softmax.bias"]}
    return datasets


def _make_char_cnn_datasets(tensors: dict[str, Array], chars: CharsSettings) -> dict[str, Array]:
    datasets = {"char_embed": tensors["tokens.chars.embedding.weight"][1:]}
    for number in range(len(chars.filters)):
        name = f"tokens.chars.convolutions.{number}"
        datasets[f"CNN/W_cnn_{number}"] = tensors[f"{name}.weight"].transpose(2, 1, 0)[None]
        datasets[f"CNN/b_cnn_{number}"] = tensors[f"{name}.bias"]
    for number in range(chars.highways):
        for part in ("transform", "carry"):
            name = f"tokens.chars.highways.{number}.{part}"
            datasets[f"CNN_high_{number}/W_{part}"] = tensors[f"{name}.weight"].T
            datasets[f"CNN_high_{number}/b_{part}"] = tensors[f"{name}.bias"]
    return datasets


def _to_stored_bias(bias: Array, recurrent: RecurrentSettings) -> Array:
    """The bias as bilm-tf stores it: without the 1 that it adds to the forget gate."""
    if recurrent.forget_bias != 1.0:
        bias = bias.copy()
        bias[recurrent.cells : 2 * recurrent.cells] += np.float32(recurrent.forget_bias - 1.0)
    return _to_their_gates(bias)
