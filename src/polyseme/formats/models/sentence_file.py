"""How the sentences of a model are pooled, on disk: a small safetensors file in the folder of the model.

model.sentence_pooling  <->  formats.models.sentence_file  <->  sentence.safetensors

weights (V,), centre (LH,), directions (LH, H), all fp16
"""

from __future__ import annotations

from pathlib import Path

import torch

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors, write_tensors
from polyseme.model.sentence_pooling import SentencePooling

SENTENCE_FILE = "sentence.safetensors"  # in the folder of a model
_NAMES = ("weights", "centre", "directions")
_ADVICE = "Copy it again, or delete it and make it with `Elmo.fit_sentences` and `Elmo.save`."


def write_sentence_pooling(path: Path, pooling: SentencePooling) -> None:
    """Write the file."""
    write_tensors(path, {name: getattr(pooling, name).half().cpu().contiguous() for name in _NAMES})


def read_sentence_pooling(path: Path, n_words: int, n_layers: int, size: int) -> SentencePooling:
    """Read the file of a model with `n_words` words and `n_layers` layers of `size` values.

    Raises:
        FormatError: If it is damaged or belongs to another model.

    """
    tensors = read_tensors(path, "the weights of sentences", _ADVICE)
    shapes = {"weights": (n_words,), "centre": (n_layers * size,), "directions": (n_layers * size, size)}
    for name, shape in shapes.items():
        if name not in tensors or tuple(tensors[name].shape) != shape:
            actual = tuple(tensors[name].shape) if name in tensors else "missing"
            raise FormatError(f"{path}: {name} is {actual}, the model requires {shape}. {_ADVICE}")
        if tensors[name].dtype != torch.float16:
            raise FormatError(f"{path}: {name} is {tensors[name].dtype}, expected torch.float16. {_ADVICE}")
        if not torch.isfinite(tensors[name]).all():
            raise FormatError(f"{path}: {name} contains NaN or infinite values. {_ADVICE}")
    if not (tensors["weights"] > 0).all():  # a sentence is divided by the sum of those of its words
        raise FormatError(f"{path}: weights must be above 0. {_ADVICE}")
    return SentencePooling(**{name: tensors[name].float() for name in _NAMES})
