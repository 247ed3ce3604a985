"""Settings of classification."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from polyseme.tasks.labels import Label
from polyseme.tasks.settings import (
    DataSettings,
    DenseHeadSettings,
    EncoderSettings,
    LabelTrainSettings,
    TaskSettings,
)


class ClassificationData(DataSettings):
    """How texts with labels are read; texts longer than `max_tokens` are truncated."""

    format: Literal["auto", "csv", "tsv", "jsonl", "lines", "folder"] = "auto"
    text: str = "text"  # names of columns or fields
    label: str = "label"
    multi: bool = False  # an example may have several labels, or none
    separator: str = "|"  # between several labels of a field
    skip: tuple[Label, ...] = ()  # examples with these labels are left out


class ClassificationHead(DenseHeadSettings):
    """How the tokens become one vector."""

    pool: Literal["mean", "max", "last", "attention", "biattention"] = "attention"


class ClassificationSettings(TaskSettings):
    """All settings of classification."""

    task: Literal["classification"] = "classification"
    data: ClassificationData = ClassificationData()
    encoder: EncoderSettings = EncoderSettings()
    head: ClassificationHead = ClassificationHead()
    train: LabelTrainSettings = LabelTrainSettings()

    @model_validator(mode="after")
    def _last_output_exists(self) -> Self:
        if self.head.pool == "last" and self.encoder.directions == 0:
            raise ValueError(
                'head.pool="last" is the last output of the encoder: set encoder.directions to 1 or 2.'
            )
        return self
