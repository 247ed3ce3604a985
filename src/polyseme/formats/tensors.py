"""Read and write safetensors files, with one-line errors.

    formats.models, formats.vectors.word_file, training.checkpoint, search.statistics, tasks
    <->  formats.tensors  <->  safetensors

What the library raises becomes a FormatError for a damaged file, and an OSError for a full disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.io.checked import refuse_damaged


def read_tensors(path: Path, content: str, advice: str = "Copy it again.") -> dict[str, Tensor]:
    """Read all tensors of a safetensors file, memory-mapped.

    Args:
        path: The file.
        content: What the file contains, for the error if it is missing.
        advice: What to do about a damaged file, for the error.

    """
    if not path.exists():
        raise FormatError(f"{path}: no such file; {content} are missing. {advice}")
    with refuse_damaged(path, "a safetensors file", advice):
        return load_file(path)


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a safetensors file.

    Args:
        path: The file.
        tensors: Contiguous tensors on the CPU, by name.
        metadata: Strings for the header of the file.

    Raises:
        OSError: The disk is full, or nothing can be written there.

    """
    try:
        save_file(dict(tensors), path, metadata=None if metadata is None else dict(metadata))
    except SafetensorError as problem:
        number = re.search(r"os error (\d+)", str(problem))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from None
