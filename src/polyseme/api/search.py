"""Verbs about words in a corpus: index, nearest, senses, disambiguate, change.

search, words  ->  api.search  ->  api
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from polyseme.api.embedding import loaded
from polyseme.embedder import Elmo
from polyseme.formats.opening import lasting
from polyseme.model.choice import Layer
from polyseme.search.blocks import Precision
from polyseme.search.building import Filters, Watch, build_index
from polyseme.search.change import Change, draw_shares, find_change
from polyseme.search.disambiguation import Disambiguator, Judged, Prior, vectors_of
from polyseme.search.index import Index, open_index
from polyseme.search.labelled import read_first_senses, read_marked
from polyseme.search.maps import Map, make_map
from polyseme.search.senses import Senses, find_senses
from polyseme.search.space import Kind, check_kind
from polyseme.words import WordVectors, open_words


def index(
    model: Elmo | str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    layer: str | int = "top",
    min_count: int = 1,
    max_count: int | None = None,
    stop: Iterable[str] = (),
    only: Iterable[str] = (),
    segment: str | None = None,
    space: Kind = "whiten",
    precision: Precision = "fp16",
    graph: Literal["float16", "int8"] | None = None,
    add: bool = False,
    force: bool = False,
    watch: Watch | None = None,
    building: Callable[[float], None] | None = None,
) -> Index:
    """Index every usage of every word of `texts` in the folder `out`; killed, the same call goes on.

    layer: whose vectors. min_count, max_count, stop, only: which words have their usages kept. space: how the
    cone of contextual vectors is corrected, none, centre, components or whiten. precision: of the vectors on
    disk, fp16 or fp32. add: to one that is there.
    graph: build one for approximate search, too, of vectors in that type; `building` is told the share done.
    """
    elmo = loaded(model)
    given = [texts] if isinstance(texts, str | Path) else list(texts)
    place = Path(out).expanduser()
    filters = Filters(min_count, max_count, tuple(sorted(set(stop))), tuple(sorted(set(only))))
    build_index(
        elmo,
        given,
        place,
        layer=layer,
        filters=filters,
        segment=segment,
        space=space,
        precision=precision,
        model=None if isinstance(model, Elmo) else lasting(model),
        add=add,
        force=force,
        watch=watch,
    )
    found = open_index(place, elmo)
    if graph is not None:
        found.add_graph(graph, building)
    return found


def nearest(
    words: WordVectors | Index | str | Path, word: str, k: int = 10, *, min_count: int = 1, min_chars: int = 1
) -> list[tuple[str, float]]:
    """The `k` words nearest to `word`, with their cosines, by the mean of their contextual vectors.

    words: an index, a model that has vectors of words beside it (`open_words`), or what `mean_vectors` gives.
    min_count, min_chars: only words with so many usages, of so many characters.
    """
    if isinstance(words, Index):
        words = words.words
    found = words if isinstance(words, WordVectors) else open_words(words)
    return found.nearest(word, k, min_count=min_count, min_chars=min_chars)


def senses(index: Index | str | Path, word: str, *, most: int = 6, seed: int = 0) -> Senses:
    """The senses of a word in an index: groups of its usages, at most `most`; see `search.senses`."""
    return find_senses(index if isinstance(index, Index) else open_index(index), word, most=most, seed=seed)


def map_of(
    index: Index | str | Path,
    words: Sequence[str],
    out: str | Path | None = None,
    *,
    by: Literal["word", "sense"] = "word",
    method: Literal["pca", "tsne"] = "pca",
    force: bool = False,
) -> Map:
    """The usages of words on a plane; `out`: a .png or .html file to write."""
    found = make_map(index if isinstance(index, Index) else open_index(index), words, by=by, method=method)
    if out is not None:
        found.save(out, force=force)
    return found


def disambiguate(
    model: Elmo | str | Path,
    train: str | Path,
    test: str | Path,
    *,
    layer: Layer = "top",
    first: str | Path | None = None,
    space: Kind = "whiten",
    prior: Prior = 0.0,
) -> tuple[Judged, list[str | None]]:
    """Learn senses from labelled words and give those of others: how good they are, and the senses.

    train, test: files or folders as `search.labelled` reads them; first: WordNet's index.sense, for words
    without examples. space: how the cone of contextual vectors is corrected. prior: how much the logarithm of
    a sense's share of the examples counts beside its cosine; "auto" chooses it by the examples.
    """
    check_kind(space)
    elmo = loaded(model)
    asked = read_marked(test, "test")
    known = [example for example in read_marked(train, "train") if example.senses]
    senses = None if first is None else read_first_senses(first)
    examples = vectors_of(elmo, known, layer)
    found = Disambiguator.learn(known, examples, first=senses, space=space, prior=prior)
    guesses = found.guess(asked, vectors_of(elmo, asked, layer))
    return found.judge(asked, guesses), guesses


def change(
    one: Index | str | Path,
    other: Index | str | Path,
    words: Iterable[str] | None = None,
    *,
    min_count: int = 20,
    seed: int = 0,
    out: str | Path | None = None,
    force: bool = False,
) -> list[Change]:
    """How words moved between two indexes of one model, the greatest change first; see `search.change`.

    out: a .png file, for a picture of the shares of the senses of the first words.
    """
    first, second = (found if isinstance(found, Index) else open_index(found) for found in (one, other))
    moved = find_change(first, second, words, min_count=min_count, seed=seed)
    if out is not None:
        draw_shares(moved, (first.folder.name, second.folder.name), out, force=force)
    return moved
