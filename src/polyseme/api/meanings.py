"""Verbs about what a word means in a corpus: senses, timeline, map_usages, change, disambiguate.

search, api.sources  ->  api.meanings  ->  api
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from polyseme.api.sources import open_part
from polyseme.choices import Correction, MapMethod, UsageView
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer
from polyseme.search.change import Change, draw_sense_shares
from polyseme.search.change_screening import MIN_COUNT, MIN_USAGES, find_common_words
from polyseme.search.change_search import ChangeSearch, ComputedChanges
from polyseme.search.disambiguation import Disambiguator, Prior, SenseScores, check_correction
from polyseme.search.index import Index
from polyseme.search.maps import Map, make_map
from polyseme.search.selection import Documents
from polyseme.search.sense_data import SenseExamples, read_sense_data, read_wordnet_senses
from polyseme.search.senses import Senses, find_senses
from polyseme.search.timeline import Timeline, make_timeline
from polyseme.search.usage_vectors import check_view, embed_usages


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
            open_part(index, documents, memory),
            word,
            max_senses=max_senses,
            groups=groups,
            seed=seed,
            by=by,
            on_progress=on_progress,
        )


def timeline(
    index: Index | str | Path,
    word: str,
    *,
    by: str | None = None,
    max_senses: int = 6,
    groups: bool = False,
    seed: int = 0,
    memory: int | None = None,
    documents: Documents | None = None,
    computed: Senses | None = None,
    progress: ProgressOption = None,
) -> Timeline:
    """Count the usages of a word, and the shares of its senses, over documents or years, with intervals.

    Args:
        index: An index, open or as a path.
        word: The word.
        by: "document", "document/10" for ten documents each, or a field of the metadata such as "year" or
            "year/10"; None takes years if all documents have one in their metadata, titles or file names,
            else documents, and joins them if they are many.
        max_senses: The largest number of senses to look for, as in `senses`.
        groups: Count stable groups of usages even if nothing shows that they are senses.
        seed: Seeds the sampling and the clustering.
        memory: Megabytes of vectors to keep in memory.
        documents: Only usages in these documents; see `nearest`.
        computed: The senses of the word, if they are known.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The periods in order, each with the frequency per million usages and the shares of the senses; the
        `documents` of a period selects it for `change`, `nearest` and `senses`.

    Raises:
        UsageError: If no document has the field.
        UnknownWordError: If the word has no usages.

    Example:
        >>> for period in polyseme.timeline("speeches-index", "war", by="year/10").periods:
        ...     print(period.name, f"{period.frequency:.0f}", period.interval, period.shares)

    """
    with open_progress(progress) as on_progress:
        return make_timeline(
            open_part(index, documents, memory),
            word,
            by=by,
            max_senses=max_senses,
            groups=groups,
            seed=seed,
            computed=computed,
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
        opened = open_part(index, documents, memory)
        usage_map = make_map(opened, unique_words, by=by, method=method, on_progress=on_progress)
        if out is not None:
            usage_map.save(out, force=force)
    return usage_map


def disambiguate(
    model: Elmo | str | Path,
    train: SenseExamples,
    test: SenseExamples,
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
        train: Labelled examples: a file, or a folder of CoarseWSD-20; see `search.sense_data`. Or tuples of a
            word, a sentence with the word in [brackets], and its sense.
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
        >>> train = [("bank", "He sat on the river [bank] .", "river"), …]
        >>> polyseme.disambiguate("en", train, [("bank", "The [bank] failed .")])

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
    indexes = open_part(first, documents, memory), open_part(second, against, memory)
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


def describe_rare_words(
    first: Index | str | Path,
    second: Index | str | Path,
    min_count: int = MIN_COUNT,
    *,
    all_words: bool = False,
    documents: Documents | None = None,
    against: Documents | None = None,
) -> str:
    """Say why `change` with the same arguments has no words to compare, and what to do."""
    counts = find_common_words(
        open_part(first, documents), open_part(second, against), 1, all_words=all_words
    )
    if not counts:
        return "No word is in both. Compare more text, or pass `all_words=True`."
    word, count = max(counts.items(), key=lambda item: item[1])
    most = f"No word has {max(min_count, MIN_USAGES):,} usages in both, {word} has most: {count:,}."
    return f"{most} {'Lower `min_count`' if count >= MIN_USAGES else 'Compare more text'}."


def _locked(out: str | Path | None) -> AbstractContextManager[None]:
    """The lock of an output, if there is one."""
    return nullcontext() if out is None else lock_output(Path(out))
