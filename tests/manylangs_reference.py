"""ELMoForManyLangs without polyseme: random model folders, and their vectors in plain numpy.

    an architecture  ->  manylangs_reference  ->  a folder with pickles, and the layers it must give

Follows the conventions of ELMoForManyLangs. C characters, P one direction, T tokens with <bos> and <eos>,
L layers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.float64]]
CHARS = ["t", "h", "e", "<bos>", "银", "<eos>", "<oov>", "\u3000", "<pad>", "<bow>", "行", "<eow>"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "the", "\u3000", "银行", "thethethet"]  # the last is truncated
MAX_CHARS, FILTERS, P, D, WORD_DIM, CHAR_DIM = 12, [[1, 3], [2, 2], [4, 2]], 4, 6, 3, 5
SENTENCES = [["the", "银行", "x"], ["thethethethethe"], ["\u3000", "eht"]]


def architecture(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "encoder": {
            "name": "elmo",
            "projection_dim": P,
            "cell_clip": 0.8,
            "proj_clip": 0.9,
            "dim": D,
            "n_layers": 2,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": FILTERS,
            "n_highway": 2,
            "word_dim": WORD_DIM,
            "char_dim": CHAR_DIM,
            "max_characters_per_token": MAX_CHARS,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": 8192},
        "dropout": 0.1,
    }
    for name, value in changes.items():
        section, _, key = name.partition("__")
        values[section] = values[section] | {key: value}
    return values


def states(values: dict[str, Any]) -> tuple[Arrays, Arrays]:
    """Random weights with the names of token_embedder.pkl and encoder.pkl."""
    embedder, encoder = values["token_embedder"], values["encoder"]
    filters, size, outputs, cells = (
        embedder["filters"],
        sum(n for _, n in embedder["filters"]),
        encoder["projection_dim"],
        encoder["dim"],
    )
    shapes: dict[str, tuple[int, ...]] = {}
    if embedder["word_dim"]:
        shapes["word_emb_layer.embedding.weight"] = (len(WORDS), embedder["word_dim"])
    if embedder["char_dim"]:
        shapes["char_emb_layer.embedding.weight"] = (len(CHARS), embedder["char_dim"])
        for i, (width, n) in enumerate(filters):
            shapes |= {
                f"convolutions.{i}.weight": (n, embedder["char_dim"], width),
                f"convolutions.{i}.bias": (n,),
            }
        for k in range(embedder["n_highway"]):
            shapes |= {
                f"highways._layers.{k}.weight": (2 * size, size),
                f"highways._layers.{k}.bias": (2 * size,),
            }
    token = embedder["word_dim"] + (size if embedder["char_dim"] else 0)
    shapes |= {"projection.weight": (outputs, token), "projection.bias": (outputs,)}
    stacks: dict[str, tuple[int, ...]] = {}
    for direction in ("forward", "backward"):
        for layer in range(encoder["n_layers"]):
            name = f"{direction}_layer_{layer}"
            stacks[f"{name}.input_linearity.weight"] = (4 * cells, outputs)
            stacks[f"{name}.state_linearity.weight"] = (4 * cells, outputs)
            stacks[f"{name}.state_linearity.bias"] = (4 * cells,)
            stacks[f"{name}.state_projection.weight"] = (outputs, cells)
    rng = np.random.default_rng(3)
    return tuple(  # type: ignore[return-value]
        {
            name: rng.normal(0, 0.8, shape).astype(np.float32).astype(np.float64)
            for name, shape in named_shapes.items()
        }
        for named_shapes in (shapes, stacks)
    )


def save(path: Path, arrays: Arrays, *, old: bool = True) -> None:
    """Save as torch 0.4 pickled the released models; `old=False` uses the current format."""
    state = {name: torch.from_numpy(values.astype(np.float32)) for name, values in arrays.items()}
    torch.save(state, path, _use_new_zipfile_serialization=not old)


def write_folder(folder: Path, values: dict[str, Any], *, name: str = "arch.json", old: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(
        json.dumps({"seed": 1, "config_path": f"/users4/dead/configs/{name}"})
    )
    (folder / name).write_text(json.dumps(values))
    (folder / "char.dic").write_text("".join(f"{c}\t{i}\n" for i, c in enumerate(CHARS)), encoding="utf-8")
    (folder / "word.dic").write_text("".join(f"{w}\t{i}\n" for i, w in enumerate(WORDS)), encoding="utf-8")
    embedder, encoder = states(values)
    save(folder / "token_embedder.pkl", embedder, old=old)
    save(folder / "encoder.pkl", encoder, old=old)
    return folder


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def their_token(values: dict[str, Any], w: Arrays, token: str) -> NDArray[np.float64]:
    embedder = values["token_embedder"]
    token = token if token in ("<bos>", "<eos>") else token[: embedder["max_characters_per_token"] - 2]
    parts = []
    if embedder["word_dim"]:
        number = WORDS.index(token) if token in WORDS else WORDS.index("<oov>")
        parts.append(w["word_emb_layer.embedding.weight"][number])
    if embedder["char_dim"]:
        inside = [token] if token in ("<bos>", "<eos>") else list(token)
        row = [
            "<eow>",
            *(c if c in CHARS else "<oov>" for c in inside),
            "<bow>",
        ]  # swapped, as in the released models
        row += ["<pad>"] * (embedder["max_characters_per_token"] - len(row))
        x = w["char_emb_layer.embedding.weight"][[CHARS.index(c) for c in row]]  # (C, dim)
        maxima = []
        for i, (width, _) in enumerate(embedder["filters"]):
            kernel, bias = w[f"convolutions.{i}.weight"], w[f"convolutions.{i}.bias"]
            windows = [x[t : t + width].T for t in range(len(x) - width + 1)]
            best = np.max([np.tensordot(kernel, window, 2) + bias for window in windows], axis=0)
            maxima.append(np.tanh(best) if embedder["activation"] == "tanh" else best.clip(0))
        y = np.concatenate(maxima)
        for k in range(embedder["n_highway"]):
            sums = w[f"highways._layers.{k}.weight"] @ y + w[f"highways._layers.{k}.bias"]
            transform, gate = sums[: len(y)].clip(0), sigmoid(sums[len(y) :])
            y = gate * y + (1 - gate) * transform
        parts.append(y)
    return w["projection.weight"] @ np.concatenate(parts) + w["projection.bias"]


def their_stack(values: dict[str, Any], w: Arrays, direction: str, x: NDArray[np.float64]) -> list[Any]:
    """(T, P) to the (T, P) of every layer, in reading order."""
    encoder = values["encoder"]
    layers = []
    for layer in range(encoder["n_layers"]):
        name = f"{direction}_layer_{layer}"
        h, c = np.zeros(encoder["projection_dim"]), np.zeros(encoder["dim"])
        outputs = []
        for t in range(len(x)):
            z = w[f"{name}.input_linearity.weight"] @ x[t] + w[f"{name}.state_linearity.weight"] @ h
            i, f, g, o = np.split(z + w[f"{name}.state_linearity.bias"], 4)
            c = sigmoid(i) * np.tanh(g) + sigmoid(f) * c
            c = c.clip(-encoder["cell_clip"], encoder["cell_clip"]) if encoder["cell_clip"] else c
            h = w[f"{name}.state_projection.weight"] @ (sigmoid(o) * np.tanh(c))
            h = h.clip(-encoder["proj_clip"], encoder["proj_clip"]) if encoder["proj_clip"] else h
            outputs.append(h)
        y = np.array(outputs)
        x = x + y if layer else y
        layers.append(x)
    return layers


def their_layers(values: dict[str, Any], sentence: list[str]) -> NDArray[np.float64]:
    """(L, T, 2P) without the boundaries, as ELMoForManyLangs computes them from zero state."""
    embedder, encoder = states(values)
    x = np.array([their_token(values, embedder, token) for token in ["<bos>", *sentence, "<eos>"]])
    forward = [x, *their_stack(values, encoder, "forward", x)]
    backward = [x, *(layer[::-1] for layer in their_stack(values, encoder, "backward", x[::-1]))]
    return np.array([np.concatenate(pair, axis=1) for pair in zip(forward, backward, strict=True)])[:, 1:-1]
