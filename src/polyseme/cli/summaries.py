"""The command summarise.

api  ->  cli.summaries  ->  the terminal
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.options import AsJson, ModelPath, Segment, TextPath


def summarise(
    model: ModelPath,
    text: TextPath,
    sentences: Annotated[int, typer.Option(min=1, help="Number of sentences.")] = 3,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0: most central sentences, even if similar; 1: most varied.")
    ] = 0.3,
    segment: Segment = None,
    as_json: AsJson = False,
) -> None:
    """Summarise a text by its most central sentences; no training needed."""
    from polyseme import api

    summary = api.summarise(
        model, Path(text), sentences=sentences, diversity=diversity, segment=segment, progress=True
    )
    if as_json:
        print(json.dumps(summary.as_dict(), ensure_ascii=False))
        return
    for sentence in summary.sentences:
        print(sentence.text)
