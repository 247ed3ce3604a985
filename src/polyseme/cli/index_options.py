"""Options of the commands that read indexes.

choices, cli.options  ->  cli.index_options  ->  cli.indexing, cli.neighbours, cli.meanings
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.options import LAYER

IndexPath = Annotated[Path, typer.Argument(metavar="INDEX", help="A folder written by polyseme index.")]
Layer = Annotated[str, typer.Option(help=LAYER)]
SourceLayer = Annotated[
    str | None,
    typer.Option("--layer", help="Layer to use; only for models (an index stores a single layer)."),
]
Uncorrected = Annotated[
    bool, typer.Option("--uncorrected", help="Use the vectors as the model computed them.")
]
Memory = Annotated[int | None, typer.Option(min=0, help="Megabytes of vectors to keep in memory.")]
IndexModel = Annotated[str | None, typer.Option("--model", help="The ELMo of the index, if it has moved.")]
SelectedDocuments = Annotated[
    str | None,
    typer.Option("--documents", help="Only these documents: 1-20, titles, or year=1900-1950; with commas."),
]
Groups = Annotated[
    str | None, typer.Option("--by", help="Group by document, or a field such as year or year/10.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the sampling.")]
