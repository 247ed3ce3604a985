"""The command book.

api  ->  cli.books  ->  the terminal
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.choices import BookLanguage
from polyseme.cli.options import DOCUMENTS, Encoding, Force, format_count


def book(
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT…", help="The book: files or folders, .html and .epub too."),
    ],
    out: Annotated[Path, typer.Option(help="A folder for the page, the tables, the model and the index.")],
    config: Annotated[str, typer.Option(help="A preset (tiny, novel, small, …) or a .toml file.")] = "novel",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as train.seed=7; can be repeated.")
    ] = None,
    alias: Annotated[Path | None, typer.Option(help="Characters, one per line: name, tab, aliases.")] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="Words that the segmentation must know, one per line: word, count, tag."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default="the name of the text")
    ] = None,
    language: Annotated[
        BookLanguage | None, typer.Option(help="Language of the page.", show_default="that of the text")
    ] = None,
    documents: Annotated[str, typer.Option(help=DOCUMENTS)] = "auto",
    encoding: Encoding = "auto",
    characters: Annotated[int, typer.Option(min=1, help="Maximum number of characters on the page.")] = 40,
    force: Force = False,
) -> None:
    """Train on a book and write one HTML page about its characters."""
    from polyseme import api

    result = api.book(
        texts,
        out,
        config,
        settings=settings or (),
        alias=alias,
        words=words,
        title=title,
        language=language,
        documents=documents,
        encoding=encoding,
        characters=characters,
        force=force,
        progress=True,
    )
    counts = result.mentions.counts
    most = ", ".join(f"{c.name} {counts[n]:,}" for n, c in enumerate(result.characters[:10]))
    chapters = format_count(len(result.mentions.chapters), "chapter")
    print(f"{chapters}, {format_count(len(result.characters), 'character')}: {most}")
    print(f"{result.page}: the page; beside it tables (CSV, GraphML), the model and the index")
