"""Settings that tasks share, and how they are read; the program counts everything else.

    presets/tasks/*.toml, config=, settings=  ->  tasks.settings  ->  the settings classes of the tasks

Sections: [data], [input], [train] and, if a task has them, [encoder] and [head]. A task's own settings class
extends `TaskSettings`; its sections are these classes, or its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from polyseme.config import Settings, parse_settings, read_values, suggest
from polyseme.errors import ConfigError
from polyseme.training.settings import Share, TrainSettings, override

LOOP_SETTINGS = (  # of [train], which the loop reads
    "seed",
    "rate",
    "schedule",
    "plateau",
    "warmup",
    "weight_decay",
    "clip",
    "accumulate",
    "patience",
    "min_steps",
)


class DataSettings(Settings):
    """How a source becomes examples."""

    segment: str | None = None  # how texts are segmented; None: as the ELMo was trained
    max_tokens: PositiveInt = 1000  # of a sentence
    empty: Literal["skip", "error"] = "skip"  # what happens to examples without text
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.2  # of the training examples, if there is no dev set


class InputSettings(Settings):
    """What represents a token."""

    elmo: Literal["input", "output", "both", "none"] = (
        "input"  # where ELMo enters: before or after the encoder
    )
    layers: Literal["mix", "top"] | NonNegativeInt = "mix"  # all of them, or one
    # What of ELMo is trained: nothing, the weights of the layers, these and gamma, all of it.
    tune: Literal["frozen", "weights", "mix", "full"] = "mix"
    mix_l2: NonNegativeFloat = 0.001  # lambda: pulls the weights of the layers together
    elmo_dropout: Share = 0.5
    words: NonNegativeInt = 0  # size of a trained word embedding
    min_count: PositiveInt = 2  # rarer words share one vector of it
    static: str | None = None  # a file of word2vec, GloVe or fastText vectors
    chars: NonNegativeInt = 0  # filters of a trained character encoder
    dropout: Share = 0.5  # of everything but ELMo
    batch_norm: bool = False


class EncoderSettings(Settings):
    """The LSTM over the tokens."""

    directions: Literal[0, 1, 2] = 2  # no LSTM, forward, both
    layers: PositiveInt = 1
    size: PositiveInt = 128  # of one direction
    dropout: Share = 0.2  # of the input of each layer, the same values at all tokens
    recurrent_dropout: Share = 0.0  # of the recurrent weights


class TaskTrainSettings(Settings):
    """How a task is trained."""

    seed: int = 1
    epochs: PositiveInt = 60  # at most; patience usually ends training earlier
    batch: PositiveInt = 32
    rate: PositiveFloat = 0.001
    elmo_rate: PositiveFloat = 0.0001  # of the weights of ELMo, with input.tune = "full"
    schedule: Literal["constant", "cosine", "plateau"] = "plateau"
    plateau: PositiveInt = 2  # epochs without a better one before schedule="plateau" halves the rate
    warmup: Share = 0.0
    weight_decay: NonNegativeFloat = 0.0
    clip: PositiveFloat = 5.0
    accumulate: PositiveInt = 1
    patience: PositiveInt | None = 5  # epochs without a better one before training stops
    min_steps: NonNegativeInt = 300  # before them patience and plateau do not count
    device: str = "auto"

    def for_loop(self) -> TrainSettings:
        """The settings of the training loop, which counts examples and validates every epoch."""
        shared: dict[str, Any] = {name: getattr(self, name) for name in LOOP_SETTINGS}
        return TrainSettings(
            **shared,
            epochs=float(self.epochs),
            optimizer="adamw",
            evaluations=self.epochs,
            device=self.device,
        )


class LabelTrainSettings(TaskTrainSettings):
    """How a task with labels is trained."""

    class_weights: Literal["none", "balanced"] = "none"


class DenseHeadSettings(Settings):
    """Dense layers at the end of a network."""

    hidden: NonNegativeInt = 0  # size of a hidden layer before the last one
    dropout: Share = 0.2


class TaskSettings(Settings):
    """What the settings of every task have."""

    task: str
    data: DataSettings = DataSettings()
    input: InputSettings = InputSettings()
    train: TaskTrainSettings = TaskTrainSettings()

    @model_validator(mode="after")
    def _has_input(self) -> Self:
        source = self.input
        if source.elmo in ("none", "output") and not (source.words or source.static or source.chars):
            raise ValueError(
                "The model has no input: without ELMo at the input it needs something else. "
                "Set input.words (such as 100), input.chars (such as 50) or input.static (a file)."
            )
        if source.layers != "mix" and source.tune == "full":
            raise ValueError('input.tune="full" trains the mix of all layers: leave input.layers at "mix".')
        return self

    def without_elmo(self) -> Self:
        """The same settings without ELMo; a word embedding replaces it if there is no other input."""
        words = self.input.words or (0 if self.input.static or self.input.chars else 256)
        bare = self.input.model_copy(update={"elmo": "none", "words": words})
        return type(self)(**(self.model_dump() | {"input": bare.model_dump()}))


AnyTaskSettings = TypeVar("AnyTaskSettings", bound=TaskSettings)


def replace_in(settings: AnyTaskSettings, section: str, **values: Any) -> AnyTaskSettings:
    """The settings with some values of a section replaced."""
    return settings.model_copy(update={section: getattr(settings, section).model_copy(update=values)})


def list_task_presets() -> list[str]:
    """The presets of tasks that come with the package."""
    folder = files("polyseme") / "presets" / "tasks"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


def read_task_settings(
    task: str, kind: type[AnyTaskSettings], source: str | None = None, overrides: Sequence[str] = ()
) -> AnyTaskSettings:
    """Read the settings of a task.

    Args:
        task: Its name.
        kind: The class of its settings.
        source: A preset or a .toml file; None: the preset named like the task, or the defaults of `kind`.
        overrides: Lines of TOML such as `train.seed=7`.

    Raises:
        ConfigError: If there is no such preset, or a value is wrong; all mistakes are named.

    """
    presets = list_task_presets()
    name = source or task
    if name in presets:
        text = (files("polyseme") / "presets" / "tasks" / f"{name}.toml").read_text(encoding="utf-8")
        values = tomllib.loads(text)
    elif source is None:
        values = {}
    elif Path(source).suffix in (".toml", ".json"):
        values = read_values(Path(source))
    else:
        raise ConfigError(
            f"There is no preset {name!r}.{suggest(name, presets)} "
            f"Choose {', '.join(presets)}, or pass a .toml file."
        )
    if values.setdefault("task", task) != task:
        raise ConfigError(f"{name} is a preset of {values['task']}, not of {task}.")
    for line in overrides:
        override(values, line)
    return parse_settings(kind, values, name)
