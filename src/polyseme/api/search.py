"""Verbs about words in a corpus: index, nearest, similarity, senses, map, disambiguate, change.

search, words  ->  api.search  ->  api
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Literal

from polyseme.api.embedding import loaded
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.open import make_portable
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer
from polyseme.search.approximate import check_graph
from polyseme.search.build import build_index
from polyseme.search.change import Change, draw_sense_shares, find_changes
from polyseme.search.disambiguation import Correction, Disambiguator, Prior, SenseScores, check_correction
from polyseme.search.index import Index, is_index, open_index
from polyseme.search.maps import Map, make_map
from polyseme.search.sense_data import read_sense_data, read_wordnet_senses
from polyseme.search.senses import Senses, find_senses
from polyseme.search.similarity import Similarity, compare_texts, make_encoder
from polyseme.search.space import SpaceKind
from polyseme.search.usage_store import IndexView, Precision
from polyseme.search.usage_vectors import UsageView, check_view, embed_usages
from polyseme.search.usage_writer import WordFilter
from polyseme.word_vectors import Neighbour, WordVectors, open_words


def index(
    model: Elmo | str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    layer: Layer = "top",
    view: IndexView = "word",
    min_count: int = 1,
    max_count: int | None = None,
    stop: Iterable[str] = (),
    only: Iterable[str] = (),
    segment: str | None = None,
    space: SpaceKind = "whiten",
    precision: Precision = "fp16",
    graph: Literal["float16", "int8"] | None = None,
    add: bool = False,
    force: bool = False,
    progress: ProgressOption = None,
) -> Index:
    """Index every usage of every word of `texts` in the folder `out`; killed, the same call goes on.

    layer: whose vectors, or the weights of a mix. view: of the "word", or of its "context", the states of the
    model around it without its own letters: by these `change` is nearer to what people judge.
    min_count, max_count, stop, only: which words have their usages kept; counts are those of `texts`.
    space: how the cone of contextual vectors is corrected, none, centre, components or whiten.
    precision: of the vectors on disk, fp16 or fp32. add: to one that is there.
    graph: build one for approximate search, too, of vectors in that type.
    """
    if graph is not None:
        check_graph(graph)
    elmo = loaded(model)
    given = [texts] if isinstance(texts, str | Path) else list(texts)
    place = Path(out).expanduser()
    filters = WordFilter(min_count, max_count, tuple(sorted(set(stop))), tuple(sorted(set(only))))
    with open_progress(progress) as on_progress:
        build_index(
            elmo,
            given,
            place,
            layer=layer,
            view=view,
            filters=filters,
            segment=segment,
            space=space,
            precision=precision,
            model=None if isinstance(model, Elmo) else make_portable(model),
            add=add,
            force=force,
            on_progress=on_progress,
        )
        found = open_index(place, elmo)
        if graph is not None:
            found.add_graph(graph, on_progress)
    return found


def nearest(
    words: WordVectors | Index | str | Path, word: str, k: int = 10, *, min_count: int = 1, min_chars: int = 1
) -> ResultList[Neighbour]:
    """The `k` words nearest to `word`, with their cosines, by the mean of their contextual vectors.

    words: an index, a model that has vectors of words beside it (`open_words`), or what `mean_vectors` gives.
    min_count, min_chars: only words with so many usages, of so many characters.
    """
    return words_of(words).nearest(word, k, min_count=min_count, min_chars=min_chars)


def words_of(source: WordVectors | Index | str | Path) -> WordVectors:
    """The vectors of words of an index, which must be finished, or those that lie beside a model."""
    if isinstance(source, WordVectors):
        return source
    if isinstance(source, Index):
        return source.words
    return open_index(source).words if is_index(source) else open_words(source)


def similarity(
    source: Index | Elmo | str | Path, one: str, other: str, *, layer: Layer | None = None
) -> float:
    """The cosine of two words, of two usages (the word in [brackets]) or of two sentences (their means).

    source: an index, whose correction of the space is used, or a model, whose vectors are taken as they are.
    layer: of a model, "top" if left out; an index has one layer, and another one is refused.
    """
    return float(likeness(source, [one, other], layer=layer).cosines[0, 1])


def likeness(
    source: Index | Elmo | str | Path, texts: Sequence[str], *, layer: Layer | None = None
) -> Similarity:
    """As `similarity`, of two or more texts: the cosines of all pairs, and which is the odd one out."""
    if not isinstance(source, Index | Elmo) and is_index(source):
        source = open_index(source)
    if isinstance(source, Index):
        if layer is not None:
            source.check_layer(layer)
        index = source
        return compare_texts(texts, lambda: index.words, lambda: index.encoder)
    model = source
    encoder = cache(lambda: make_encoder(loaded(model), "top" if layer is None else layer))

    @cache
    def words() -> WordVectors:
        if isinstance(model, Elmo):
            raise FormatError("A loaded model has no vectors of words: give its path, or an index.")
        if layer is not None:
            raise UsageError(
                f"{model}: the words beside a model have vectors of one layer only. For another one make an "
                "index: polyseme index MODEL TEXT --out DIR --layer …"
            )
        return open_words(model)

    return compare_texts(texts, words, encoder)


def senses(index: Index | str | Path, word: str, *, most: int = 6, seed: int = 0) -> Senses:
    """The senses of a word in an index: groups of its usages, at most `most`; see `search.senses`."""
    return find_senses(
        index if isinstance(index, Index) else open_index(index), word, max_senses=most, seed=seed
    )


def map_of(
    index: Index | str | Path,
    words: str | Sequence[str],
    out: str | Path | None = None,
    *,
    by: Literal["word", "sense"] = "word",
    method: Literal["pca", "tsne"] = "pca",
    force: bool = False,
) -> Map:
    """The usages of words on a plane; `out`: a .png or .html file to write."""
    given = [words] if isinstance(words, str) else list(dict.fromkeys(words))
    found = make_map(index if isinstance(index, Index) else open_index(index), given, by=by, method=method)
    if out is not None:
        found.save(out, force=force)
    return found


def disambiguate(
    model: Elmo | str | Path,
    train: str | Path,
    test: str | Path,
    *,
    layer: Layer = "mean",
    view: UsageView = "sentence",
    first: str | Path | None = None,
    space: Correction = "senses",
    prior: Prior = "auto",
    segment: str | None = None,
) -> tuple[SenseScores | None, list[str | None]]:
    """Learn senses from labelled words and give those of others: how good they are, and the senses.

    Where no word of `test` has its sense beside it, there is nothing to judge by: None.

    train, test: files or folders as `search.labelled` reads them; first: WordNet's index.sense, for words
    without examples. view: what of a sentence tells the sense: the word's own vector ("word"), the states of
    the model around it ("context"), or these and the mean of the sentence ("sentence"). space: how the cone
    of contextual vectors is corrected: as in an index, or by how far examples of one sense lie apart
    ("senses").
    prior: how much the logarithm of a sense's share of the examples counts beside its cosine; "auto" chooses
    it by leaving examples out.
    segment: how the sentences of plain rows are cut around the marked word; as the model was trained if left
    out.
    """
    check_correction(space)
    check_view(view)
    elmo = loaded(model)
    cut = partial(elmo.token_texts, segment=segment)
    asked = read_sense_data(test, "test", cut)
    known = [example for example in read_sense_data(train, "train", cut) if example.senses]
    senses = None if first is None else read_wordnet_senses(first)
    examples = embed_usages(elmo, known, layer, view)
    found = Disambiguator.learn(known, examples, wordnet=senses, space=space, prior=prior)
    guesses = found.predict(asked, embed_usages(elmo, asked, layer, view))
    return found.evaluate(asked, guesses) if any(one.senses for one in asked) else None, guesses


def change(
    one: Index | str | Path,
    other: Index | str | Path,
    words: str | Iterable[str] | None = None,
    *,
    min_count: int = 20,
    seed: int = 0,
    out: str | Path | None = None,
    force: bool = False,
) -> ResultList[Change]:
    """How words moved between two indexes of one model, the greatest change first; see `search.change`.

    out: a .png file, for a picture of the shares of the senses of the first words.
    """
    first, second = (found if isinstance(found, Index) else open_index(found) for found in (one, other))
    asked = [words] if isinstance(words, str) else words
    moved = find_changes(first, second, asked, min_count=min_count, seed=seed)
    if out is not None:
        draw_sense_shares(moved, (first.folder.name, second.folder.name), out, force=force)
    return moved
