"""Settings of translation."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeInt

from polyseme.tasks.seq2seq.settings import DecoderSettings, Seq2SeqTrainSettings
from polyseme.tasks.settings import DataSettings, EncoderSettings, TaskSettings


class TranslateData(DataSettings):
    """How sources and their translations are read; sources longer than `max_tokens` are truncated."""

    format: Literal["auto", "parallel", "tabs", "csv", "tsv", "jsonl"] = "auto"
    source: str | NonNegativeInt = (
        "source"  # column of the source: its name, or its number in lines with tabs
    )
    target: str | NonNegativeInt = "target"
    target_ending: str | None = None  # of the file of targets, beside a parallel file of sources
    target_segment: str = "auto"  # how targets are segmented into words before units are learned
    bleu: Literal["auto", "13a", "zh", "intl", "char", "none"] = "auto"  # sacrebleu's tokenizer


class TranslateSettings(TaskSettings):
    """All settings of translation."""

    task: Literal["translate"] = "translate"
    data: TranslateData = TranslateData()
    encoder: EncoderSettings = EncoderSettings()
    head: DecoderSettings = DecoderSettings()
    train: Seq2SeqTrainSettings = Seq2SeqTrainSettings()
