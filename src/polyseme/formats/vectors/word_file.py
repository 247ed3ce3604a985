"""Mean vectors of words on disk: a small safetensors file in the folder of a model.

    word_vectors  <->  formats.vectors.word_file  <->  words.safetensors

Each vector is stored as its difference from the centre, in int8 with its own scale: a thousand words of 256
values take a quarter of a megabyte. N words, H values.

    rows (N, H) int8, scales (N,) fp32, centre (H,) fp32, counts (N,) int64, words: UTF-8, one per line
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors, write_tensors
from polyseme.io.atomic import new_file
from polyseme.model.fast.parallel import run_parallel
from polyseme.model.fast.quantisation import QuantisedMatrix, quantise

LARGEST = 1e12  # value in a file: the squares of larger ones overflow
CHUNK_ROWS = 1024  # quantised at a time
WORDS_FILE = "words.safetensors"  # in the folder of a model
EXPECTED = {  # dtype and number of axes of each tensor
    "rows": (torch.int8, 2),
    "scales": (torch.float32, 1),
    "centre": (torch.float32, 1),
    "counts": (torch.int64, 1),
    "words": (torch.uint8, 1),
}


class StoredWords(NamedTuple):
    """The content of the file: words by decreasing count, with their counts and vectors."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]  # (N,)
    vectors: NDArray[np.float32]  # (N, H)
    centre: NDArray[np.float32]  # (H,)


def write_words(path: Path, content: StoredWords, *, force: bool = False) -> None:
    """Write the file, completely or not at all; the vectors are quantised to int8 around the centre."""
    rows, scales = _quantise_rows(content)
    tensors = {
        "rows": rows,
        "scales": scales,
        "centre": torch.from_numpy(content.centre),
        "counts": torch.from_numpy(content.counts),
        "words": torch.from_numpy(np.array(bytearray("\n".join(content.words).encode()), np.uint8)),
    }
    with new_file(path, force=force) as new:
        write_tensors(new, {name: tensor.contiguous() for name, tensor in tensors.items()})


def _quantise_rows(content: StoredWords) -> tuple[Tensor, Tensor]:
    """The vectors in int8 and their scales; in chunks, so that intermediate values stay in the CPU cache."""
    rows = torch.empty(content.vectors.shape, dtype=torch.int8, device="cpu")
    scales = torch.empty(len(rows), dtype=torch.float32, device="cpu")

    def quantise_from(begin: int) -> None:
        for first in range(begin, min(begin + step, len(rows)), CHUNK_ROWS):
            chunk = slice(first, min(first + CHUNK_ROWS, begin + step))
            quantised = quantise(torch.from_numpy(content.vectors[chunk] - content.centre), "int8")
            rows[chunk] = quantised.values
            if quantised.scales is not None:
                scales[chunk] = quantised.scales

    step = max(1, -(-len(rows) // torch.get_num_threads()))
    with torch.no_grad():  # run_parallel needs it
        run_parallel([partial(quantise_from, begin) for begin in range(0, len(rows), step)])
    return rows, scales


def read_words(path: Path, advice: str = "Copy it, or make it again.") -> StoredWords:
    """Read the file.

    Raises:
        FormatError: If it is missing, damaged or inconsistent; its message ends with `advice`.

    """
    tensors = read_tensors(path, "vectors of words", advice)
    _check(tensors, path, advice)
    rows = QuantisedMatrix(
        tensors["rows"], tensors["scales"]
    ).dequantise()  # a new tensor, which becomes the vectors
    try:
        text = tensors["words"].numpy().tobytes().decode("utf-8")
        words = text.split("\n") if len(rows) else []
    except UnicodeDecodeError as problem:
        raise FormatError(f"{path}: its words are not UTF-8 ({problem}). {advice}") from None
    if len(words) != len(rows) or len(set(words)) != len(words):
        raise FormatError(f"{path}: {len(set(words))} words and {len(rows)} vectors. {advice}")
    vectors = rows.add_(tensors["centre"]).numpy()
    return StoredWords(tuple(words), tensors["counts"].numpy(), vectors, tensors["centre"].numpy())


def _check(tensors: dict[str, Tensor], path: Path, advice: str) -> None:
    """Refuse a file with other tensors, or tensors of inconsistent sizes."""
    for name, (dtype, axes) in EXPECTED.items():
        if name not in tensors or (tensors[name].dtype, tensors[name].ndim) != (dtype, axes):
            raise FormatError(
                f"{path}: not a file of word vectors: {name} of {dtype} is missing. "
                "`WordVectors.save` writes one."
            )
    count, size = tensors["rows"].shape
    sizes = {"scales": count, "counts": count, "centre": size}
    for name, expected in sizes.items():
        if len(tensors[name]) != expected:
            raise FormatError(
                f"{path}: {name} has {len(tensors[name])} values, expected {expected}. {advice}"
            )
    if not all(torch.isfinite(tensors[name]).all() for name in ("scales", "centre")):
        raise FormatError(f"{path}: contains NaN or infinite values. {advice}")
    largest = max(float(tensors[name].abs().max()) for name in ("scales", "centre")) if count and size else 0
    if largest > LARGEST:
        raise FormatError(f"{path}: contains values up to {largest:.1g}, more than a vector has. {advice}")
    if count and int(tensors["counts"].min()) < 0:
        raise FormatError(f"{path}: contains counts below zero. {advice}")
