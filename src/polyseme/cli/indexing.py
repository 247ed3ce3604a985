"""The commands index and export: write an index, or its vectors for other programs.

api  ->  cli.indexing  ->  the terminal
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.choices import ExportFormat, GraphDtype, IndexPrecision, IndexView, SpaceKind
from polyseme.cli.index_options import Layer, SelectedDocuments, Uncorrected
from polyseme.cli.options import (
    DOCUMENTS,
    Device,
    Encoding,
    Force,
    ModelPath,
    Segment,
    format_count,
    parse_layer,
)


def index(
    model: ModelPath,
    texts: Annotated[
        list[str], typer.Argument(metavar="TEXT…", help="Files and folders; .gz, .zst, .html, .epub too.")
    ],
    out: Annotated[Path, typer.Option(help="A folder for the index; an interrupted one is resumed.")],
    layer: Layer = "top",
    view: Annotated[
        IndexView,
        typer.Option(help="Vectors of words, or of their contexts only, which are better for change."),
    ] = "word",
    min_count: Annotated[int, typer.Option(min=1, help="Only words with at least this many usages.")] = 1,
    max_count: Annotated[
        int | None, typer.Option(min=1, help="Only words with at most this many usages.")
    ] = None,
    stop: Annotated[str | None, typer.Option(help="A file of words to exclude, one per line.")] = None,
    only: Annotated[
        str | None, typer.Option(help="A file of words to include, one per line; all others are excluded.")
    ] = None,
    segment: Segment = None,
    documents: Annotated[str, typer.Option(help=DOCUMENTS)] = "file",
    meta: Annotated[
        str | None,
        typer.Option(
            help="Metadata: a table (file or title, tab, year, …), or a pattern for file names such as "
            "(?P<year>\\d{4})."
        ),
    ] = None,
    encoding: Encoding = "auto",
    space: Annotated[SpaceKind, typer.Option(help="Correction of the vectors for anisotropy.")] = "whiten",
    precision: Annotated[IndexPrecision, typer.Option(help="Precision of the vectors on disk.")] = "fp16",
    graph: Annotated[
        GraphDtype | None, typer.Option(help="Also build a graph for approximate search (needs usearch).")
    ] = None,
    device: Device = "cpu",
    add: Annotated[bool, typer.Option("--add", help="Add this text to an existing index.")] = False,
    force: Force = False,
) -> None:
    """Index every usage of every word of a corpus."""
    from polyseme import api

    built = api.index(
        model,
        texts,
        out,
        layer=parse_layer(layer),
        view=view,
        min_count=min_count,
        max_count=max_count,
        stop=stop or (),
        only=only or (),
        segment=segment,
        documents=documents,
        meta=meta,
        encoding=encoding,
        space=space,
        precision=precision,
        graph=graph,
        device=device,
        add=add,
        force=force,
        progress=True,
    )
    usages, words = format_count(len(built), "usage"), format_count(len(built.words), "word")
    print(f"{out}: {usages} of {words} in {format_count(len(built.blocks), 'block')}")
    if built.anisotropy is not None:
        before, after = (round(value, 3) + 0.0 for value in built.anisotropy)  # -0.0 becomes 0.0
        print(f"mean cosine of random usages: {before:.3f}, corrected ({space}) {after:.3f}")


def export(
    source: Annotated[
        str,
        typer.Argument(metavar="INDEX", help="An index, or a model with word vectors: en, zh, …"),
    ],
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="A new .vec, .txt or .bin file; without an ending, a folder."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Instead of OUT: write every usage with its vector to a .parquet file, lancedb:DIR or "
            "postgresql://USER@HOST/DATABASE.",
        ),
    ] = None,
    table: Annotated[str | None, typer.Option(help="Table of a database.", show_default="usages")] = None,
    format: Annotated[  # noqa: A002  # the word that people look for
        ExportFormat | None, typer.Option(help="Format of OUT.", show_default="by its ending")
    ] = None,
    uncorrected: Uncorrected = False,
    min_count: Annotated[int, typer.Option(min=1, help="Only words with at least this many usages.")] = 1,
    word: Annotated[
        str | None, typer.Option(help="Only usages of this word: KWIC in a .csv file, or with --to.")
    ] = None,
    documents: SelectedDocuments = None,
    bom: Annotated[
        bool, typer.Option(help="Begin a .csv file with a byte order mark, as Excel needs for Chinese.")
    ] = True,
    force: Force = False,
) -> None:
    """Write the mean vector of every word, or every usage with its vector, for other programs."""
    from polyseme import api

    written = api.export(
        source,
        out,
        to=to,
        table=table,
        format=format,
        uncorrected=uncorrected,
        min_count=min_count,
        word=word,
        documents=documents,
        bom=bom,
        force=force,
        progress=True,
    )
    if to is not None or word is not None:
        words = format_count(written.words, "word") if word is None else word
        print(f"{written.out}: {format_count(written.usages, 'usage')} of {words}")
        return
    print(f"{written.out}: {format_count(written.words, 'word')} of {written.size} values")
