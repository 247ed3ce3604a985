"""Settings that translations and summaries share."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from polyseme.config import Settings
from polyseme.tasks.seq2seq.units import UnitKind
from polyseme.tasks.settings import TaskTrainSettings
from polyseme.training.settings import Share


class DecoderSettings(Settings):
    """The decoder, its units, and how it is searched."""

    units: UnitKind = "bpe"
    vocabulary: Annotated[int, Field(ge=10)] = 8000  # largest number of units
    size: PositiveInt = 256  # of its LSTMs
    embedding: PositiveInt = 256  # of the units; input and output share it
    attention: Literal["dot", "none"] = "dot"  # none: the mean of the source, at every step
    pointer: bool = False  # whether units of the source can be copied
    coverage: NonNegativeFloat = 0.0  # weight of the loss of attending twice to a token
    dropout: Share = 0.3
    label_smoothing: Share = 0.1
    beam: PositiveInt = 4
    length_penalty: NonNegativeFloat = 1.0
    coverage_penalty: NonNegativeFloat = 0.0
    no_repeat: NonNegativeInt = 0  # length of the runs of units that may not occur twice; 0: any may
    max_units: PositiveInt = 200  # of a generated text, and of a target in training

    @model_validator(mode="after")
    def _can_copy(self) -> Self:
        if self.pointer and (self.attention == "none" or self.units == "words"):
            raise ValueError(
                'head.pointer needs head.attention="dot" and units that can spell any word: head.units="bpe" '
                'or "characters".'
            )
        return self


class Seq2SeqTrainSettings(TaskTrainSettings):
    """How translations and summaries are trained."""

    # Of the products: auto is bf16 on a CPU that multiplies bf16 itself, otherwise fp32. Weights are fp32.
    precision: Literal["auto", "fp32", "bf16"] = "auto"
