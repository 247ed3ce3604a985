"""The commands book and characters.

api  ->  cli.books  ->  the terminal
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from polyseme.choices import BookLanguage
from polyseme.cli.index_options import IndexPath, Memory, SelectedDocuments
from polyseme.cli.options import DOCUMENTS, AsJson, Encoding, Force, format_count

SHOWN_NAMES = 5  # companions, and persons who are spoken of alike


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


def characters(
    index: IndexPath,
    k: Annotated[int, typer.Option("-k", min=1, help="Maximum number of persons.")] = 40,
    alias: Annotated[Path | None, typer.Option(help="Persons, one per line: name, tab, aliases.")] = None,
    memory: Memory = None,
    documents: SelectedDocuments = None,
    as_json: AsJson = False,
) -> None:
    """Find the persons of an index, who occurs with whom, and who is spoken of alike."""
    from polyseme import api

    cast = api.characters(index, k=k, alias=alias, memory=memory, documents=documents, progress=True)
    if as_json:
        print(json.dumps(cast.as_dict(), ensure_ascii=False, indent=2))
        return
    print("name", "mentions", "documents", "with", "used alike", sep="\t")
    for person in cast.persons:
        companions = " ".join(f"{name} {count}" for name, count in person.companions[:SHOWN_NAMES])
        alike = " ".join(name for name, _ in person.nearest[:SHOWN_NAMES])
        print(person.name, person.count, len(person.documents), companions, alike, sep="\t")
