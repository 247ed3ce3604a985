"""Settings of coreference."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from polyseme.config import Settings
from polyseme.tasks.settings import DataSettings, EncoderSettings, TaskSettings, TaskTrainSettings
from polyseme.training.settings import Share


class CorefData(DataSettings):
    """How documents are read; sentences longer than `max_tokens` are split."""

    format: Literal["auto", "conll2012", "corefud", "jsonl"] = "auto"
    singletons: bool = True  # whether clusters of one mention are labelled, predicted and scored
    max_tokens: PositiveInt = 200
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.1


class CorefHead(Settings):
    """How mentions and antecedents are chosen."""

    max_width: PositiveInt = 12  # tokens of a mention
    spans_per_token: Annotated[float, Field(gt=0, le=1)] = 0.3  # candidates that are kept as mentions
    antecedents: PositiveInt = 30  # of each mention, after the coarse score
    window: PositiveInt = 1500  # kept mentions before it that may be antecedents
    size: PositiveInt = 128  # of the vector of a mention
    hidden: PositiveInt = 128
    features: PositiveInt = 16  # size of the embeddings of width, distance, same words and same speaker
    dropout: Share = 0.3


class CorefTrainSettings(TaskTrainSettings):
    """How coreference is trained: a document at a time."""

    batch: PositiveInt = 1
    max_tokens: PositiveInt = 4000  # of a document that are read at once: of longer ones, a part each time
    epochs: PositiveInt = 20
    patience: PositiveInt | None = 6


class CorefSettings(TaskSettings):
    """All settings of coreference."""

    task: Literal["coref"] = "coref"
    data: CorefData = CorefData()
    encoder: EncoderSettings = EncoderSettings()
    head: CorefHead = CorefHead()
    train: CorefTrainSettings = CorefTrainSettings()
