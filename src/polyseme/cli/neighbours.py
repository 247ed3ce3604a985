"""Commands that compare words and usages: nearest, similarity.

api  ->  cli.neighbours  ->  the terminal
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli.index_options import Groups, IndexModel, Memory, SelectedDocuments, SourceLayer, Uncorrected
from polyseme.cli.options import AsJson, mark_usage, parse_layer

if TYPE_CHECKING:
    from polyseme.api.neighbours import NeighbourGroup
    from polyseme.search.index import Usage
    from polyseme.word_vectors import Neighbour


def nearest(
    source: Annotated[
        str,
        typer.Argument(metavar="INDEX", help="An index, or a model with word vectors: en, zh, …"),
    ],
    word: Annotated[str, typer.Argument(metavar="WORD", help="The word.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many results.")] = 10,
    context: Annotated[
        str | None, typer.Option(help="A sentence that uses the word: find usages with the same meaning.")
    ] = None,
    same_word: Annotated[
        bool, typer.Option("--same-word", help="With --context: only usages of the same word.")
    ] = False,
    which: Annotated[
        int | None, typer.Option(min=1, help="With --context: which of several occurrences, from 1.")
    ] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="With --context: search the graph, which is faster.")
    ] = False,
    like: Annotated[
        list[str] | None,
        typer.Option(help="A word to add; a : b = c : ? is b --like c --unlike a. Can be repeated."),
    ] = None,
    unlike: Annotated[list[str] | None, typer.Option(help="A word to subtract; can be repeated.")] = None,
    min_count: Annotated[int, typer.Option(min=1, help="Only words with at least this many usages.")] = 1,
    min_chars: Annotated[int, typer.Option(min=1, help="Only words with at least this many characters.")] = 1,
    layer: Annotated[str | None, typer.Option(help="Fail unless the index stores this layer.")] = None,
    uncorrected: Uncorrected = False,
    memory: Memory = None,
    model: IndexModel = None,
    documents: SelectedDocuments = None,
    by: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Search words by meaning, or usages by meaning in context."""
    from polyseme import api
    from polyseme.api.neighbours import NeighbourGroup
    from polyseme.search.index import Index, Usage
    from polyseme.word_vectors import Neighbour

    opened = api.open_source(
        source,
        for_usages=context is not None,
        layer=None if layer is None else parse_layer(layer),
        uncorrected=uncorrected,
        memory=memory,
        model=model,
    )
    results = api.nearest(
        opened,
        word,
        k,
        context=context,
        same_word=same_word,
        which=which,
        approximate=approximate,
        like=like or (),
        unlike=unlike or (),
        min_count=min_count,
        min_chars=min_chars,
        documents=documents,
        by=by,
    )
    groups = [result for result in results if isinstance(result, NeighbourGroup)]
    usages = [result for result in results if isinstance(result, Usage)]
    neighbours = [result for result in results if isinstance(result, Neighbour)]
    if context is not None:
        _print_usages(usages, as_json=as_json)
    elif by is not None:
        _print_groups(groups, as_json=as_json)
    else:
        part = opened.restrict(documents) if documents and isinstance(opened, Index) else opened
        counts = part.counts() if isinstance(part, Index) else part.counts_by_word()
        _print_neighbours(neighbours, counts, as_json=as_json)


def _print_groups(groups: Sequence[NeighbourGroup], *, as_json: bool) -> None:
    """Print group, usages and nearest words of each."""
    if as_json:
        print(json.dumps([group.as_dict() for group in groups], ensure_ascii=False, indent=2))
        return
    for group in groups:
        words = " ".join(word for word, _ in group.neighbours)
        print(f"{group.group}\t{group.count}\t{words}")


def _print_neighbours(neighbours: Sequence[Neighbour], counts: Mapping[str, int], *, as_json: bool) -> None:
    """Print cosine, count and word of each."""
    rows = [{"word": word, "cosine": cosine, "count": counts[word]} for word, cosine in neighbours]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        print(f"{row['cosine']:.3f}\t{row['count']}\t{row['word']}")


def _print_usages(usages: Sequence[Usage], *, as_json: bool) -> None:
    """Print cosine, location and sentence of each."""
    if as_json:
        names = ("word", "cosine", "sentence", "start", "stop", "document", "line", "title")
        rows = [{name: getattr(usage, name) for name in names} for usage in usages]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for usage in usages:
        print(f"{usage.cosine:.3f}\t{Path(usage.document).name}:{usage.line}\t{mark_usage(usage)}")


def similarity(
    source: Annotated[str, typer.Argument(metavar="INDEX", help="An index, or a model.")],
    texts: Annotated[
        list[str],
        typer.Argument(metavar="A B…", help="Words, sentences, or sentences with a word in \\[brackets]."),
    ],
    layer: SourceLayer = None,
    uncorrected: Uncorrected = False,
    model: IndexModel = None,
    as_json: AsJson = False,
) -> None:
    """Compare words, usages or sentences by cosine; of three or more, find the odd one out."""
    from polyseme import api

    compared = api.similarity(
        source,
        *texts,
        layer=None if layer is None else parse_layer(layer),
        uncorrected=uncorrected,
        model=model,
        progress=True,
    )
    if as_json:
        rows = [{"texts": [pair.first, pair.second], "cosine": pair.cosine} for pair in compared.pairs]
        values: dict[str, Any] = {"kind": compared.kind, "pairs": rows, "odd_one_out": compared.odd_one_out}
        if compared.usual is not None:
            values["usual"] = compared.usual.as_dict()
        print(json.dumps(values, ensure_ascii=False, indent=2))
        return
    for pair in compared.pairs:
        print(f"{pair.cosine:.3f}\t{pair.first}\t{pair.second}")
    if compared.odd_one_out is not None:
        print(f"odd one out: {compared.odd_one_out}")
    if compared.kind == "usages" and compared.usual is not None:
        print(f"usual: {compared.usual}")
