"""Settings of a model from the options.json of bilm-tf and AllenNLP.

    options.json  ->  formats.models.options  ->  formats.models.hdf5

Only `lstm` and `char_cnn` matter; the rest of the file is about training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyseme.config import ModelSettings, parse_settings
from polyseme.errors import FormatError
from polyseme.text.segment import WordList

# Their names for our settings, and the values that their programs use for missing ones.
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
CHARS_DEFAULTS: dict[str, Any] = {"highways": 0, "max_chars": 50, "activation": "relu"}
LSTM_DEFAULTS: dict[str, Any] = {"layers": 1, "cell_clip": None, "output_clip": None, "residual": False}


def read_word_list(options: dict[str, Any], path: Path) -> WordList | None:
    """The word list in `options`, if Polyseme wrote them and the model has one."""
    own_section = options.get("polyseme")
    lines = own_section.get("words") if isinstance(own_section, dict) else None
    if lines is None:
        return None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise FormatError(f"{path}: polyseme.words must be a list of strings.")
    return WordList.parse(lines, f"{path}: polyseme.words")


def read_options(options: dict[str, Any], path: Path) -> ModelSettings:
    """The settings of the model that `options`, read from `path`, describe."""
    lstm = _get_section(options, "lstm", path)
    recurrent = LSTM_DEFAULTS | _rename(lstm, LSTM)
    recurrent |= {"cell": "lstm", "forget_bias": 1.0}
    for clip in ("cell_clip", "output_clip"):
        recurrent[clip] = recurrent[clip] or None  # 0 and null both mean no clipping
    own_section = options.get("polyseme")  # present if Polyseme wrote the file
    segment = own_section.get("segment", "split") if isinstance(own_section, dict) else "split"
    values: dict[str, Any] = {"segment": segment, "recurrent": recurrent}
    if "char_cnn" in options:
        cnn = _get_section(options, "char_cnn", path)
        embedding = _get_section(cnn, "embedding", path)
        _require(cnn, ("filters",), "char_cnn", path)
        _require(embedding, ("dim",), "char_cnn.embedding", path)
        if cnn.get("n_characters", 262) not in (261, 262):
            raise FormatError(
                f"{path}: char_cnn.n_characters is {cnn['n_characters']!r}, expected 261 or 262: "
                "published models have 256 bytes and 5 marks."
            )
        values["chars"] = {"encoding": "bytes", "dim": embedding["dim"]}
        values["chars"] |= CHARS_DEFAULTS | _rename(cnn, CHARS)
    else:
        values["words"] = {"dim": lstm.get("projection_dim")}
    _require(lstm, ("dim", "projection_dim"), "lstm", path)
    return parse_settings(ModelSettings, values, str(path))


def _rename(section: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {name: section[key] for key, name in names.items() if key in section}


def _get_section(options: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = options.get(name)
    if not isinstance(section, dict):
        raise FormatError(f"{path}: no section {name!r}. Is it the options.json of an ELMo model?")
    return section


def _require(section: dict[str, Any], names: tuple[str, ...], section_name: str, path: Path) -> None:
    missing = [f"{section_name}.{name}" for name in names if name not in section]
    if missing:
        raise FormatError(f"{path}: {', '.join(missing)} missing. Is it the options.json of an ELMo model?")
