"""Polyseme: ELMo for your own text.

Public names are imported on first use, so that `import polyseme` does not load torch.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.api import (
        book,
        cache,
        change,
        characters,
        collocates,
        concordance,
        convert,
        disambiguate,
        doctor,
        embed,
        evaluate,
        export,
        generate,
        index,
        info,
        map_usages,
        nearest,
        passage,
        predict,
        pretrain,
        probe,
        rerank,
        sample,
        score,
        senses,
        similarity,
        substitutes,
        summarise,
        timeline,
        train,
    )
    from polyseme.elmo import Elmo, load
    from polyseme.errors import (
        ConfigError,
        DataError,
        FormatError,
        MissingExtraError,
        PolysemeError,
        UsageError,
    )
    from polyseme.formats.vectors.readers import Vectors, open_vectors
    from polyseme.io.progress import ProgressEvent
    from polyseme.model.mix import Mix
    from polyseme.search.index import open_index
    from polyseme.server.serve import serve
    from polyseme.tasks.task_model import load_task
    from polyseme.text.segment import Token
    from polyseme.text.static_vectors import StaticVectors, read_vectors
    from polyseme.torch_layer import ElmoLayer, batch_to_ids
    from polyseme.word_vectors import WordVectors, mean_vectors, open_words

# OpenMP threads spin while they wait for work. If other programs, or our two directions, need the cores, a
# long spin slows everything down; a short one costs little on an idle machine. torch reads this variable when
# it is imported; a value that the user has set stays.
os.environ.setdefault("GOMP_SPINCOUNT", "30000")

_MODULES = {
    "ConfigError": "errors",
    "DataError": "errors",
    "Elmo": "elmo",
    "ElmoLayer": "torch_layer",
    "FormatError": "errors",
    "MissingExtraError": "errors",
    "Mix": "model.mix",
    "PolysemeError": "errors",
    "ProgressEvent": "io.progress",
    "StaticVectors": "text.static_vectors",
    "Token": "text.segment",
    "UsageError": "errors",
    "Vectors": "formats.vectors.readers",
    "WordVectors": "word_vectors",
    "batch_to_ids": "torch_layer",
    "book": "api",
    "cache": "api",
    "change": "api",
    "characters": "api",
    "collocates": "api",
    "concordance": "api",
    "convert": "api",
    "disambiguate": "api",
    "doctor": "api",
    "embed": "api",
    "evaluate": "api",
    "export": "api",
    "generate": "api",
    "index": "api",
    "info": "api",
    "load": "elmo",
    "load_task": "tasks.task_model",
    "map_usages": "api",
    "mean_vectors": "word_vectors",
    "nearest": "api",
    "open_index": "search.index",
    "open_vectors": "formats.vectors.readers",
    "open_words": "word_vectors",
    "passage": "api",
    "predict": "api",
    "pretrain": "api",
    "probe": "api",
    "read_vectors": "text.static_vectors",
    "rerank": "api",
    "sample": "api",
    "score": "api",
    "senses": "api",
    "serve": "server.serve",
    "similarity": "api",
    "substitutes": "api",
    "summarise": "api",
    "timeline": "api",
    "train": "api",
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
    "ProgressEvent",
    "StaticVectors",
    "Token",
    "UsageError",
    "Vectors",
    "WordVectors",
    "batch_to_ids",
    "book",
    "cache",
    "change",
    "characters",
    "collocates",
    "concordance",
    "convert",
    "disambiguate",
    "doctor",
    "embed",
    "evaluate",
    "export",
    "generate",
    "index",
    "info",
    "load",
    "load_task",
    "map_usages",
    "mean_vectors",
    "nearest",
    "open_index",
    "open_vectors",
    "open_words",
    "passage",
    "predict",
    "pretrain",
    "probe",
    "read_vectors",
    "rerank",
    "sample",
    "score",
    "senses",
    "serve",
    "similarity",
    "substitutes",
    "summarise",
    "timeline",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'polyseme' has no attribute {name!r}")
    return getattr(import_module(f"polyseme.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
