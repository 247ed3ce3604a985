"""Arguments and options that several commands share: how they are parsed, and how values are printed.

choices, segmentations  ->  cli.options  ->  the other modules of cli
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.choices import ModelPrecision
from polyseme.errors import UsageError
from polyseme.json_text import parse_digits
from polyseme.segmentations import Segmentation

if TYPE_CHECKING:
    from polyseme.model.output import Layer
    from polyseme.search.index import Usage

MODEL = "A model folder, a .zip or .hdf5 file, or a bundled model: en, zh, en-classic, zh-classic."
LAYER = "top, mean, a number from 0, or weights such as 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4 (scaled)."

ENCODING = "Encoding of the text: auto detects it, or gb18030, big5, utf-16, latin-1, …"
DOCUMENTS = "A document: file, line, block, chapters-zh, chapters-en, auto, or a pattern of headings."

ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)]
TextPath = Annotated[
    str, typer.Argument(metavar="TEXT", help="A file or folder (.gz, .zst, .html, .epub too), or -.")
]
TextPaths = Annotated[
    list[str],
    typer.Argument(metavar="TEXT…", help="Files and folders (.gz, .zst, .html, .epub too), or -."),
]
Options = Annotated[
    str | None, typer.Option(help="The options.json of an .hdf5 model, if it is in another folder.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
Segment = Annotated[
    Segmentation | None,
    typer.Option(help="How to split text into tokens.", show_default="as the model was trained"),
]
Encoding = Annotated[str, typer.Option(help=ENCODING)]
Stateful = Annotated[bool, typer.Option("--stateful", help="Carry the state from sentence to sentence.")]
BatchTokens = Annotated[int, typer.Option(min=1, help="Tokens per batch.")]
Precision = Annotated[
    ModelPrecision | None,
    typer.Option(help="Precision of the computation.", show_default="as the model was saved"),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:N, mps, or auto for a CUDA GPU if there is one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def format_count(number: int, noun: str) -> str:
    """`1 sentence`, `2,000 sentences`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def parse_layer(text: str) -> Layer:
    """Parse `mean`, `2`, `0.2,0.3,0.5` or `0.2,0.3,0.5*1.4` into what `Elmo.embed` takes."""
    if "," not in text:
        number = parse_digits(text)
        return text if number is None else number
    weights, _, gamma = text.partition("*")
    try:
        return [float(weight) for weight in weights.split(",")], float(gamma or 1)
    except ValueError:
        raise UsageError(
            f"--layer {text}: expected weights such as 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4."
        ) from None


def mark_usage(usage: Usage) -> str:
    """The sentence with its word marked: in bold on a terminal, in brackets elsewhere."""
    return usage.marked("\033[1m", "\033[0m") if sys.stdout.isatty() else usage.marked()
