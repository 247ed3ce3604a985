"""What a person may set for a task; the rest the program counts.

    presets/tasks/*.toml, --config, --set  ->  tasks.settings  ->  tasks.experiment

Sections: [data], [input], [encoder], [head], [train].
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from polyseme.config import Settings, parse_settings, read_values, suggest
from polyseme.errors import ConfigError
from polyseme.training.settings import Share, TrainSettings, override

Label = Annotated[str, BeforeValidator(lambda given: given if isinstance(given, str) else json.dumps(given))]
TaskName = Literal["classification", "tagging", "pairs", "relations"]


class DataConfig(Settings):
    """How files become examples."""

    format: Literal[
        "auto", "csv", "tsv", "jsonl", "lines", "folder", "columns", "conllu", "slashed", "semeval"
    ] = "auto"
    text: str = "text"  # names of columns or fields
    first: str = "sentence1"
    second: str = "sentence2"
    label: str = "label"
    multi: bool = False  # an example may have several labels, or none
    separator: str = "|"  # between several labels in one field
    skip: tuple[Label, ...] = ()  # examples with these labels are left out
    positive: Label | None = (
        None  # of pairs: the label of a right answer; by its name if left out (yes, 1, …)
    )
    word: str | int = 0  # columns of tagged files: a number, from the end if negative, or a name of CoNLL-U
    tag: str | int = -1
    columns: NonNegativeInt | None = None  # of tagged files; 0: word/tag lines; counted in the training file
    scheme: Literal["auto", "none", "iob1", "iob2", "bioes", "bilou", "bmes"] = "auto"  # how tags spell spans
    segment: str | None = None  # how texts are cut; as the model was trained, or its tags are, if left out
    max_tokens: PositiveInt = 1000  # longer sentences are cut in classification, refused elsewhere
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.2  # of the training file, where there is no dev file


class InputConfig(Settings):
    """What a token is to the model."""

    elmo: Literal["input", "output", "both", "none"] = "input"  # where ELMo enters
    layers: Literal["mix", "top"] | NonNegativeInt = "mix"  # all of them, or one
    tune: Literal["frozen", "mix", "full"] = "mix"  # what of ELMo is trained: nothing, the mix, all
    mix_l2: NonNegativeFloat = 0.001  # lambda: keeps the layers alike
    elmo_dropout: Share = 0.5
    words: NonNegativeInt = 0  # size of a trained word embedding
    min_count: PositiveInt = 2  # of a word of it
    static: str | None = None  # a file of word2vec, GloVe or fastText vectors
    chars: NonNegativeInt = 0  # filters of a trained character encoder
    dropout: Share = 0.5  # of all but ELMo
    batch_norm: bool = False


class EncoderConfig(Settings):
    """The LSTM over the tokens."""

    directions: Literal[0, 1, 2] = 2  # none, forward, both
    layers: PositiveInt = 1
    size: PositiveInt = 128  # of a direction
    dropout: Share = 0.2  # of the input of each layer, the same values at all tokens
    recurrent_dropout: Share = 0.0  # of the recurrent weights


class HeadConfig(Settings):
    """What makes an answer of the encoder's outputs."""

    pool: Literal["mean", "max", "last", "attention", "biattention"] = "attention"  # of classification
    hidden: NonNegativeInt = 0  # a dense layer before the last one
    dropout: Share = 0.2
    crf: bool = True  # of tagging
    answer: Literal["label", "number"] = "label"  # of pairs
    positions: NonNegativeInt = 20  # of relations: size of the embedding of a distance


class TaskTrainConfig(Settings):
    """The training itself."""

    seed: int = 1
    epochs: PositiveInt = 20
    batch: PositiveInt = 32
    rate: PositiveFloat = 0.001
    elmo_rate: PositiveFloat = 0.0001  # of ELMo's own weights, with tune = "full"
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: Share = 0.0
    weight_decay: NonNegativeFloat = 0.0
    clip: PositiveFloat = 5.0
    accumulate: PositiveInt = 1
    patience: PositiveInt | None = 4  # epochs without a better one before an early stop
    class_weights: Literal["none", "balanced"] = "none"
    device: str = "auto"

    def for_loop(self) -> TrainSettings:
        """The settings as the training loop knows them: it counts examples, and validates every epoch."""
        names = ("seed", "rate", "schedule", "warmup", "weight_decay", "clip", "accumulate", "patience")
        shared: dict[str, Any] = {name: getattr(self, name) for name in names}
        return TrainSettings(
            **shared,
            epochs=float(self.epochs),
            optimizer="adamw",
            evaluations=self.epochs,
            device=self.device,
        )


class TaskConfig(Settings):
    """All settings of a task."""

    task: TaskName
    data: DataConfig = DataConfig()
    input: InputConfig = InputConfig()
    encoder: EncoderConfig = EncoderConfig()
    head: HeadConfig = HeadConfig()
    train: TaskTrainConfig = TaskTrainConfig()

    @model_validator(mode="after")
    def _something_is_read(self) -> Self:
        given = self.input
        if given.elmo in ("none", "output") and not (given.words or given.static or given.chars):
            raise ValueError(
                "Nothing is read: without ELMo at the input a model needs another one. "
                "Set input.words (such as 100), input.chars (such as 50) or input.static (a file)."
            )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.input.layers != "mix" and self.input.tune == "full":
            raise ValueError("input.tune full trains the mix of all layers: leave input.layers at mix.")
        if self.head.pool == "last" and self.encoder.directions == 0:
            raise ValueError("head.pool last is the encoder's last output: set encoder.directions to 1 or 2.")
        if self.head.pool != "attention" and self.task != "classification":
            raise ValueError("head.pool is for classification: other tasks pool in their own way.")
        if self.data.positive is not None and (self.task != "pairs" or self.head.answer == "number"):
            raise ValueError("data.positive is for pairs with labels: it names that of a right answer.")
        if self.head.answer == "number" and self.task != "pairs":
            raise ValueError('head.answer "number" is for pairs: other tasks answer with labels.')
        if self.train.class_weights != "none" and (
            self.head.answer == "number" or (self.task == "tagging" and self.head.crf)
        ):
            raise ValueError(
                "train.class_weights weighs single labels: a CRF and numbers have none. "
                'Set head.crf=false, or train.class_weights="none".'
            )
        if self.data.multi and self.task != "classification":
            raise ValueError("data.multi is for classification: other tasks have one label each.")
        return self

    def without_elmo(self) -> TaskConfig:
        """The same settings without ELMo; words take its place where nothing else is read."""
        given = self.input
        words = given.words or (0 if given.static or given.chars else 256)
        bare = given.model_copy(update={"elmo": "none", "words": words})
        return TaskConfig(**(self.model_dump() | {"input": bare.model_dump()}))


def task_presets() -> list[str]:
    """The configurations of tasks that come with the package."""
    folder = files("polyseme") / "presets" / "tasks"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


def read_task_config(task: str, source: str | None = None, overrides: Sequence[str] = ()) -> TaskConfig:
    """The task's own preset, or `source` (a preset or a .toml file), with overrides (`train.seed=7`)."""
    known = sorted(TaskName.__args__)  # type: ignore[attr-defined]
    if task not in known:
        raise ConfigError(f"There is no task {task!r}.{suggest(task, known)} Choose {', '.join(known)}.")
    name = source or task
    if name in task_presets():
        text = (files("polyseme") / "presets" / "tasks" / f"{name}.toml").read_text(encoding="utf-8")
        values = tomllib.loads(text)
    elif Path(name).suffix in (".toml", ".json"):
        values = read_values(Path(name))
    else:
        raise ConfigError(
            f"There is no preset {name!r}.{suggest(name, task_presets())} "
            f"Choose {', '.join(task_presets())}, or give a .toml file."
        )
    if values.setdefault("task", task) != task:
        raise ConfigError(f"{name} is a preset of {values['task']}, not of {task}.")
    for line in overrides:
        override(values, line)
    return parse_settings(TaskConfig, values, name)
