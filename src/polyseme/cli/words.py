"""Verbs about words in a corpus: index, nearest, similarity, senses, map, disambiguate, change.

api  ->  cli.words  ->  a person's terminal
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyseme.cli.options import AsJson, Force, ModelPath, Segment, count_of, parse_layer
from polyseme.errors import UsageError

if TYPE_CHECKING:
    from polyseme.search.index import Index, Usage

USUALLY = 10  # neighbours
HOW = "polyseme index MODEL TEXT --out DIR"
IndexPath = Annotated[Path, typer.Argument(metavar="INDEX", help="A folder that index wrote.")]
Space = Annotated[str, typer.Option(help="How the cone is corrected: none, centre, components or whiten.")]
Memory = Annotated[int | None, typer.Option(min=0, help="MB of vectors that may stay in memory.")]
Layer = Annotated[str, typer.Option(help="top, mean, a number from 0, or weights: 0.2,0.3,0.5*1.4.")]
OneLayer = Annotated[
    str | None, typer.Option("--layer", help="Of a model; an index has one, and another is refused.")
]
Raw = Annotated[bool, typer.Option("--raw", help="Of an index: without its correction of the cone.")]
OwnModel = Annotated[str | None, typer.Option("--model", help="The ELMo, if it does not lie where it did.")]


def index(
    model: ModelPath,
    text: Annotated[list[str], typer.Argument(metavar="TEXT…", help="Files, folders, .gz or .zst.")],
    out: Annotated[Path, typer.Option(help="A new folder for the index, or one to go on with.")],
    layer: Layer = "top",
    view: Annotated[str, typer.Option(help="word, or context: what stands around it, for change.")] = "word",
    min_count: Annotated[int, typer.Option(min=1, help="Only words with so many usages in TEXT.")] = 1,
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

    kind: Any = space  # checked there
    how: Any = graph
    kept: Any = precision
    looks: Any = view
    found = api.index(
        model,
        text,
        out,
        layer=parse_layer(layer),
        view=looks,
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
        progress=True,
    )
    blocks = count_of(len(found.blocks), "block")
    print(f"{out}: {count_of(len(found), 'usage')} of {count_of(len(found.words), 'word')} in {blocks}")
    if found.anisotropy is not None:
        before, after = (round(value, 3) + 0.0 for value in found.anisotropy)  # -0.0 is 0.0
        print(f"mean cosine of random pairs: {before:.3f} as they are, {after:.3f} corrected ({space})")


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
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many; 10 if left out.")] = None,
    min_count: Annotated[int, typer.Option(min=1, help="Only words with so many usages.")] = 1,
    min_chars: Annotated[int, typer.Option(min=1, help="Only words of so many characters.")] = 1,
    like: Annotated[
        list[str] | None, typer.Option(help="Another word that is added: a : b = c : ? is b --like c")
    ] = None,
    unlike: Annotated[list[str] | None, typer.Option(help="A word that is taken away: … --unlike a")] = None,
    layer: OneLayer = None,
    raw: Raw = False,
    memory: Memory = None,
    own: OwnModel = None,
    as_json: AsJson = False,
) -> None:
    """Print the words nearest to a word, or the usages nearest to a word in a sentence."""
    needs = {"--word": same_word, "--which": which is not None, "--approximate": approximate}
    excludes = {
        "--like": like,
        "--unlike": unlike,
        "--min-count": min_count > 1,
        "--min-chars": min_chars > 1,
    }
    _refuse_idle(excludes if sentence is not None else needs, sentence is not None)
    index = _index_or_none(model, own, memory, raw=raw, layer=layer)
    if own is not None and index is not None:
        index.elmo  # noqa: B018  # another model than its own is refused
    if sentence is not None:
        if index is None:
            raise UsageError(f"{model}: --in needs an index. Make one: {HOW}.")
        wanted = _how_many(k, len(index), "usages")
        found = index.usages(
            word, sentence, wanted, same_word=same_word, which=which, approximate=approximate
        )
        _print_usages(found, as_json=as_json)
        return
    from polyseme import open_words

    words = open_words(model) if index is None else index.words
    wanted = _how_many(k, len(words), "words")
    signs = [(word, 1.0), *((w, 1.0) for w in like or ()), *((w, -1.0) for w in unlike or ())]
    near = words.nearest_to_sum(signs, wanted, min_count=min_count, min_chars=min_chars)
    if as_json:
        rows = [{"word": other, "cosine": cosine, "count": words.count(other)} for other, cosine in near]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for other, cosine in near:
        print(f"{cosine:.3f}\t{words.count(other)}\t{other}")


def _how_many(k: int | None, most: int, what: str) -> int:
    if k is not None and k > most:
        raise UsageError(f"-k {k}: there are {most:,} {what} in all. Ask for so many at most.")
    return k or USUALLY


def similarity(
    model: Annotated[str, typer.Argument(metavar="INDEX", help="An index, or a model.")],
    texts: Annotated[
        list[str],
        typer.Argument(metavar="A B…", help="Words, sentences, or sentences with a word in \\[brackets]."),
    ],
    layer: OneLayer = None,
    raw: Raw = False,
    own: OwnModel = None,
    as_json: AsJson = False,
) -> None:
    """Print the cosine of words, of usages or of sentences; of three or more, which is the odd one out."""
    from polyseme.api.search import likeness

    index = _index_or_none(model, own, None, raw=raw, layer=None)
    chosen = None if layer is None else parse_layer(layer)
    found = likeness(model if index is None else index, texts, layer=chosen)
    pairs = list(combinations(range(len(texts)), 2))
    if as_json:
        rows = [{"texts": [texts[a], texts[b]], "cosine": float(found.cosines[a, b])} for a, b in pairs]
        values = {"kind": found.kind, "pairs": rows, "odd": found.odd_one_out}
        print(json.dumps(values, ensure_ascii=False, indent=2))
        return
    for a, b in pairs:
        print(f"{found.cosines[a, b]:.3f}\t{texts[a]}\t{texts[b]}")
    if found.odd_one_out is not None:
        print(f"odd one out: {found.odd_one_out}")


def senses(
    folder: IndexPath,
    word: Annotated[str, typer.Argument(help="The word to look at.")],
    most: Annotated[int, typer.Option(min=1, help="Senses at most.")] = 6,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Say which senses a word has in a corpus: groups of its usages."""
    from polyseme import api

    found = api.senses(_open(folder, memory), word, most=most)
    several = len(found.senses) > 1
    if as_json:
        unknown = {} if several else {"stability": None}  # there is nothing that could come back
        print(json.dumps(found.as_dict() | unknown, ensure_ascii=False, indent=2))
        return
    print(
        f"{word}: "
        + (f"{len(found.senses)} senses, stability {found.stability:.2f}" if several else "one sense")
    )
    for number, sense in enumerate(found.senses, start=1):
        print(f"\n{number}. {sense.share:.0%} ({sense.count:,})  {' '.join(sense.neighbours)}")
        for usage in sense.examples:
            print(f"   {_marked(usage)}")
        if len(sense.documents) > 1:
            counts = {name: round(share * found.documents[name]) for name, share in sense.documents.items()}
            most_of = sorted(counts, key=lambda name: -counts[name])[:5]
            parts = (f"{Path(name).stem} {sense.documents[name]:.0%} ({counts[name]})" for name in most_of)
            print("   " + ", ".join(parts))


def map_words(
    folder: IndexPath,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Whose usages are drawn.")],
    out: Annotated[Path, typer.Option(help="A .html or .png file.")],
    by: Annotated[str, typer.Option(help="Colours by word or by sense.")] = "word",
    method: Annotated[str, typer.Option(help="pca, or tsne with openTSNE.")] = "pca",
    memory: Memory = None,
    force: Force = False,
) -> None:
    """Draw the usages of words on a plane."""
    from polyseme import api

    colours: Any = by  # checked there
    how: Any = method
    found = api.map_of(_open(folder, memory), words, out, by=colours, method=how, force=force)
    print(f"{out}: {len(found.usages):,} usages")


def disambiguate(
    model: ModelPath,
    train: Annotated[str, typer.Option(help="Words with their senses: a file, or a folder of CoarseWSD-20.")],
    test: Annotated[str, typer.Option(help="Words to give senses to, in the same form.")],
    layer: Layer = "mean",
    view: Annotated[
        str,
        typer.Option(help="What tells the sense: word, context (around it), or sentence (both)."),
    ] = "sentence",
    first: Annotated[
        str | None, typer.Option(help="WordNet's index.sense: first senses for words without examples.")
    ] = None,
    space: Annotated[
        str, typer.Option(help="How the cone is corrected: none, centre, components, whiten or senses.")
    ] = "senses",
    prior: Annotated[
        str, typer.Option(help="Weight of a sense's share of the examples: a number, or auto.")
    ] = "auto",
    segment: Segment = None,
    guesses: Annotated[bool, typer.Option("--guesses", help="Print the sense of each word, too.")] = False,
) -> None:
    """Give words their senses, from labelled examples."""
    from polyseme import api

    kind: Any = space  # checked there
    seen: Any = view
    judged, found = api.disambiguate(
        model,
        train,
        test,
        layer=parse_layer(layer),
        view=seen,
        first=first,
        space=kind,
        prior=_prior(prior),
        segment=segment,
    )
    if guesses or judged is None:
        print(*(sense or "?" for sense in found), sep="\n")
    if judged is None:
        return
    print(f"accuracy {judged.accuracy:.4f}, mean over words {judged.accuracy_by_word:.4f}")
    print(
        f"first sense alone {judged.baseline:.4f}; {judged.unseen:.1%} of {judged.count:,} without examples"
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
    memory: Memory = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Say how words moved between two corpora: two periods, authors or books."""
    from polyseme import api

    pair = _open(one, memory), _open(other, memory)
    found = api.change(*pair, words or None, min_count=min_count, out=out, force=force)[:k]
    if not found:
        raise UsageError(f"No word has {min_count:,} usages in both indexes. Set --min-count lower.")
    if as_json:
        print(json.dumps([one.as_dict() for one in found], ensure_ascii=False, indent=2))
        return
    print("distance\tp\tprototype\tp\tshift\tp\tchanged\tusages\tword")
    for moved in found:
        pairs = ((moved.distance, moved.distance_p), (moved.prototype, moved.p), (moved.shift, moved.shift_p))
        figures = "\t".join(f"{value:.3f}\t{p:.3f}" for value, p in pairs)
        counts = f"{moved.counts[0]} {moved.counts[1]}"
        print(f"{figures}\t{'yes' if moved.changed else 'no'}\t{counts}\t{moved.word}")


def _refuse_idle(options: dict[str, Any], with_sentence: bool) -> None:
    """Refuse options that would do nothing."""
    given = [name for name, value in options.items() if value]
    if given:
        what = "says nothing beside --in" if with_sentence else "needs --in SENTENCE"
        raise UsageError(f"{given[0]} {what}. Leave it out{'' if with_sentence else ', or say --in'}.")


def _open(folder: str | Path, memory: int | None, own: str | None = None, *, raw: bool = False) -> Index:
    from polyseme import open_index

    return open_index(folder, own, memory=None if memory is None else memory * 10**6, corrected=not raw)


def _index_or_none(
    path: str, own: str | None, memory: int | None, *, raw: bool, layer: str | None
) -> Index | None:
    """The index at a path, with what is asked of it; None for a model, which knows nothing of these."""
    from polyseme.search.index import is_index

    if is_index(path):
        index = _open(path, memory, own, raw=raw)
        if layer is not None:
            index.check_layer(parse_layer(layer))
        return index
    given = {"--raw": raw, "--layer": layer, "--memory": memory is not None, "--model": own}
    for name in [name for name, value in given.items() if value]:
        more = f" --layer {layer}" if name == "--layer" else ""
        raise UsageError(f"{path}: {name} needs an index. Make one: {HOW}{more}.")
    return None


def _words(path: str | None) -> list[str]:
    from polyseme.text.reading import read_lines

    return [] if path is None else [word for line in read_lines(path) for word in line.text.split()]


def _print_usages(found: Iterable[Usage], *, as_json: bool) -> None:
    if as_json:
        rows = [{name: value for name, value in vars(usage).items() if name != "number"} for usage in found]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for usage in found:
        print(f"{usage.cosine:.3f}\t{Path(usage.document).name}:{usage.line}\t{_marked(usage)}")


def _marked(usage: Usage) -> str:
    """The sentence with its word marked: in bold on a terminal, in brackets elsewhere."""
    return usage.marked("\033[1m", "\033[0m") if sys.stdout.isatty() else usage.marked()
