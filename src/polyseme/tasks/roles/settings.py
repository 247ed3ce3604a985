"""Settings of semantic roles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from polyseme.config import Settings
from polyseme.tasks.settings import DataSettings, DenseHeadSettings, TaskSettings
from polyseme.training.settings import Share


class RolesData(DataSettings):
    """How sentences with frames are read; those longer than `max_tokens` are refused."""

    format: Literal["auto", "jsonl", "conll2012", "conllup"] = "auto"
    predicates: Literal["given", "predicted"] = "given"  # of files with frames: taken from them, or found


class AlternatingEncoderSettings(Settings):
    """LSTMs that read forward and backward in turn, each with a highway past it."""

    layers: PositiveInt = 4
    size: PositiveInt = 128
    dropout: Share = 0.1  # of the input of each layer, the same values at all tokens
    recurrent_dropout: Share = 0.1  # of the recurrent weights


class RolesHead(DenseHeadSettings):
    """How predicates and roles are chosen."""

    mark: PositiveInt = 32  # size of the embedding that marks the predicate
    predicate_size: PositiveInt = 64  # of a direction of the LSTM that finds predicates
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5  # least probability of a predicate


class RolesSettings(TaskSettings):
    """All settings of semantic roles."""

    task: Literal["roles"] = "roles"
    data: RolesData = RolesData()
    encoder: AlternatingEncoderSettings = AlternatingEncoderSettings()
    head: RolesHead = RolesHead()
