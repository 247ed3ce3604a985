"""A safetensors file as tensors, or one clear line.

formats.models.native, formats.vectors.word_file, tasks.task_model  ->  formats.tensors  ->  safetensors
"""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from polyseme.errors import FormatError


def read_tensors(path: Path, what: str, advice: str = "Copy it again.") -> dict[str, Tensor]:
    """All tensors of a file, mapped. Errors say `what` is missing, or what to do about a damaged file."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file; {what} are missing.") from None
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError, TypeError) as problem:
        raise FormatError(f"{path}: damaged or not safetensors ({problem}). {advice}") from None
