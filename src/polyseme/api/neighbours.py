"""Verbs that compare words and usages: nearest, similarity.

    search.index, word_vectors, api.sources  ->  api.neighbours  ->  api

An index is open or a path; options that take effect when it is opened (`uncorrected`, `memory`, `model`) need
the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, overload

from polyseme.api.sources import BUILD_INDEX, describe_source, open_model_words, open_part, open_source
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import UsageError
from polyseme.io.html import Cell
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer
from polyseme.search.index import Index, Usage, is_index, open_index
from polyseme.search.selection import Documents
from polyseme.search.similarity import Similarity, SimilarityPlan, make_encoder, plan_comparison
from polyseme.word_vectors import Neighbour, WordVectors


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
        opened = open_part(opened, documents)
    elif documents is not None or by is not None:
        raise UsageError(
            f"{describe_source(source)}: `documents` and `by` need an index. Build one: {BUILD_INDEX}."
        )
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
        `compare_tokens()` has those of their tokens. With an index, `usual` says what cosines usages of one
        word and of random words have.

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
        raise UsageError(
            f"{describe_source(source)}: `{name}` needs the path of an index. Build one: {BUILD_INDEX}."
        )
    if isinstance(source, Index):
        if layer is not None:
            source.check_layer(layer)
        opened = source
        plan = plan_comparison(texts, lambda: opened.words, lambda: opened.encoder)
        return replace(plan, find_usual=lambda: opened.usual_cosines)
    elmo = source
    encoder = cache(lambda: make_encoder(ensure_loaded(elmo), "top" if layer is None else layer))
    open_known = cache(lambda: words or open_model_words(elmo))
    return plan_comparison(texts, open_known if layer is None else None, encoder)
