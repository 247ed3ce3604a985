"""Mean vectors of words on disk: a safetensors file beside a model, small enough to travel with it.

    words  <->  formats.vectors.word_file  <->  words.safetensors

Each vector is kept as its difference from the centre, in int8 with a scale of its own, so that a thousand
words of 256 values take a quarter of a megabyte. N words, H values.

    rows (N, H) int8, scales (N,) fp32, centre (H,) fp32, counts (N,) int64, words: UTF-8, one a line
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors
from polyseme.io.atomic import new_file
from polyseme.model.fast.parallel import run_parallel
from polyseme.model.fast.quantisation import QuantisedMatrix, quantise

ROWS = 1024  # words that are rounded at a time
WORDS_FILE = "words.safetensors"  # in the folder of a model
KINDS = {
    "rows": (torch.int8, 2),
    "scales": (torch.float32, 1),
    "centre": (torch.float32, 1),
    "counts": (torch.int64, 1),
    "words": (torch.uint8, 1),
}


class StoredWords(NamedTuple):
    """What the file holds: words by falling count, and what belongs to each."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]  # (N,)
    vectors: NDArray[np.float32]  # (N, H)
    centre: NDArray[np.float32]  # (H,)


def write_words(path: Path, content: StoredWords, *, force: bool = False) -> None:
    """Write the file, whole or not at all; the vectors are rounded to int8 around the centre."""
    rows, scales = _quantise_rows(content)
    tensors = {
        "rows": rows,
        "scales": scales,
        "centre": torch.from_numpy(content.centre),
        "counts": torch.from_numpy(content.counts),
        "words": torch.frombuffer(bytearray("\n".join(content.words).encode()), dtype=torch.uint8),
    }
    with new_file(path, force=force) as new:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, new)


def _quantise_rows(content: StoredWords) -> tuple[Tensor, Tensor]:
    """The rows in int8 and their scales; some at a time, so that what lies between stays in the cache."""
    rows = torch.empty(content.vectors.shape, dtype=torch.int8)
    scales = torch.empty(len(rows))

    def some(begin: int) -> None:
        for first in range(begin, min(begin + step, len(rows)), ROWS):
            span = slice(first, min(first + ROWS, begin + step))
            found = quantise(torch.from_numpy(content.vectors[span] - content.centre), "int8")
            rows[span] = found.values
            if found.scales is not None:
                scales[span] = found.scales

    step = max(1, -(-len(rows) // torch.get_num_threads()))
    with torch.no_grad():  # only then side by side
        run_parallel([partial(some, begin) for begin in range(0, len(rows), step)])
    return rows, scales


def read_words(path: Path, advice: str = "Copy it, or make it again.") -> StoredWords:
    """Read the file; what does not fit together is refused, with `advice`."""
    tensors = read_tensors(path, "vectors of words", advice)
    _check(tensors, path, advice)
    rows = QuantisedMatrix(
        tensors["rows"], tensors["scales"]
    ).dequantise()  # memory of its own, which becomes the vectors
    try:
        words = tensors["words"].numpy().tobytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as problem:
        raise FormatError(f"{path}: its words are not UTF-8 ({problem}). {advice}") from None
    if len(words) != len(rows) or len(set(words)) != len(words):
        raise FormatError(f"{path}: {len(set(words))} words and {len(rows)} vectors. {advice}")
    vectors = rows.add_(tensors["centre"]).numpy()
    return StoredWords(tuple(words), tensors["counts"].numpy(), vectors, tensors["centre"].numpy())


def _check(tensors: dict[str, Tensor], path: Path, advice: str) -> None:
    """Refuse a file that is something else, or whose parts are not of one size."""
    for name, (kind, axes) in KINDS.items():
        if name not in tensors or (tensors[name].dtype, tensors[name].ndim) != (kind, axes):
            raise FormatError(
                f"{path}: not word vectors of Polyseme: {name} of {kind} is missing. "
                "polyseme.mean_vectors(…).save(path) makes such a file."
            )
    count, size = tensors["rows"].shape
    sizes = {"scales": count, "counts": count, "centre": size}
    for name, expected in sizes.items():
        if len(tensors[name]) != expected:
            raise FormatError(
                f"{path}: {name} has {len(tensors[name])} values, expected {expected}. {advice}"
            )
    if not all(torch.isfinite(tensors[name]).all() for name in ("scales", "centre")):
        raise FormatError(f"{path}: holds NaN or infinite values. {advice}")
