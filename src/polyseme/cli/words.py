"""Commands about words in a corpus: index, nearest, similarity, senses, map, disambiguate, change, export.

api  ->  cli.words  ->  the terminal
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from polyseme.choices import (
    Correction,
    ExportFormat,
    GraphDtype,
    IndexPrecision,
    IndexView,
    MapMethod,
    SpaceKind,
    UsageView,
)
from polyseme.cli.options import (
    DOCUMENTS,
    LAYER,
    AsJson,
    Device,
    Encoding,
    Force,
    ModelPath,
    Segment,
    format_count,
    parse_layer,
)
from polyseme.errors import UsageError

if TYPE_CHECKING:
    from polyseme.api.search import NeighbourGroup
    from polyseme.search.index import Usage
    from polyseme.word_vectors import Neighbour

SHOWN_DOCUMENTS = 5  # per sense
FILE_ENDING = re.compile(r"\.[A-Za-z0-9]{1,6}$")
SHOWN_GROUPS = 3  # gained or lost, of a word

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
    from polyseme.api.search import NeighbourGroup
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
        print(f"{usage.cosine:.3f}\t{Path(usage.document).name}:{usage.line}\t{_mark(usage)}")


def _mark(usage: Usage) -> str:
    """The sentence with its word marked: in bold on a terminal, in brackets elsewhere."""
    return usage.marked("\033[1m", "\033[0m") if sys.stdout.isatty() else usage.marked()


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
        values = {"kind": compared.kind, "pairs": rows, "odd_one_out": compared.odd_one_out}
        print(json.dumps(values, ensure_ascii=False, indent=2))
        return
    for pair in compared.pairs:
        print(f"{pair.cosine:.3f}\t{pair.first}\t{pair.second}")
    if compared.odd_one_out is not None:
        print(f"odd one out: {compared.odd_one_out}")


def senses(
    index: IndexPath,
    word: Annotated[str, typer.Argument(metavar="WORD", help="The word.")],
    max_senses: Annotated[int, typer.Option(min=1, help="Maximum number of senses.")] = 6,
    groups: Annotated[
        bool, typer.Option("--groups", help="Also show stable groups of usages without evidence of senses.")
    ] = False,
    seed: Seed = 0,
    memory: Memory = None,
    documents: SelectedDocuments = None,
    by: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Find the senses of a word in a corpus: groups of usages that differ in topic or nearest words."""
    from polyseme import api

    senses_of_word = api.senses(
        index,
        word,
        max_senses=max_senses,
        groups=groups,
        seed=seed,
        memory=memory,
        documents=documents,
        by=by,
        progress=True,
    )
    if as_json:
        unknown = {} if senses_of_word.candidates > 1 else {"stability": None}  # nothing to compare
        print(json.dumps(senses_of_word.as_dict() | unknown, ensure_ascii=False, indent=2))
        return
    print(f"{word}: {senses_of_word.summary}")
    for number, sense in enumerate(senses_of_word.senses, start=1):
        print(f"\n{number}. {sense.share:.0%} ({sense.count:,})  {' '.join(sense.neighbours)}")
        if sense.collocates:
            print(f"   with: {' '.join(sense.collocates)}")
        for usage in sense.examples:
            print(f"   {_mark(usage)}")
        if len(sense.documents) > 1:
            print(
                f"   {_describe_documents(sense.documents, senses_of_word.documents, ordered=by is not None)}"
            )


def _describe_documents(shares: dict[str, float], totals: dict[str, int], *, ordered: bool) -> str:
    """The documents with most usages of a sense, or all groups in order, with share and count."""
    counts = {name: round(share * totals[name]) for name, share in shares.items()}
    names = list(counts)
    if not ordered:
        names = sorted(counts, key=lambda name: -counts[name])[:SHOWN_DOCUMENTS]
    return ", ".join(f"{_shorten(name)} {shares[name]:.0%} ({counts[name]})" for name in names)


def _shorten(name: str) -> str:
    """A file without its folder and ending; a title as it is."""
    return Path(name).stem if FILE_ENDING.search(name) else name


def map_usages(
    index: IndexPath,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Words to plot.")],
    out: Annotated[Path, typer.Option(help="A .html or .png file.")],
    by: Annotated[
        str, typer.Option(help="Colour usages by word, sense, document, or a field such as year/10.")
    ] = "word",
    method: Annotated[MapMethod, typer.Option(help="Projection; tsne needs openTSNE.")] = "pca",
    memory: Memory = None,
    documents: SelectedDocuments = None,
    force: Force = False,
) -> None:
    """Plot the usages of words in two dimensions."""
    from polyseme import api

    drawn = api.map_usages(
        index,
        words,
        out,
        by=by,
        method=method,
        memory=memory,
        documents=documents,
        force=force,
        progress=True,
    )
    print(f"{out}: {format_count(len(drawn.usages), 'usage')}")


def disambiguate(
    model: ModelPath,
    train: Annotated[str, typer.Option(help="Labelled examples: a file, or a folder of CoarseWSD-20.")],
    test: Annotated[str, typer.Option(help="Examples to predict, in the same form.")],
    layer: Layer = "concat",
    view: Annotated[
        UsageView,
        typer.Option(help="What represents a usage: the word, its context, or context and sentence."),
    ] = "sentence",
    wordnet: Annotated[
        str | None,
        typer.Option(help="WordNet's index.sense: predict the first sense of words without examples."),
    ] = None,
    space: Annotated[Correction, typer.Option(help="Correction of the vectors for anisotropy.")] = "senses",
    prior: Annotated[
        str, typer.Option(help="Weight of how frequent a sense is in the examples: a number, or auto.")
    ] = "auto",
    segment: Segment = None,
    encoding: Encoding = "auto",
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Also print the predicted senses.")
    ] = False,
) -> None:
    """Predict the senses of words from labelled examples."""
    from polyseme import api

    scores, senses_of_usages = api.disambiguate(
        model,
        train,
        test,
        layer=parse_layer(layer),
        view=view,
        wordnet=wordnet,
        space=space,
        prior=_parse_prior(prior),
        segment=segment,
        encoding=encoding,
        progress=True,
    )
    if predictions or scores is None:
        print(*(sense or "?" for sense in senses_of_usages), sep="\n")
    if scores is None:
        return
    print(f"accuracy {scores.accuracy:.4f}, mean over words {scores.accuracy_by_word:.4f}")
    print(
        f"first sense alone {scores.baseline:.4f}; {scores.unseen:.1%} of {scores.count:,} without examples"
    )


def _parse_prior(text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise UsageError(f"--prior is {text!r}, expected a number from 0, or auto.")
    return value


def change(
    first: IndexPath,
    second: Annotated[
        Path,
        typer.Argument(
            metavar="INDEX", help="Another index, of the same model, layer and view; or the same."
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS…", help="Words to compare.", show_default="all frequent words"),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many words, if none are named.")] = 30,
    min_count: Annotated[
        int, typer.Option(min=1, help="Minimum number of usages in both indexes, if no words are named.")
    ] = 20,
    all_words: Annotated[
        bool, typer.Option("--all-words", help="Also rank function words and numbers.")
    ] = False,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="A .png file: plot the shares of the senses.")] = None,
    memory: Memory = None,
    documents: SelectedDocuments = None,
    against: Annotated[
        str | None,
        typer.Option(help="Only these documents of the second index, as --documents of the first."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Stop comparing after this many seconds.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure how the use of words changed between two corpora: periods, authors or books."""
    from polyseme import api

    changes = api.change(
        first,
        second,
        words or (),
        k=k,
        min_count=min_count,
        all_words=all_words,
        seed=seed,
        out=out,
        memory=memory,
        documents=documents,
        against=against,
        timeout=timeout,
        force=force,
        progress=True,
    )
    if not changes.complete:
        print("polyseme: time ran out before all words were compared.", file=sys.stderr)
    if not changes:
        raise UsageError(f"No word has {min_count:,} usages in both indexes. Lower `min_count`.")
    if as_json:
        print(json.dumps([moved.as_dict() for moved in changes], ensure_ascii=False, indent=2))
        return
    print("change\t95% interval\tq\tusual\tpercentile\tchanged\tusages\tword")
    for moved in changes:
        low, high = moved.interval
        percentile = "-" if moved.percentile is None else f"{moved.percentile:.0%}"
        values = (
            f"{moved.prototype:.3f}\t{low:.2f} to {high:.2f}\t{moved.q:.2g}\t{moved.usual:.3f}\t{percentile}"
        )
        counts = f"{moved.counts[0]} {moved.counts[1]}"
        print(f"{values}\t{'yes' if moved.changed else 'no'}\t{counts}\t{moved.word}")
        for group in [group for group in moved.groups if group.state != "kept"][:SHOWN_GROUPS]:
            shares = f"{group.shares[0]:.0%} to {group.shares[1]:.0%}"
            print(f"\t{group.state}, {shares}: {' '.join(group.neighbours)}")
            print(f"\t  {_mark(group.examples[0])}")


def export(
    source: Annotated[
        str,
        typer.Argument(metavar="INDEX", help="An index, or a model with word vectors: en, zh, …"),
    ],
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="A new .vec, .txt or .bin file; without an ending, a folder."),
    ],
    format: Annotated[  # noqa: A002  # the word that people look for
        ExportFormat | None, typer.Option(help="Format of OUT.", show_default="by its ending")
    ] = None,
    uncorrected: Uncorrected = False,
    min_count: Annotated[int, typer.Option(min=1, help="Only words with at least this many usages.")] = 1,
    word: Annotated[
        str | None, typer.Option(help="Write all usages of this word to a .csv file instead: KWIC.")
    ] = None,
    documents: SelectedDocuments = None,
    force: Force = False,
) -> None:
    """Write the mean vector of every word, or every usage of one word, for other programs."""
    from polyseme import api

    written = api.export(
        source,
        out,
        format=format,
        uncorrected=uncorrected,
        min_count=min_count,
        word=word,
        documents=documents,
        force=force,
        progress=True,
    )
    if word is not None:
        print(f"{written.out}: {format_count(written.usages, 'usage')} of {word}")
        return
    print(f"{written.out}: {format_count(written.words, 'word')} of {written.size} values")
