"""Settings of pretraining: presets, files and overrides.

    presets/*.toml, a .toml or .json file, overrides  ->  training.settings  ->  training.pretrain

Sections: [corpus] (text.corpus.settings), [model] (config), [softmax], [train]. Schedules count tokens.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from polyseme.config import ModelSettings, Settings, parse_settings, read_values, suggest
from polyseme.errors import ConfigError
from polyseme.text.corpus.settings import CorpusSettings
from polyseme.text.static_vectors import read_dim

Share = Annotated[float, Field(ge=0, lt=1)]


class SoftmaxSettings(Settings):
    """Prediction of words in training; validation always uses the whole vocabulary."""

    # auto: full for up to 2,000 words, else sampled
    kind: Literal["auto", "full", "sampled", "adaptive"] = "auto"
    samples: PositiveInt | Annotated[float, Field(gt=0, lt=1)] = 8192  # words per step, or a share
    tied: bool = False  # share the weights of the word table


class TrainSettings(Settings):
    """Optimiser, schedule, regularisation, validation and checkpoints."""

    seed: int = 1  # decides all that is random
    epochs: PositiveFloat = 10.0  # passes over the text
    min_tokens: NonNegativeInt = 0  # tokens to train on at least: a short text is read more often
    tokens: PositiveInt | None = None  # tokens to train on, instead of epochs and min_tokens
    # rows: contiguous text with carried state; sentences: each sentence from zero state
    order: Literal["rows", "sentences"] = "rows"
    batch: PositiveInt = 128  # rows, or sentences of mean length
    unroll: PositiveInt = 20  # tokens of a row per step
    optimizer: Literal["adagrad", "adamw", "sgd"] = "adagrad"
    rate: PositiveFloat = 0.2  # learning rate
    schedule: Literal["constant", "cosine", "plateau"] = "constant"  # of the learning rate
    plateau: PositiveInt = 2  # validations without improvement before schedule="plateau" halves the rate
    warmup: Share = 0.0  # share of the tokens over which the rate rises
    weight_decay: NonNegativeFloat = 0.0
    clip: PositiveFloat = 10.0  # maximum norm of the gradient
    dropout: Share = 0.1
    variational: bool = False  # one dropout mask per sentence or row, not per token
    weight_drop: Share = 0.0  # dropout of recurrent weights (lstm)
    precision: Literal["fp32", "bf16"] = "fp32"
    accumulate: PositiveInt = 1  # batches per step
    evaluations: PositiveInt = 10  # validations during training
    valid_tokens: PositiveInt = 10_000  # held-out tokens of each
    last_valid_tokens: PositiveInt = 50_000  # held-out tokens of the last validation
    patience: PositiveInt | None = None  # stop after this many validations without improvement
    min_steps: NonNegativeInt = 0  # before which no validation counts as one without improvement
    save_seconds: PositiveFloat = 120.0  # seconds between checkpoints
    device: str = "auto"  # auto, cpu, cuda, cuda:N or mps

    @field_validator("device")
    @classmethod
    def _device_is_known(cls, device: str) -> str:
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,3})?", device):
            raise ValueError(f"train.device is {device!r}, should be auto, cpu, cuda, cuda:N or mps.")
        return device


class PretrainSettings(Settings):
    """All settings of a pretraining run."""

    corpus: CorpusSettings = CorpusSettings()
    model: ModelSettings
    softmax: SoftmaxSettings = SoftmaxSettings()
    train: TrainSettings = TrainSettings()

    @model_validator(mode="after")
    def _tied_rows_fit(self) -> Self:
        words = self.model.words
        if self.softmax.tied and (words is None or words.dim != self.model.recurrent.outputs):
            raise ValueError(
                "softmax.tied needs a word table of the size of the outputs: "
                f"set model.words.dim to model.recurrent.outputs ({self.model.recurrent.outputs})."
            )
        if self.softmax.tied and self.softmax.kind == "adaptive":
            raise ValueError("softmax.tied does not work with softmax.kind=adaptive. Choose one.")
        return self

    @model_validator(mode="after")
    def _weight_drop_has_an_effect(self) -> Self:
        cell = self.model.recurrent.cell
        if self.train.weight_drop and cell != "lstm":
            raise ValueError(
                f"train.weight_drop is {self.train.weight_drop:g}, but works for lstm cells only, and "
                f"model.recurrent.cell is {cell}. Set train.weight_drop=0; train.dropout works for all cells."
            )
        return self


def list_presets() -> list[str]:
    """List the presets for pretraining."""
    folder = files("polyseme") / "presets"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def read_pretrain_settings(source: str, overrides: Sequence[str] = ()) -> PretrainSettings:
    """Read the settings of a pretraining run.

    Args:
        source: The name of a preset, or a .toml or .json file.
        overrides: Lines of TOML that replace settings: `train.seed=7`.

    Raises:
        ConfigError: There is no such preset or file, or settings are invalid; every mistake is listed.

    Example:
        >>> read_pretrain_settings("novel", ["train.seed=7"]).train.seed
        7

    """
    if source in list_presets():
        text = (files("polyseme") / "presets" / f"{source}.toml").read_text(encoding="utf-8")
        values = tomllib.loads(text)
    elif Path(source).suffix in (".toml", ".json"):
        values = read_values(Path(source))
    else:
        guess = suggest(source, list_presets())
        raise ConfigError(
            f"There is no preset {source!r}.{guess} Choose {', '.join(list_presets())}, or a .toml file."
        )
    for line in overrides:
        override(values, line)
    _add_static_dim(values)
    return parse_settings(PretrainSettings, values, source)


def _add_static_dim(values: dict[str, Any]) -> None:
    """Set `model.words.dim` to the size of the static vectors, if a file is named and the size is not."""
    model = values.get("model")
    words = model.get("words") if isinstance(model, dict) else None
    if isinstance(words, dict) and isinstance(words.get("static"), str):
        words.setdefault("dim", read_dim(words["static"]))


def adapt_settings(
    config: PretrainSettings, model: ModelSettings, overrides: Sequence[str]
) -> PretrainSettings:
    """Adapt settings to a model that is fine-tuned: its own [model] section replaces that of `config`.

    A tied softmax is untied if the model has no fitting word table, so that presets work for any model.

    Args:
        config: Settings of a pretraining run.
        model: Settings of the model to fine-tune.
        overrides: As for `read_pretrain_settings`; of [model] only `model.segment` may be set.

    Raises:
        ConfigError: The overrides change the model.

    """
    values: dict[str, Any] = {}
    for line in overrides:
        override(values, line)
    changes = values.get("model", {})
    fixed = _list_names({name: value for name, value in changes.items() if name != "segment"}, "model.")
    if fixed:
        raise ConfigError(
            f"{', '.join(fixed)} cannot be changed in fine-tuning: `base` decides it. Leave it out of "
            "`settings`; only model.segment may be set."
        )
    chosen = model.model_copy(update={"segment": config.model.segment} if "segment" in changes else {})
    fits = model.words is not None and model.words.dim == model.recurrent.outputs
    softmax = config.softmax.model_copy(update={} if fits else {"tied": False})
    parts = config.model_dump() | {"model": chosen.model_dump(), "softmax": softmax.model_dump()}
    return parse_settings(PretrainSettings, parts, "settings for fine-tuning")


def _list_names(values: dict[str, Any], prefix: str) -> list[str]:
    """Full names of all settings in nested values."""
    names: list[str] = []
    for name, value in values.items():
        names += _list_names(value, f"{prefix}{name}.") if isinstance(value, dict) else [prefix + name]
    return names


def override(values: dict[str, Any], line: str) -> None:
    """Replace a value in nested `values` by a line of TOML: `a.b=value`."""
    _merge(values, _parse_override(line))


def _parse_override(line: str) -> dict[str, Any]:
    """Parse `a.b=value` as nested values; a value that is not TOML is a string."""
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"{line}: not a setting, expected name=value, for example train.seed=7.")
    try:
        return tomllib.loads(f"{name.strip()} = {value.strip()}")
    except tomllib.TOMLDecodeError:
        pass
    try:
        return tomllib.loads(f"{name.strip()} = {_quote(value.strip())}")
    except tomllib.TOMLDecodeError:
        raise ConfigError(f"{line}: not a setting, the name or the value is not TOML.") from None


def _quote(value: str) -> str:
    """A value as a string of TOML."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _merge(values: dict[str, Any], changes: dict[str, Any]) -> None:
    """Merge nested changes into nested values."""
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(values.get(name), dict):
            _merge(values[name], value)
        else:
            values[name] = value
