"""Commands about what a word means in a corpus: senses, timeline, map, change, disambiguate.

api  ->  cli.meanings  ->  the terminal
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyseme.choices import Correction, MapMethod, UsageView
from polyseme.cli.index_options import Groups, IndexPath, Memory, Seed, SelectedDocuments
from polyseme.cli.options import (
    LAYER,
    AsJson,
    Encoding,
    Force,
    ModelPath,
    Segment,
    format_count,
    mark_usage,
    parse_layer,
)
from polyseme.errors import UsageError

SHOWN_DOCUMENTS = 5  # per sense


FILE_ENDING = re.compile(r"\.[A-Za-z0-9]{1,6}$")


SHOWN_GROUPS = 3  # gained or lost, of a word


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
            print(f"   {mark_usage(usage)}")
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


def timeline(
    index: IndexPath,
    word: Annotated[str, typer.Argument(metavar="WORD", help="The word.")],
    by: Annotated[
        str | None,
        typer.Option(
            help="document, document/10, or a field such as year or year/10.",
            show_default="years if all documents have one, else documents",
        ),
    ] = None,
    max_senses: Annotated[int, typer.Option(min=1, help="Maximum number of senses.")] = 6,
    groups: Annotated[
        bool, typer.Option("--groups", help="Also count groups of usages without evidence of senses.")
    ] = False,
    seed: Seed = 0,
    memory: Memory = None,
    documents: SelectedDocuments = None,
    as_json: AsJson = False,
) -> None:
    """Count a word and its senses over documents or years, with 95% intervals."""
    from polyseme import api

    result = api.timeline(
        index,
        word,
        by=by,
        max_senses=max_senses,
        groups=groups,
        seed=seed,
        memory=memory,
        documents=documents,
        progress=True,
    )
    if as_json:
        print(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
        return
    print(result.periods.caption)
    senses_of_word = [] if result.senses is None else result.senses.senses
    if len(senses_of_word) == 1:
        senses_of_word = []  # its share is always 100%
    for number, sense in enumerate(senses_of_word, start=1):
        print(f"{number}. {sense.share:.0%}  {' '.join(sense.collocates or sense.neighbours)}")
    numbers = [f"sense {number + 1}" for number in range(len(senses_of_word))]
    print(result.by.partition("/")[0], "usages", "per million", "95% interval", *numbers, sep="\t")
    for period in result.periods:
        low, high = period.interval
        shares = (
            f"{share:.0%} ({least:.0%}-{most:.0%})"
            for share, (least, most) in zip(period.shares, period.share_intervals, strict=True)
            if senses_of_word
        )
        print(
            _shorten(period.name),
            period.count,
            f"{period.frequency:.0f}",
            f"{low:.0f} to {high:.0f}",
            *shares,
            sep="\t",
        )


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
    layer: Annotated[str, typer.Option(help=f"concat (layers joined), {LAYER}")] = "concat",
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
        lack = api.describe_rare_words(
            first, second, min_count, all_words=all_words, documents=documents, against=against
        )
        raise UsageError(lack)
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
            print(f"\t  {mark_usage(group.examples[0])}")
