"""Write a model with random weights in the format of bilm-tf: `options.json` and `weights.hdf5`.

All programs read the same two files. The shapes are those of the published models; speed depends on shapes
only. F filters in total, P projection, D cells, V vocabulary. Needs numpy and h5py only, so it runs in
every environment.

    python benchmarks/peers/random_model.py .cache/peers/small --size small
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Options = dict[str, dict[str, Any]]

N_BYTES_AND_MARKS = 261  # 256 bytes and 5 marks; options say 262, because readers add a row for padding
PUBLISHED_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
TINY_FILTERS = [[1, 4], [2, 8], [3, 12]]


def options(size: str) -> Options:
    """The options of `tiny`, or of the published `small` or `original` model."""
    cells, outputs, n_highway = {"tiny": (24, 8, 2), "small": (1024, 128, 1), "original": (4096, 512, 2)}[
        size
    ]
    return {
        "lstm": {
            "dim": cells,
            "projection_dim": outputs,
            "n_layers": 2,
            "cell_clip": 3,
            "proj_clip": 3,
            "use_skip_connections": True,
        },
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 4 if size == "tiny" else 16},
            "filters": TINY_FILTERS if size == "tiny" else PUBLISHED_FILTERS,
            "n_highway": n_highway,
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
    }


def write_model(
    folder: Path,
    options: Options,
    *,
    seed: int = 0,
    one_layer_name: bool = False,
    vocabulary: int = 0,
) -> tuple[Path, Path]:
    """Write `options.json` and `weights.hdf5`; return both paths.

    one_layer_name  `RNN_0/RNN/LSTMCell`, as bilm-tf dumps one layer, not `…/MultiRNNCell/Cell0/…`
    vocabulary      V > 0 adds `softmax/W` and `softmax/b`
    """
    folder.mkdir(parents=True, exist_ok=True)
    options_file, weights_file = folder / "options.json", folder / "weights.hdf5"
    options_file.write_text(json.dumps(options, indent=1) + "\n", encoding="utf-8")
    random = np.random.default_rng(seed)
    with h5py.File(weights_file, "w") as file:
        for name, values in _char_cnn(options, random):
            file[name] = values.astype(np.float32)
        for name, values in _lstms(options, random, one_layer_name):
            file[name] = values.astype(np.float32)
        if vocabulary:
            outputs = options["lstm"]["projection_dim"]
            file["softmax/W"] = _normal(random, outputs, (vocabulary, outputs)).astype(np.float32)
            file["softmax/b"] = np.zeros(vocabulary, np.float32)
    return options_file, weights_file


def _char_cnn(options: Options, random: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    cnn, outputs = options["char_cnn"], options["lstm"]["projection_dim"]
    char_dim, features = cnn["embedding"]["dim"], sum(count for _, count in cnn["filters"])
    yield "char_embed", random.uniform(-1, 1, (N_BYTES_AND_MARKS, char_dim))
    for i, (width, count) in enumerate(cnn["filters"]):
        shape = (1, width, char_dim, count)
        if cnn["activation"] == "relu":
            yield f"CNN/W_cnn_{i}", random.uniform(-0.05, 0.05, shape)
        else:
            yield f"CNN/W_cnn_{i}", _normal(random, width * char_dim, shape)
        yield f"CNN/b_cnn_{i}", random.uniform(-0.05, 0.05, count)
    for k in range(cnn.get("n_highway", 0)):
        for part, bias in (("carry", -2.0), ("transform", 0.0)):
            yield f"CNN_high_{k}/W_{part}", _normal(random, features, (features, features))
            yield f"CNN_high_{k}/b_{part}", np.full(features, bias)
    if features != outputs:
        yield "CNN_proj/W_proj", _normal(random, features, (features, outputs))
        yield "CNN_proj/b_proj", np.zeros(outputs)


def _lstms(
    options: Options, random: np.random.Generator, one_layer_name: bool
) -> Iterator[tuple[str, np.ndarray]]:
    cells, outputs = options["lstm"]["dim"], options["lstm"]["projection_dim"]
    for direction in range(2):
        for layer in range(options["lstm"].get("n_layers", 1)):
            inner = "LSTMCell" if one_layer_name else f"MultiRNNCell/Cell{layer}/LSTMCell"
            name = f"RNN_{direction}/RNN/{inner}"
            yield f"{name}/W_0", _glorot(random, (2 * outputs, 4 * cells))
            yield f"{name}/B", random.uniform(-0.1, 0.1, 4 * cells)
            if outputs != cells:
                yield f"{name}/W_P_0", _glorot(random, (cells, outputs))


def _normal(random: np.random.Generator, fan_in: int, shape: tuple[int, ...]) -> np.ndarray:
    return random.normal(0, fan_in**-0.5, shape)


def _glorot(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    limit = (6 / sum(shape)) ** 0.5
    return random.uniform(-limit, limit, shape)


def main() -> None:
    """Parse the command line and write one model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=("tiny", "small", "original"), default="small")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--softmax", type=int, default=0, metavar="V", help="also write softmax/W, softmax/b")
    arguments = parser.parse_args()
    files = write_model(
        arguments.folder, options(arguments.size), seed=arguments.seed, vocabulary=arguments.softmax
    )
    print(*files)


if __name__ == "__main__":
    main()
