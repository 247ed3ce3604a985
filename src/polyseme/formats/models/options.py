"""options.json of bilm-tf and AllenNLP to our config.

    options.json  ->  formats.models.options  ->  formats.models.hdf5

Only `lstm` and `char_cnn` matter; the rest of the file is about their training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyseme.config import ModelSettings, parse_settings
from polyseme.errors import FormatError

# Their names for our settings; a missing one has the value that their programs take.
CHARS = {
    "max_characters_per_token": "max_chars",
    "filters": "filters",
    "activation": "activation",
    "n_highway": "highways",
}
LSTM = {
    "dim": "cells",
    "projection_dim": "outputs",
    "n_layers": "layers",
    "cell_clip": "cell_clip",
    "proj_clip": "output_clip",
    "use_skip_connections": "residual",
}
CHARS_MISSING: dict[str, Any] = {"highways": 0, "max_chars": 50, "activation": "relu"}
LSTM_MISSING: dict[str, Any] = {"layers": 1, "cell_clip": None, "output_clip": None, "residual": False}


def read_options(options: dict[str, Any], path: Path) -> ModelSettings:
    """The model that `options`, read from `path`, describe."""
    lstm = _section(options, "lstm", path)
    recurrent = LSTM_MISSING | _renamed(lstm, LSTM)
    recurrent |= {"cell": "lstm", "forget_bias": 1.0}
    for clip in ("cell_clip", "output_clip"):
        recurrent[clip] = recurrent[clip] or None  # 0 and null both mean that nothing is clipped
    ours = options.get("polyseme")  # what we add where a model of ours is written in their format
    segment = ours.get("segment", "split") if isinstance(ours, dict) else "split"
    values: dict[str, Any] = {"segment": segment, "recurrent": recurrent}
    if "char_cnn" in options:
        cnn = _section(options, "char_cnn", path)
        embedding = _section(cnn, "embedding", path)
        _require(cnn, ("filters",), "char_cnn", path)
        _require(embedding, ("dim",), "char_cnn.embedding", path)
        if cnn.get("n_characters", 262) not in (261, 262):
            raise FormatError(
                f"{path}: char_cnn.n_characters is {cnn['n_characters']!r}, expected 261 or 262: "
                "published models read the 256 bytes and 5 marks."
            )
        values["chars"] = {"encoding": "bytes", "dim": embedding["dim"]}
        values["chars"] |= CHARS_MISSING | _renamed(cnn, CHARS)
    else:
        values["words"] = {"dim": lstm.get("projection_dim")}
    _require(lstm, ("dim", "projection_dim"), "lstm", path)
    return parse_settings(ModelSettings, values, str(path))


def _renamed(section: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {ours: section[theirs] for theirs, ours in names.items() if theirs in section}


def _section(options: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = options.get(name)
    if not isinstance(section, dict):
        raise FormatError(f"{path}: no section {name!r}. Is it the options.json of an ELMo model?")
    return section


def _require(section: dict[str, Any], names: tuple[str, ...], where: str, path: Path) -> None:
    missing = [f"{where}.{name}" for name in names if name not in section]
    if missing:
        raise FormatError(f"{path}: {', '.join(missing)} is missing.")
