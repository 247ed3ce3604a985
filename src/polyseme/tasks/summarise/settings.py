"""Settings of abstractive summaries."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from polyseme.tasks.seq2seq.settings import DecoderSettings, Seq2SeqTrainSettings
from polyseme.tasks.settings import DataSettings, EncoderSettings, TaskSettings


class SummariseData(DataSettings):
    """How texts and their summaries are read; of longer texts the first `max_tokens` are read."""

    format: Literal["auto", "tabs", "csv", "tsv", "jsonl"] = "auto"
    text: str = "text"
    summary: str = "summary"
    max_tokens: PositiveInt = 200
    target_segment: str = "auto"  # how summaries are segmented into words before units are learned


class SummaryDecoderSettings(DecoderSettings):
    """A decoder that copies from the text."""

    pointer: bool = True
    coverage: NonNegativeFloat = 0.5
    no_repeat: NonNegativeInt = 3


class SummariseSettings(TaskSettings):
    """All settings of abstractive summaries."""

    task: Literal["summarise"] = "summarise"
    data: SummariseData = SummariseData()
    encoder: EncoderSettings = EncoderSettings()
    head: SummaryDecoderSettings = SummaryDecoderSettings()
    train: Seq2SeqTrainSettings = Seq2SeqTrainSettings()
