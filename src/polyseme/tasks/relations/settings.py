"""Settings of relations."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeInt

from polyseme.tasks.labels import Label
from polyseme.tasks.settings import (
    DataSettings,
    DenseHeadSettings,
    EncoderSettings,
    LabelTrainSettings,
    TaskSettings,
)


class RelationsData(DataSettings):
    """How sentences with marked entities are read; those longer than `max_tokens` are refused."""

    format: Literal["auto", "csv", "tsv", "jsonl", "semeval"] = "auto"
    text: str = "text"  # names of columns or fields
    label: str = "label"
    skip: tuple[Label, ...] = ()  # examples with these labels are left out


class RelationsHead(DenseHeadSettings):
    """What the network knows about the entities."""

    positions: NonNegativeInt = 20  # size of the embedding of the distance to an entity


class RelationsSettings(TaskSettings):
    """All settings of relations."""

    task: Literal["relations"] = "relations"
    data: RelationsData = RelationsData()
    encoder: EncoderSettings = EncoderSettings()
    head: RelationsHead = RelationsHead()
    train: LabelTrainSettings = LabelTrainSettings()
