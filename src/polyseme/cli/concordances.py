"""Commands that read a corpus word by word: concordance, collocates, passage.

api  ->  cli.concordances  ->  the terminal
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from polyseme.choices import ConcordanceSort
from polyseme.cli.index_options import Groups, IndexPath, Memory, Seed, SelectedDocuments
from polyseme.cli.options import AsJson

WordArgument = Annotated[str, typer.Argument(metavar="WORD", help="The word.")]
Window = Annotated[int, typer.Option(min=1, help="Words on each side that are near, within the sentence.")]
MaxSenses = Annotated[int, typer.Option(min=1, help="Maximum number of senses.")]
SenseGroups = Annotated[
    bool, typer.Option("--groups", help="Also stable groups of usages without evidence of senses.")
]


def concordance(
    index: IndexPath,
    word: WordArgument,
    k: Annotated[int, typer.Option("-k", min=1, help="How many lines.")] = 50,
    start: Annotated[int, typer.Option(min=0, help="How many lines to skip.")] = 0,
    sort: Annotated[
        ConcordanceSort,
        typer.Option(help="Order: of the text, by the words on the left or right, by sense or similarity."),
    ] = "document",
    usage: Annotated[
        int | None, typer.Option(min=0, help="For --sort similarity: the number of a usage.")
    ] = None,
    collocate: Annotated[str | None, typer.Option(help="Only lines with this word near the word.")] = None,
    window: Window = 5,
    width: Annotated[int, typer.Option(min=0, help="Characters of text on each side.")] = 60,
    max_senses: MaxSenses = 6,
    groups: SenseGroups = False,
    seed: Seed = 0,
    memory: Memory = None,
    documents: SelectedDocuments = None,
    by: Groups = None,
    as_json: AsJson = False,
) -> None:
    """List the usages of a word as lines with the text around them; --by counts them over documents."""
    from polyseme import api

    found = api.concordance(
        index,
        word,
        k,
        start=start,
        sort=sort,
        usage=usage,
        collocate=collocate,
        window=window,
        width=width,
        max_senses=max_senses,
        groups=groups,
        seed=seed,
        memory=memory,
        documents=documents,
        by=by,
        progress=True,
    )
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    marks = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("[", "]")
    for line in found.lines:
        cells = [str(line.number), f"{Path(line.document).name}:{line.line}"]
        cells += [] if line.sense is None else [str(line.sense + 1)]
        cells += [] if line.cosine is None else [f"{line.cosine:.3f}"]
        print(*cells, f"{line.left}{marks[0]}{line.word}{marks[1]}{line.right}", sep="\t")
    if by is not None:
        print("\nusages\tper 10,000\tof")
        for document in found.documents:
            print(f"{document.count}\t{document.per_10_000:.2f}\t{document.name}")
    rest = found.total - found.start - len(found.lines)
    if rest > 0:
        print(f"polyseme: {rest:,} more lines; see --start and -k.", file=sys.stderr)


def collocates(
    index: IndexPath,
    word: WordArgument,
    k: Annotated[int, typer.Option("-k", min=1, help="How many collocates.")] = 30,
    window: Window = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Only words that stand near this often.")] = 2,
    all_words: Annotated[
        bool, typer.Option("--all-words", help="Also function words, numbers and punctuation.")
    ] = False,
    senses: Annotated[bool, typer.Option("--senses", help="Count by sense of the word.")] = False,
    max_senses: MaxSenses = 6,
    groups: SenseGroups = False,
    seed: Seed = 0,
    memory: Memory = None,
    documents: SelectedDocuments = None,
    as_json: AsJson = False,
) -> None:
    """Find the words that stand near a word more often than elsewhere, by log-likelihood."""
    from polyseme import api

    found = api.collocates(
        index,
        word,
        k,
        window=window,
        min_count=min_count,
        all_words=all_words,
        senses=senses,
        max_senses=max_senses,
        groups=groups,
        seed=seed,
        memory=memory,
        documents=documents,
        progress=True,
    )
    if as_json:
        print(json.dumps([collocate.as_dict() for collocate in found], ensure_ascii=False, indent=2))
        return
    heads = ["log-likelihood", "near", "expected", "left", "right", "usages", *(["senses"] * senses), "word"]
    print(*heads, sep="\t")
    for collocate in found:
        counts = [collocate.left, collocate.right, collocate.total]
        by_sense = [" ".join(map(str, collocate.senses))] if senses else []
        print(
            f"{collocate.log_likelihood:.1f}",
            collocate.count,
            f"{collocate.expected:.1f}",
            *counts,
            *by_sense,
            collocate.word,
            sep="\t",
        )


def passage(
    index: IndexPath,
    usage: Annotated[
        int, typer.Argument(metavar="NUMBER", min=0, help="The number of a usage, as concordance prints it.")
    ],
    sentences: Annotated[int, typer.Option(min=0, help="How many sentences before and after it.")] = 15,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Print the text around a usage, with the word marked."""
    from polyseme import api

    found = api.passage(index, usage, sentences, memory=memory)
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    title = f"\t{found.usage.title}" if found.usage.title else ""
    print(f"{Path(found.usage.document).name}:{found.usage.line}{title}\n")
    print(found.marked("\033[1m", "\033[0m") if sys.stdout.isatty() else found.marked())
