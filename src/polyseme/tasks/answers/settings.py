"""Settings of question answering."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from polyseme.config import Settings
from polyseme.tasks.settings import DataSettings, EncoderSettings, TaskSettings, TaskTrainSettings
from polyseme.training.settings import Share


class AnswersData(DataSettings):
    """How questions and texts are read; sentences longer than `max_tokens` are split."""

    format: Literal["auto", "squad", "jsonl"] = "auto"
    max_tokens: PositiveInt = 200
    window: PositiveInt = 400  # tokens of a text that are read at once
    overlap: NonNegativeInt = 100  # tokens that successive windows share
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.1


class AnswersHead(Settings):
    """How answers are chosen."""

    max_answer_tokens: PositiveInt = 30
    allow_no_answer: bool = False  # whether a text may have no answer; training tunes when
    passages: PositiveInt = 3  # of searched documents: the best ones, which are read for the answer
    dropout: Share = 0.3


class AnswersTrainSettings(TaskTrainSettings):
    """How question answering is trained."""

    batch: PositiveInt = 16
    negatives: Share = 0.2  # of the questions: also asked about another text of the same article


class AnswersSettings(TaskSettings):
    """All settings of question answering."""

    task: Literal["answers"] = "answers"
    data: AnswersData = AnswersData()
    encoder: EncoderSettings = EncoderSettings()
    head: AnswersHead = AnswersHead()
    train: AnswersTrainSettings = AnswersTrainSettings()

    @model_validator(mode="after")
    def _windows_hold_every_answer(self) -> Self:
        if not self.head.max_answer_tokens <= self.data.overlap < self.data.window:
            raise ValueError(
                f"data.overlap is {self.data.overlap}, expected head.max_answer_tokens "
                f"({self.head.max_answer_tokens}) or more and less than data.window ({self.data.window}): "
                "otherwise an answer at the border of two windows is in neither."
            )
        if not self.encoder.directions:
            raise ValueError("encoder.directions is 0, but answers need an LSTM: set 1 or 2.")
        return self
