"""Polyseme: ELMo for your own text.

The public names load on first use, so that `import polyseme` does not load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.api import convert, embed, info
    from polyseme.embedder import Elmo, load
    from polyseme.errors import (
        ConfigError,
        DataError,
        FormatError,
        MissingExtraError,
        PolysemeError,
        UsageError,
    )
    from polyseme.layer import ElmoLayer, batch_to_ids
    from polyseme.model.mix import Mix
    from polyseme.text.segment import Token
    from polyseme.text.vectors import StaticVectors, read_vectors

_HOMES = {
    "ConfigError": "errors",
    "DataError": "errors",
    "Elmo": "embedder",
    "ElmoLayer": "layer",
    "FormatError": "errors",
    "MissingExtraError": "errors",
    "Mix": "model.mix",
    "PolysemeError": "errors",
    "StaticVectors": "text.vectors",
    "Token": "text.segment",
    "UsageError": "errors",
    "batch_to_ids": "layer",
    "convert": "api",
    "embed": "api",
    "info": "api",
    "load": "embedder",
    "read_vectors": "text.vectors",
}

__all__ = [
    "ConfigError",
    "DataError",
    "Elmo",
    "ElmoLayer",
    "FormatError",
    "MissingExtraError",
    "Mix",
    "PolysemeError",
    "StaticVectors",
    "Token",
    "UsageError",
    "batch_to_ids",
    "convert",
    "embed",
    "info",
    "load",
    "read_vectors",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'polyseme' has no attribute {name!r}")
    return getattr(import_module(f"polyseme.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
