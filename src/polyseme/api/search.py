"""Verbs about words in a corpus: index, nearest, similarity, senses, map_usages, disambiguate, change.

    search, word_vectors  ->  api.search  ->  api

An index may be given open or as a path; options that take effect when it is opened (`uncorrected`, `memory`,
`model`) need the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, overload

from polyseme.choices import (
    Correction,
    GraphDtype,
    IndexPrecision,
    IndexView,
    MapMethod,
    SpaceKind,
    UsageView,
)
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import FormatError, UsageError
from polyseme.io.html import Cell
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer
from polyseme.search.approximate import check_graph
from polyseme.search.build import build_index
from polyseme.search.change import Change, draw_sense_shares
from polyseme.search.change_screening import MIN_COUNT
from polyseme.search.change_search import ChangeSearch, ComputedChanges
from polyseme.search.disambiguation import Disambiguator, Prior, SenseScores, check_correction
from polyseme.search.index import Index, Usage, is_index, open_index
from polyseme.search.maps import Map, make_map
from polyseme.search.selection import Documents
from polyseme.search.sense_data import read_sense_data, read_wordnet_senses
from polyseme.search.senses import Senses, find_senses
from polyseme.search.similarity import Similarity, SimilarityPlan, make_encoder, plan_comparison
from polyseme.search.usage_vectors import check_view, embed_usages
from polyseme.search.usage_writer import WordFilter
from polyseme.text.reading import read_lines
from polyseme.text.validate import list_paths
from polyseme.word_vectors import Neighbour, WordVectors, open_words

MEGABYTE = 10**6
BUILD_INDEX = "`polyseme.index(model, texts, out)`"


def index(
    model: Elmo | str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    layer: Layer = "top",
    view: IndexView = "word",
    min_count: int = 1,
    max_count: int | None = None,
    stop: str | Path | Iterable[str] = (),
    only: str | Path | Iterable[str] = (),
    segment: str | None = None,
    documents: str = "file",
    meta: str | Path | None = None,
    encoding: str = "auto",
    space: SpaceKind = "whiten",
    precision: IndexPrecision = "fp16",
    graph: GraphDtype | None = None,
    device: str = "cpu",
    add: bool = False,
    force: bool = False,
    progress: ProgressOption = None,
) -> Index:
    """Index every usage of every word of a corpus.

    The vectors go to the folder `out` block by block. The same call resumes an index that was interrupted.

    Args:
        model: The ELMo, loaded or as a path.
        texts: Files and folders; .gz and .zst are decompressed, the text of .html and .epub is extracted.
        out: The folder of the index.
        layer: Layer of the vectors: "top", "mean", a number from 0, weights, or (weights, gamma).
        view: "word" for the vector of the word, "context" for the states of the model around it, without the
            word itself; `change` is closer to human judgements with "context".
        min_count: Only words with at least this many usages in `texts`.
        max_count: Only words with at most this many usages in `texts`.
        stop: Words to leave out, or a file of them, separated by white space.
        only: The only words to keep, or a file of them.
        segment: How to split text into tokens; as the model was trained if None.
        documents: What is a document: "file", "line", "block" (between blank lines), "chapters-zh",
            "chapters-en", "auto" (chapters of both), or a regular expression for headings.
        meta: Metadata of the documents: a tab-separated table with a header, whose first column is a
            file or the title of a document; or a regular expression for file names, such as
            "(?P<year>[0-9]{4})".
        encoding: The encoding of the texts; "auto" detects it for each file.
        space: Correction of the vectors before cosines are computed: "none", "centre", "components" or
            "whiten".
        precision: Precision of the vectors on disk.
        graph: Also build a graph for approximate search, of vectors in this type.
        device: Where to compute, if the model is loaded here; see `load`.
        add: Add `texts` to an index that exists.
        force: Replace an index that exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The index, open.

    Raises:
        UsageError: If `out` holds something else or an index with other settings.
        DataError: If a text cannot be read, or no usage is left to index.

    Example:
        >>> index = polyseme.index("en", "books/", "books-index", min_count=5)
        >>> polyseme.nearest(index, "bank", context="He sat on the river bank .")

    """
    if graph is not None:
        check_graph(graph)
    elmo = ensure_loaded(model, device=device)
    folder = Path(out).expanduser()
    filters = WordFilter(min_count, max_count, _read_words(stop), _read_words(only))
    with open_progress(progress) as on_progress:
        build_index(
            elmo,
            list_paths(texts, "texts"),
            folder,
            layer=layer,
            view=view,
            filters=filters,
            segment=segment,
            documents=documents,
            meta=meta,
            encoding=encoding,
            space=space,
            precision=precision,
            model=elmo.path,
            add=add,
            force=force,
            on_progress=on_progress,
        )
        built = open_index(folder, elmo)
        if graph is not None:
            built.add_graph(graph, on_progress)
    return built


def _read_words(words: str | Path | Iterable[str]) -> tuple[str, ...]:
    """The words of a file or an iterable, each once, sorted."""
    if isinstance(words, str | Path):
        words = (word for line in read_lines(words) for word in line.text.split())
    return tuple(sorted(set(words)))


@overload
def nearest(
    source: WordVectors | Index | Elmo | str | Path,
    word: str,
    k: int = ...,
    *,
    context: None = ...,
    same_word: bool = ...,
    which: int | None = ...,
    position: int | None = ...,
    approximate: bool = ...,
    like: Sequence[str] = ...,
    unlike: Sequence[str] = ...,
    min_count: int = ...,
    min_chars: int = ...,
    layer: Layer | None = ...,
    uncorrected: bool = ...,
    memory: int | None = ...,
    model: Elmo | str | Path | None = ...,
    documents: Documents | None = ...,
    by: None = ...,
) -> ResultList[Neighbour]: ...


@overload
def nearest(
    source: WordVectors | Index | Elmo | str | Path,
    word: str,
    k: int = ...,
    *,
    context: str | Sequence[str],
    same_word: bool = ...,
    which: int | None = ...,
    position: int | None = ...,
    approximate: bool = ...,
    like: Sequence[str] = ...,
    unlike: Sequence[str] = ...,
    min_count: int = ...,
    min_chars: int = ...,
    layer: Layer | None = ...,
    uncorrected: bool = ...,
    memory: int | None = ...,
    model: Elmo | str | Path | None = ...,
    documents: Documents | None = ...,
    by: None = ...,
) -> ResultList[Usage]: ...


@overload
def nearest(
    source: Index | str | Path,
    word: str,
    k: int = ...,
    *,
    like: Sequence[str] = ...,
    unlike: Sequence[str] = ...,
    min_count: int = ...,
    min_chars: int = ...,
    layer: Layer | None = ...,
    uncorrected: bool = ...,
    memory: int | None = ...,
    model: Elmo | str | Path | None = ...,
    documents: Documents | None = ...,
    by: str,
) -> ResultList[NeighbourGroup]: ...


@overload
def nearest(
    source: WordVectors | Index | Elmo | str | Path,
    word: str,
    k: int = ...,
    *,
    context: str | Sequence[str] | None = ...,
    same_word: bool = ...,
    which: int | None = ...,
    position: int | None = ...,
    approximate: bool = ...,
    like: Sequence[str] = ...,
    unlike: Sequence[str] = ...,
    min_count: int = ...,
    min_chars: int = ...,
    layer: Layer | None = ...,
    uncorrected: bool = ...,
    memory: int | None = ...,
    model: Elmo | str | Path | None = ...,
    documents: Documents | None = ...,
    by: str | None = ...,
) -> ResultList[Neighbour] | ResultList[Usage] | ResultList[NeighbourGroup]: ...


def nearest(
    source: WordVectors | Index | Elmo | str | Path,
    word: str,
    k: int = 10,
    *,
    context: str | Sequence[str] | None = None,
    same_word: bool = False,
    which: int | None = None,
    position: int | None = None,
    approximate: bool = False,
    like: Sequence[str] = (),
    unlike: Sequence[str] = (),
    min_count: int = 1,
    min_chars: int = 1,
    layer: Layer | None = None,
    uncorrected: bool = False,
    memory: int | None = None,
    model: Elmo | str | Path | None = None,
    documents: Documents | None = None,
    by: str | None = None,
) -> ResultList[Neighbour] | ResultList[Usage] | ResultList[NeighbourGroup]:
    """Find the words nearest to a word or, with `context`, the usages nearest to a word in a sentence.

    Args:
        source: An index; or, for words only, a model with word vectors (see `open_words`) or `WordVectors`.
        word: The word.
        k: How many results.
        context: A sentence that uses the word, which [brackets] may mark; or its tokens. Finds usages instead
            of words.
        same_word: With `context`: only usages of this word.
        which: With `context`: which occurrence, from 1, if the word occurs several times.
        position: With tokens as `context`: the position of the word, from 0.
        approximate: With `context`: search the graph, which is faster and may miss a few usages.
        like: Words to add: a is to b as c is to ? is `nearest(source, b, like=[c], unlike=[a])`.
        unlike: Words to subtract.
        min_count: Only words with at least this many usages.
        min_chars: Only words with at least this many characters.
        layer: Refuse an index of another layer.
        uncorrected: With an index: compute cosines of the vectors as the model computed them.
        memory: With an index: megabytes of vectors to keep in memory.
        model: The ELMo of an index, if it has moved.
        documents: With an index: only usages in these documents: numbers ("1-20"), titles, or conditions on
            metadata ("year=1900-1950"). A word is then the mean of its usages there, and its neighbours are
            words of these documents.
        by: With an index: find the neighbours in each group of documents: by "document", a field such as
            "year", or a field and a width such as "year/10".

    Returns:
        Nearest first: `Neighbour`s with word and cosine or, with `context`, `Usage`s; with `by` a
        `NeighbourGroup` for each group in which the word occurs.

    Raises:
        UsageError: If arguments do not fit each other or the source.
        UnknownWordError: If a word has no vector.

    Example:
        >>> polyseme.nearest("en", "mother", 5)
        >>> polyseme.nearest("books-index", "bank", context="He sat on the river bank .", same_word=True)
        >>> polyseme.nearest("speeches-index", "liberty", by="year/50")

    """
    needing = {
        "same_word": same_word,
        "which": which is not None,
        "position": position is not None,
        "approximate": approximate,
    }
    excluded = {"like": like, "unlike": unlike, "min_count": min_count > 1, "min_chars": min_chars > 1}
    for name, is_set in (needing if context is None else excluded).items():
        if is_set:
            reason = "needs `context`, a sentence" if context is None else "has no effect with `context`"
            raise UsageError(f"`{name}` {reason}. Leave it out{', or add one' if context is None else ''}.")
    opened = open_source(
        source,
        for_usages=context is not None,
        layer=layer,
        uncorrected=uncorrected,
        memory=memory,
        model=model,
    )
    if by is not None and context is not None:
        raise UsageError("`by` has no effect with `context`. Leave it out.")
    if isinstance(opened, Index):
        opened = _restrict(opened, documents)
    elif documents is not None or by is not None:
        raise UsageError(f"{_name(source)}: `documents` and `by` need an index. Build one: {BUILD_INDEX}.")
    if context is not None and isinstance(opened, Index):
        return opened.usages(
            word,
            context,
            k,
            same_word=same_word,
            which=which,
            position=position,
            approximate=approximate,
        )
    weighted = [(word, 1.0), *((other, 1.0) for other in like), *((other, -1.0) for other in unlike)]
    names = [name for name, _ in weighted]
    if by is not None and isinstance(opened, Index):
        opened.count(word)  # refuses a word without usages
        groups = []
        for group, part in opened.split(by).items():
            counts = part.counts()
            if all(name in counts for name in names):
                vectors = part.words_with(*names)
                nearby = vectors.nearest_to_sum(weighted, k, min_count=min_count, min_chars=min_chars)
                groups.append(NeighbourGroup(group, counts[word], list(nearby)))
        return ResultList(groups, f"Nearest to {word} by {by}")
    words = opened.words_with(*names) if isinstance(opened, Index) else opened
    return words.nearest_to_sum(weighted, k, min_count=min_count, min_chars=min_chars)


@dataclass(frozen=True)
class NeighbourGroup:
    """The words nearest to a word in a group of documents.

    Attributes:
        group: The group: a year, an author, a title.
        count: How many usages the word has in it.
        neighbours: The nearest words, nearest first.

    """

    group: str
    count: int
    neighbours: list[Neighbour]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        words = [{"word": word, "cosine": cosine} for word, cosine in self.neighbours]
        return {"group": self.group, "count": self.count, "words": words}

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        words = " ".join(neighbour.word for neighbour in self.neighbours)
        return {"group": self.group, "usages": self.count, "nearest": words}


def open_source(
    source: WordVectors | Index | Elmo | str | Path,
    *,
    for_usages: bool = False,
    layer: Layer | None = None,
    uncorrected: bool = False,
    memory: int | None = None,
    model: Elmo | str | Path | None = None,
) -> Index | WordVectors:
    """Open what `nearest` searches: an index, or the word vectors of a model.

    Args:
        source: An index, word vectors or a model, open or as a path.
        for_usages: Whether usages are searched (`context`), which needs an index.
        layer: Refuse an index of another layer.
        uncorrected: With an index: leave its vectors as the model computed them.
        memory: With an index: megabytes of vectors to keep in memory.
        model: The ELMo of an index, if it has moved.

    Returns:
        An open index, or word vectors.

    Raises:
        UsageError: If an option is set that needs an index, or the path of one.

    """
    if isinstance(source, str | Path) and is_index(source):
        opened = open_index(source, model, memory=_to_bytes(memory), corrected=not uncorrected)
        if layer is not None:
            opened.check_layer(layer)
        if model is not None:
            opened.elmo  # noqa: B018  # refuses a model that the index was not built with
        return opened
    options = {"uncorrected": uncorrected, "memory": memory is not None, "model": model is not None}
    if isinstance(source, Index):
        for name, is_set in options.items():
            if is_set:
                raise UsageError(f"`{name}` needs the path of the index: this one is open already.")
        if layer is not None:
            source.check_layer(layer)
        return source
    for name, is_set in ({"context": for_usages} | options | {"layer": layer is not None}).items():
        if is_set:
            argument = f", layer={layer!r}" if name == "layer" else ""
            build = f"`polyseme.index(model, texts, out{argument})`"
            raise UsageError(f"{_name(source)}: `{name}` needs an index. Build one: {build}.")
    return source if isinstance(source, WordVectors) else _open_words(source)


def _open_words(model: Elmo | str | Path) -> WordVectors:
    """The word vectors stored beside a model."""
    path = model.path if isinstance(model, Elmo) else model
    if path is None:
        raise FormatError(
            "This model was not loaded from a folder, so no word vectors are stored beside it. Compute them "
            "with `polyseme.mean_vectors(model, sentences)`."
        )
    return open_words(path)


def similarity(
    source: Index | Elmo | str | Path,
    *texts: str,
    layer: Layer | None = None,
    uncorrected: bool = False,
    model: Elmo | str | Path | None = None,
    progress: ProgressOption = None,
) -> Similarity:
    """Compare two or more words, usages (the word in [brackets]) or sentences (the mean of their tokens).

    Args:
        source: An index, whose vectors are corrected, or a model, whose vectors are not.
        texts: Two or more texts of one kind.
        layer: Layer of a model; a word alone is then a sentence of one token. None compares words by their
            mean vectors (see `open_words`), and the rest by the top layer. An index has one layer and refuses
            another.
        uncorrected: With an index: compute cosines of the vectors as the model computed them.
        model: The ELMo of an index, if it has moved.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The cosines of all pairs and, of three or more texts, the odd one out; `cosine` is that of two texts,
        `compare_tokens()` has those of their tokens.

    Raises:
        UsageError: If there are fewer than two texts, or they are not of one kind.

    Example:
        >>> polyseme.similarity("en", "mother", "father").cosine
        >>> polyseme.similarity(elmo, "the river [bank]", "the [bank] failed", "a [shore]").odd_one_out

    """
    plan = plan_similarity(source, *texts, layer=layer, uncorrected=uncorrected, model=model)
    with open_progress(progress) as on_progress:
        return plan.finish(plan.embed(on_progress))


def plan_similarity(
    source: Index | Elmo | str | Path,
    *texts: str,
    layer: Layer | None = None,
    uncorrected: bool = False,
    model: Elmo | str | Path | None = None,
    words: WordVectors | None = None,
) -> SimilarityPlan:
    """Check and segment what `similarity` compares, without embedding it.

    A server embeds the sentences of several plans together and calls `finish`.

    Args:
        source: As in `similarity`.
        texts: As in `similarity`.
        layer: As in `similarity`.
        uncorrected: As in `similarity`.
        model: As in `similarity`.
        words: The word vectors of a model, if they are open already.

    Returns:
        The sentences to embed, and `finish`, which compares their vectors.

    Raises:
        UsageError: As in `similarity`.

    """
    if not isinstance(source, Index | Elmo) and is_index(source):
        source = open_index(source, model, corrected=not uncorrected)
    elif uncorrected or model is not None:
        name = "uncorrected" if uncorrected else "model"
        raise UsageError(f"{_name(source)}: `{name}` needs the path of an index. Build one: {BUILD_INDEX}.")
    if isinstance(source, Index):
        if layer is not None:
            source.check_layer(layer)
        opened = source
        return plan_comparison(texts, lambda: opened.words, lambda: opened.encoder)
    elmo = source
    encoder = cache(lambda: make_encoder(ensure_loaded(elmo), "top" if layer is None else layer))
    open_known = cache(lambda: words or _open_words(elmo))
    return plan_comparison(texts, open_known if layer is None else None, encoder)


def senses(
    index: Index | str | Path,
    word: str,
    *,
    max_senses: int = 6,
    groups: bool = False,
    seed: int = 0,
    memory: int | None = None,
    documents: Documents | None = None,
    by: str | None = None,
    progress: ProgressOption = None,
) -> Senses:
    """Find the senses of a word in a corpus: groups of usages that differ in topic or nearest words.

    Args:
        index: An index, open or as a path.
        word: The word.
        max_senses: The largest number of senses to look for; the data decide, and it may be one.
        groups: Return stable groups of usages even if nothing shows that they are senses.
        seed: Seeds the sampling and the clustering.
        memory: Megabytes of vectors to keep in memory.
        documents: Only usages in these documents; see `nearest`.
        by: Count the senses by a field of the metadata, such as "year" or "year/10"; by document if None.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The senses, most frequent first, with typical words and usages; `kind` and `evidence` say whether
        they are senses or groups.

    Raises:
        UsageError: If the word has too few usages.
        UnknownWordError: If the word has no usages.

    Example:
        >>> for sense in polyseme.senses("books-index", "bank").senses:
        ...     print(f"{sense.share:.0%}", sense.collocates, sense.neighbours)

    """
    with open_progress(progress) as on_progress:
        return find_senses(
            _restrict(_open(index, memory), documents),
            word,
            max_senses=max_senses,
            groups=groups,
            seed=seed,
            by=by,
            on_progress=on_progress,
        )


def map_usages(
    index: Index | str | Path,
    words: str | Sequence[str],
    out: str | Path | None = None,
    *,
    by: str = "word",
    method: MapMethod = "pca",
    memory: int | None = None,
    documents: Documents | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> Map:
    """Plot the usages of words in two dimensions.

    Args:
        index: An index, open or as a path.
        words: A word, or several.
        out: A .html or .png file to write.
        by: Colour usages by "word", "sense", "document" or a field of the metadata such as "year/10".
        method: "pca", or "tsne", which needs openTSNE.
        memory: Megabytes of vectors to keep in memory.
        documents: Only usages in these documents; see `nearest`.
        force: Replace `out` if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The usages and their points.

    Raises:
        UsageError: If `out` exists, or has another ending.
        UnknownWordError: If a word has no usages.

    Example:
        >>> polyseme.map_usages("books-index", ["bank", "shore"], "map.html", by="sense")

    """
    unique_words = [words] if isinstance(words, str) else list(dict.fromkeys(words))
    with _locked(out), open_progress(progress) as on_progress:
        opened = _restrict(_open(index, memory), documents)
        usage_map = make_map(opened, unique_words, by=by, method=method, on_progress=on_progress)
        if out is not None:
            usage_map.save(out, force=force)
    return usage_map


def disambiguate(
    model: Elmo | str | Path,
    train: str | Path,
    test: str | Path,
    *,
    layer: Layer = "concat",
    view: UsageView = "sentence",
    wordnet: str | Path | None = None,
    space: Correction = "senses",
    prior: Prior = "auto",
    segment: str | None = None,
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> tuple[SenseScores | None, list[str | None]]:
    """Learn the senses of words from labelled examples, and predict those of others.

    Args:
        model: The ELMo, loaded or as a path.
        train: Labelled examples: a file, or a folder of CoarseWSD-20; see `search.sense_data`.
        test: Examples to predict, in the same form; their labels may be missing.
        layer: Layer of the vectors: "concat", all of them joined; "top", "mean", a number from 0, weights,
            or (weights, gamma).
        view: What represents a usage: "word", the vector of the word; "context", the states of the model
            around it; "sentence", the context and the mean of the other words, in which rare ones weigh more.
        wordnet: WordNet's index.sense: the first sense is predicted for words without examples.
        space: Correction of the vectors: as for an index, or "senses", which whitens by the covariance
            within senses.
        prior: Weight of the logarithm of a sense's share of the examples, which is added to its cosine;
            "auto" chooses it by leave-one-out.
        segment: How to split sentences into tokens; as the model was trained if None.
        encoding: The encoding of the files; "auto" detects it for each.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The scores, None if no example of `test` is labelled, and the predicted sense of each example.

    Raises:
        DataError: If a file cannot be read.

    Example:
        >>> scores, senses = polyseme.disambiguate("en", "train.tsv", "test.tsv")

    """
    check_correction(space)
    check_view(view)
    elmo = ensure_loaded(model)
    split = partial(elmo.token_texts, segment=segment)
    test_usages = read_sense_data(test, "test", split, encoding)
    train_usages = [usage for usage in read_sense_data(train, "train", split, encoding) if usage.senses]
    first_senses = None if wordnet is None else read_wordnet_senses(wordnet)
    with open_progress(progress) as on_progress:
        train_vectors = embed_usages(elmo, train_usages, layer, view, on_progress)
        learned = Disambiguator.learn(
            train_usages, train_vectors, wordnet=first_senses, space=space, prior=prior
        )
        predictions = learned.predict(test_usages, embed_usages(elmo, test_usages, layer, view, on_progress))
    is_labelled = any(usage.senses for usage in test_usages)
    return learned.evaluate(test_usages, predictions) if is_labelled else None, predictions


def change(
    first: Index | str | Path,
    second: Index | str | Path,
    words: str | Sequence[str] = (),
    *,
    k: int = 30,
    min_count: int = MIN_COUNT,
    all_words: bool = False,
    seed: int = 0,
    out: str | Path | None = None,
    memory: int | None = None,
    documents: Documents | None = None,
    against: Documents | None = None,
    timeout: float | None = None,
    computed: ComputedChanges | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> ResultList[Change]:
    """Measure how the use of words changed between two corpora, such as two periods, authors or books.

    Args:
        first: An index.
        second: Another index, of the same model, layer and view; or the same with other documents.
        words: The words to compare, all of which are returned; all frequent content words if empty.
        k: How many words to return, if `words` is empty.
        min_count: The fewest usages in both indexes, if `words` is empty.
        all_words: Also rank function words and numbers, if `words` is empty.
        seed: Seeds the sampling and the tests of significance.
        out: A .png file for a plot of the shares of the senses.
        memory: Megabytes of vectors to keep in memory, of each index.
        documents: Only usages in these documents of the first index; see `nearest`.
        against: Only usages in these documents of the second index.
        timeout: Stop comparing after this many seconds; `complete` of the result is then False.
        computed: Results of earlier calls with the same indexes and seed, which this call reuses and extends.
        force: Replace `out` if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The words, greatest change first: effect size with its confidence interval, significance corrected
        for the number of words, and how usual the change is for words of similar frequency.

    Raises:
        UsageError: If the indexes cannot be compared, or a word has too few usages.

    Example:
        >>> polyseme.change("1900-index", "2000-index", ["gay", "broadcast"])
        >>> polyseme.change("book", "book", documents="1-60", against="61-120")

    """
    indexes = _restrict(_open(first, memory), documents), _restrict(_open(second, memory), against)
    names = [words] if isinstance(words, str) else list(words)
    with _locked(out), open_progress(progress) as on_progress:
        search = ChangeSearch(
            *indexes, seed=seed, timeout=timeout, computed=computed, on_progress=on_progress
        )
        changes = (
            search.compare_words(names)
            if names
            else search.find_most_changed(k, min_count, all_words=all_words)
        )
        if out is not None:
            draw_sense_shares(changes, (indexes[0].label, indexes[1].label), out, force=force)
    return changes


def _open(index: Index | str | Path, memory: int | None = None) -> Index:
    return index if isinstance(index, Index) else open_index(index, memory=_to_bytes(memory))


def _locked(out: str | Path | None) -> AbstractContextManager[None]:
    """The lock of an output, if there is one."""
    return nullcontext() if out is None else lock_output(Path(out))


def _restrict(index: Index, documents: Documents | None) -> Index:
    return index if documents is None else index.restrict(documents)


def _to_bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MEGABYTE


def _name(source: WordVectors | Index | Elmo | str | Path) -> str:
    """What to call a source in an error message."""
    return str(source) if isinstance(source, str | Path) else type(source).__name__
