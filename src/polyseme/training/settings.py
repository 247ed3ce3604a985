"""What a person may set for pretraining; the rest the program counts.

    presets/*.toml, --config, --set  ->  training.settings  ->  training.pretrain

Sections: [corpus], [model] (config.ModelSettings), [softmax], [train]. Schedules count tokens, not seconds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator, model_validator

from polyseme.config import ModelSettings, Settings, parse_settings, read_values, suggest
from polyseme.errors import ConfigError
from polyseme.text.corpus.settings import CorpusSettings
from polyseme.text.static_vectors import read_dim

Share = Annotated[float, Field(ge=0, lt=1)]


class SoftmaxSettings(Settings):
    """How the next word is predicted in training; validation always uses the whole vocabulary."""

    kind: Literal["auto", "full", "sampled", "adaptive"] = "auto"
    samples: PositiveInt | Annotated[float, Field(gt=0, lt=1)] = 8192  # words, or a share of the vocabulary
    tied: bool = False  # rows shared with the word table


class TrainSettings(Settings):
    """The training itself."""

    seed: int = 1
    epochs: PositiveFloat = 10.0
    tokens: PositiveInt | None = None  # instead of epochs
    order: Literal["rows", "sentences"] = (
        "rows"  # state carried along contiguous rows, or each sentence alone
    )
    batch: PositiveInt = 128  # rows, or sentences of mean length
    unroll: PositiveInt = 20  # tokens of a row in a step
    optimizer: Literal["adagrad", "adamw", "sgd"] = "adagrad"
    rate: PositiveFloat = 0.2
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: Share = 0.0  # share of the tokens
    weight_decay: NonNegativeFloat = 0.0
    clip: PositiveFloat = 10.0  # norm of the gradient
    dropout: Share = 0.1
    variational: bool = False
    weight_drop: Share = 0.0
    precision: Literal["fp32", "bf16"] = "fp32"
    accumulate: PositiveInt = 1  # batches to a step
    evaluations: PositiveInt = 10  # validations on the way
    valid_tokens: PositiveInt = 10_000  # of each validation on the way; the last one takes them all
    patience: PositiveInt | None = None  # validations without a better one before an early stop
    save_seconds: PositiveFloat = 120.0  # between checkpoints
    device: str = "auto"  # where it is computed; see training.devices

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
                "softmax.tied needs a word table as wide as the outputs: "
                f"set model.words.dim to model.recurrent.outputs ({self.model.recurrent.outputs})."
            )
        if self.softmax.tied and self.softmax.kind == "adaptive":
            raise ValueError("softmax.tied and softmax.kind adaptive do not go together: choose one.")
        return self

    @model_validator(mode="after")
    def _weight_drop_has_an_effect(self) -> Self:
        cell = self.model.recurrent.cell
        if self.train.weight_drop and cell != "lstm":
            raise ValueError(
                f"train.weight_drop is {self.train.weight_drop:g}, but drops weights of lstm cells only, and "
                f"model.recurrent.cell is {cell}. Set train.weight_drop=0; train.dropout works for all cells."
            )
        return self


def preset_names() -> list[str]:
    """The configurations that come with the package."""
    folder = files("polyseme") / "presets"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def read_pretrain_settings(source: str, overrides: Sequence[str] = ()) -> PretrainSettings:
    """A preset by name, or a .toml or .json file, with overrides such as `train.seed=7` (a line of TOML)."""
    if source in preset_names():
        text = (files("polyseme") / "presets" / f"{source}.toml").read_text(encoding="utf-8")
        values = tomllib.loads(text)
    elif Path(source).suffix in (".toml", ".json"):
        values = read_values(Path(source))
    else:
        guess = suggest(source, preset_names())
        raise ConfigError(
            f"There is no preset {source!r}.{guess} Choose {', '.join(preset_names())}, or give a .toml file."
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
    """The config to fine-tune a model with: [model] is the model's own, of `overrides` only its segmentation.

    A tied softmax that the model has no word table for is made untied: so presets serve any model.
    """
    values: dict[str, Any] = {}
    for line in overrides:
        override(values, line)
    asked = values.get("model", {})
    fixed = _names({name: value for name, value in asked.items() if name != "segment"}, "model.")
    if fixed:
        raise ConfigError(
            f"{', '.join(fixed)} cannot be changed: with --from the model decides. Leave it out of --set; "
            "only model.segment may be set."
        )
    chosen = model.model_copy(update={"segment": config.model.segment} if "segment" in asked else {})
    fits = model.words is not None and model.words.dim == model.recurrent.outputs
    softmax = config.softmax.model_copy(update={} if fits else {"tied": False})
    parts = config.model_dump() | {"model": chosen.model_dump(), "softmax": softmax.model_dump()}
    return parse_settings(PretrainSettings, parts, "--from")


def _names(values: dict[str, Any], place: str) -> list[str]:
    """Full names of all settings in nested values."""
    found = [_names(v, f"{place}{k}.") if isinstance(v, dict) else [place + k] for k, v in values.items()]
    return [name for names in found for name in names]


def override(values: dict[str, Any], line: str) -> None:
    """Put `a.b=value` (a line of TOML) in place of what nested `values` have there."""
    _merge(values, _override(line))


def _override(line: str) -> dict[str, Any]:
    """`a.b=value` as nested values; a value that is no TOML is taken as a string."""
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {line}: expected name=value, for example train.seed=7.")
    try:
        return tomllib.loads(f"{name.strip()} = {value.strip()}")
    except tomllib.TOMLDecodeError:
        pass
    try:
        return tomllib.loads(f"{name.strip()} = {_quoted(value.strip())}")
    except tomllib.TOMLDecodeError:
        raise ConfigError(f"--set {line}: neither a value nor a name of TOML.") from None


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _merge(values: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(values.get(name), dict):
            _merge(values[name], value)
        else:
            values[name] = value
