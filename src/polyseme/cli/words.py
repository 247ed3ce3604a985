"""Verbs about words in a corpus: index, nearest, senses, disambiguate, change.

api  ->  cli.words  ->  a person's terminal
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyseme.cli.options import AsJson, Force, ModelPath, Segment, TextPaths
from polyseme.errors import UsageError

if TYPE_CHECKING:
    from polyseme.search.index import Usage

IndexPath = Annotated[Path, typer.Argument(metavar="INDEX", help="A folder that index wrote.")]
Space = Annotated[str, typer.Option(help="How the cone is corrected: none, centre, components or whiten.")]
OwnModel = Annotated[str | None, typer.Option("--model", help="The ELMo, if it does not lie where it did.")]


def index(
    model: ModelPath,
    text: TextPaths,
    out: Annotated[Path, typer.Option(help="A new folder for the index, or one to go on with.")],
    layer: Annotated[str, typer.Option(help="top, mean, or a number from 0.")] = "top",
    min_count: Annotated[int, typer.Option(min=1, help="Only words with so many usages.")] = 1,
    max_count: Annotated[int | None, typer.Option(min=1, help="Only words with at most so many.")] = None,
    stop: Annotated[str | None, typer.Option(help="A file of words to leave out, one a line.")] = None,
    only: Annotated[str | None, typer.Option(help="A file of the only words to keep, one a line.")] = None,
    segment: Segment = None,
    space: Space = "whiten",
    precision: Annotated[str, typer.Option(help="Of the vectors on disk: fp16 or fp32.")] = "fp16",
    graph: Annotated[
        str | None, typer.Option(help="For approximate search, too: float16 or int8, with usearch.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add this text to an index that is there.")] = False,
    force: Force = False,
) -> None:
    """Index every usage of every word of a corpus."""
    from polyseme import api
    from polyseme.progress import Progress

    kind: Any = space  # checked there
    how: Any = graph
    kept: Any = precision
    with Progress(*text) as progress:
        found = api.index(
            model,
            text,
            out,
            layer=int(layer) if layer.isdecimal() else layer,
            min_count=min_count,
            max_count=max_count,
            stop=_words(stop),
            only=_words(only),
            segment=segment,
            space=kind,
            precision=kept,
            graph=how,
            add=add,
            force=force,
            watch=progress.embedded,
            building=progress.building,
        )
    print(f"{out}: {len(found):,} usages of {len(found.words):,} words in {len(found.blocks)} blocks")


def nearest(
    model: Annotated[
        str,
        typer.Argument(metavar="INDEX", help="An index, a model trained here, or en-classic or zh-classic."),
    ],
    word: Annotated[str, typer.Argument(help="The word to look at.")],
    sentence: Annotated[
        str | None, typer.Option("--in", help="A sentence: usages that mean what the word means there.")
    ] = None,
    same_word: Annotated[bool, typer.Option("--word", help="With --in: usages of this word only.")] = False,
    which: Annotated[
        int | None, typer.Option(min=1, help="With --in: which of several such words, from 1.")
    ] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="With --in: by the graph, which is quicker.")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 10,
    min_count: Annotated[int, typer.Option(min=1, help="Only words with so many usages.")] = 1,
    min_chars: Annotated[int, typer.Option(min=1, help="Only words of so many characters.")] = 1,
    memory: Annotated[
        int | None, typer.Option(min=0, help="With --in: MB of vectors that may stay in memory.")
    ] = None,
    own: OwnModel = None,
    as_json: AsJson = False,
) -> None:
    """Print the words nearest to a word, or the usages nearest to a word in a sentence."""
    from polyseme import open_index, open_words
    from polyseme.search.index import is_index

    if sentence is not None:
        if not is_index(model):
            raise UsageError(f"{model}: --in needs an index. Make one: polyseme index MODEL TEXT --out DIR.")
        index = open_index(model, own, memory=None if memory is None else memory * 10**6)
        found = index.usages(word, sentence, k, same_word=same_word, which=which, approximate=approximate)
        _print_usages(found, as_json=as_json)
        return
    words = open_words(model)
    near = words.nearest(word, k, min_count=min_count, min_chars=min_chars)
    if as_json:
        rows = [{"word": other, "cosine": cosine, "count": words.count(other)} for other, cosine in near]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for other, cosine in near:
        print(f"{cosine:.3f}\t{words.count(other)}\t{other}")


def senses(
    folder: IndexPath,
    word: Annotated[str, typer.Argument(help="The word to look at.")],
    most: Annotated[int, typer.Option(min=1, help="Senses at most.")] = 6,
    as_json: AsJson = False,
) -> None:
    """Say which senses a word has in a corpus: groups of its usages."""
    from polyseme import api

    found = api.senses(folder, word, most=most)
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    several = len(found.senses) > 1
    print(
        f"{word}: "
        + (f"{len(found.senses)} senses, stability {found.stability:.2f}" if several else "one sense")
    )
    for number, sense in enumerate(found.senses, start=1):
        print(f"\n{number}. {sense.share:.0%} ({sense.count:,})  {' '.join(sense.neighbours)}")
        for usage in sense.examples:
            print(f"   {_marked(usage)}")
        if len(sense.documents) > 1:
            shares = sorted(sense.documents.items(), key=lambda item: -item[1])[:5]
            print("   " + ", ".join(f"{Path(name).stem} {share:.0%}" for name, share in shares))


def map_words(
    folder: IndexPath,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Whose usages are drawn.")],
    out: Annotated[Path, typer.Option(help="A .html or .png file.")],
    by: Annotated[str, typer.Option(help="Colours by word or by sense.")] = "word",
    method: Annotated[str, typer.Option(help="pca, or tsne with openTSNE.")] = "pca",
    force: Force = False,
) -> None:
    """Draw the usages of words on a plane."""
    from polyseme import api

    colours: Any = by  # checked there
    how: Any = method
    found = api.map_of(folder, words, out, by=colours, method=how, force=force)
    print(f"{out}: {len(found.usages):,} usages")


def disambiguate(
    model: ModelPath,
    train: Annotated[str, typer.Option(help="Words with their senses: a file, or a folder of CoarseWSD-20.")],
    test: Annotated[str, typer.Option(help="Words to give senses to, in the same form.")],
    layer: Annotated[str, typer.Option(help="top, mean, or a number from 0.")] = "top",
    first: Annotated[
        str | None, typer.Option(help="WordNet's index.sense: first senses for words without examples.")
    ] = None,
    space: Space = "whiten",
    prior: Annotated[
        str, typer.Option(help="Weight of a sense's share of the examples: a number, or auto.")
    ] = "0",
    guesses: Annotated[bool, typer.Option("--guesses", help="Print the sense of each word, too.")] = False,
) -> None:
    """Give words their senses, from labelled examples."""
    from polyseme import api

    chosen = int(layer) if layer.isdecimal() else layer
    kind: Any = space  # checked there
    judged, found = api.disambiguate(
        model, train, test, layer=chosen, first=first, space=kind, prior=_prior(prior)
    )
    if guesses:
        print(*(sense or "?" for sense in found), sep="\n")
    print(f"accuracy {judged.accuracy:.4f}, mean over words {judged.by_word:.4f}")
    print(
        f"first sense alone {judged.first:.4f}; {judged.backed_off:.1%} of {judged.count:,} without examples"
    )


def _prior(text: str) -> float | Literal["auto"]:
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
    one: IndexPath,
    other: Annotated[Path, typer.Argument(metavar="INDEX", help="Another one, of the same model.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS…]", help="All frequent words if left out.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 30,
    min_count: Annotated[int, typer.Option(min=1, help="Usages in both, where no words are given.")] = 20,
    out: Annotated[Path | None, typer.Option(help="A .png file: the shares of the senses.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Say how words moved between two corpora: two periods, authors or books."""
    from polyseme import api

    found = api.change(one, other, words or None, min_count=min_count, out=out, force=force)[:k]
    if as_json:
        print(json.dumps([one.as_dict() for one in found], ensure_ascii=False, indent=2))
        return
    print("distance\tprototype\tp\tshift\tp\tusages\tword")
    for moved in found:
        counts = f"{moved.counts[0]} {moved.counts[1]}"
        whole = f"{moved.distance:.3f}\t{moved.prototype:.3f}\t{moved.p:.3f}"
        print(f"{whole}\t{moved.shift:.3f}\t{moved.shift_p:.3f}\t{counts}\t{moved.word}")


def _words(path: str | None) -> list[str]:
    from polyseme.text.reading import read_lines

    return [] if path is None else [word for line in read_lines(path) for word in line.text.split()]


def _print_usages(found: list[Usage], *, as_json: bool) -> None:
    if as_json:
        rows = [{"word": u.word, "cosine": u.cosine, **u.place._asdict()} for u in found]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for usage in found:
        print(f"{usage.cosine:.3f}\t{Path(usage.place.document).name}:{usage.place.line}\t{_marked(usage)}")


def _marked(usage: Usage) -> str:
    """The sentence with its word marked: in bold on a terminal, in brackets elsewhere."""
    return usage.marked("\033[1m", "\033[0m") if sys.stdout.isatty() else usage.marked()
