"""Arguments and options that several verbs share, and how their values are read.

cli.options  ->  cli.models, cli.language, cli.pretraining
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from polyseme.errors import UsageError
from polyseme.segmentations import Segmentation

MODEL = "A model folder, a zip or an .hdf5 file; or en-classic, zh-classic."
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)]
TextPath = Annotated[str, typer.Argument(metavar="TEXT", help="A file, a folder, .gz, .zst, or - (stdin).")]
TextPaths = Annotated[
    list[str], typer.Argument(metavar="TEXT…", help="Files, folders, .gz, .zst, or - (stdin).")
]
Options = Annotated[
    str | None, typer.Option(help="The options.json of an .hdf5 file, if it does not lie beside it.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Segment = Annotated[
    Segmentation | None,
    typer.Option(help="How to segment text; by default as the model was trained."),
]
Stateful = Annotated[bool, typer.Option("--stateful", help="Carry the state from sentence to sentence.")]
BatchTokens = Annotated[int, typer.Option(min=1, help="Tokens in a batch.")]
Precision = Annotated[
    str | None, typer.Option(help="fp32, bf16, int8 or auto; as the model was saved if left out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def count_of(number: int, thing: str) -> str:
    """`1 sentence`, `2,000 sentences`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def parse_layer(text: str) -> Any:
    """`mean`, `2`, `0.2,0.3,0.5` or `0.2,0.3,0.5*1.4` as `Elmo.embed` takes it."""
    if "," not in text:
        return int(text) if text.isdecimal() else text
    weights, _, gamma = text.partition("*")
    try:
        return [float(weight) for weight in weights.split(",")], float(gamma or 1)
    except ValueError:
        raise UsageError(
            f"--layer {text}: expected weights such as 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4."
        ) from None
