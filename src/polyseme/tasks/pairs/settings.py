"""Settings of pairs."""

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


class PairsData(DataSettings):
    """How pairs are read; texts longer than `max_tokens` are refused."""

    format: Literal["auto", "csv", "tsv", "jsonl"] = "auto"
    first: str = "sentence1"  # names of columns or fields
    second: str = "sentence2"
    label: str = "label"
    skip: tuple[Label, ...] = ()  # examples with these labels are left out
    positive: Label | None = None  # the label of a right candidate; None: by its name (yes, 1, …)


class PairsHead(DenseHeadSettings):
    """What is predicted."""

    answer: Literal["label", "number"] = "label"


class PairsSettings(TaskSettings):
    """All settings of pairs."""

    task: Literal["pairs"] = "pairs"
    data: PairsData = PairsData()
    encoder: EncoderSettings = EncoderSettings()
    head: PairsHead = PairsHead()
    train: LabelTrainSettings = LabelTrainSettings()

    @model_validator(mode="after")
    def _numbers_have_no_labels(self) -> Self:
        if self.head.answer != "number":
            return self
        if self.data.positive is not None:
            raise ValueError('data.positive names a label, but head.answer="number" predicts numbers.')
        if self.train.class_weights != "none":
            raise ValueError('train.class_weights weighs labels, but head.answer="number" predicts numbers.')
        return self
