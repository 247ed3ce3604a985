"""Settings of tagging."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import NonNegativeInt, model_validator

from polyseme.tasks.settings import (
    DataSettings,
    DenseHeadSettings,
    EncoderSettings,
    LabelTrainSettings,
    TaskSettings,
)


class TaggingData(DataSettings):
    """How tagged files are read; sentences longer than `max_tokens` are refused."""

    format: Literal["auto", "columns", "conllu", "slashed"] = "auto"
    word: str | int = 0  # column: a number, from the end if negative, or a name of CoNLL-U
    tag: str | int = -1
    columns: NonNegativeInt | None = None  # of a file; 0: word/tag lines; counted in the training file
    scheme: Literal["auto", "none", "iob1", "iob2", "bioes", "bilou", "bmes"] = "auto"  # how tags spell spans


class TaggingHead(DenseHeadSettings):
    """How tags are chosen."""

    crf: bool = True  # all tags of a sentence together, or each alone


class TaggingSettings(TaskSettings):
    """All settings of tagging."""

    task: Literal["tagging"] = "tagging"
    data: TaggingData = TaggingData()
    encoder: EncoderSettings = EncoderSettings()
    head: TaggingHead = TaggingHead()
    train: LabelTrainSettings = LabelTrainSettings()

    @model_validator(mode="after")
    def _weights_fit(self) -> Self:
        if self.train.class_weights != "none" and self.head.crf:
            raise ValueError(
                "train.class_weights needs single tags, a CRF scores whole sequences: set head.crf=false, or "
                'train.class_weights="none".'
            )
        return self
