"""Read a safetensors file, with one-line errors.

formats.models.native, formats.vectors.word_file, search.statistics, tasks.task_folder
->  formats.tensors  ->  safetensors
"""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from polyseme.errors import FormatError


def read_tensors(path: Path, content: str, advice: str = "Copy it again.") -> dict[str, Tensor]:
    """Read all tensors of a safetensors file, memory-mapped.

    Args:
        path: The file.
        content: What the file contains, for the error if it is missing.
        advice: What to do about a damaged file, for the error.

    """
    try:
        return load_file(path)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file; {content} are missing. {advice}") from None
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError, TypeError) as problem:
        raise FormatError(f"{path}: not a safetensors file, or damaged ({problem}). {advice}") from None
