"""Groups of the usages of a word, and whether they are senses: clusters with labels, examples and evidence.

    search.index, search.contexts, search.clusters  ->  search.senses
        ->  search.change, search.maps, api, server

A usage is represented by its own vector without grammatical directions, beside the topic of the content words
around it, so that usages do not group by position alone (subject or object, before punctuation). Stable
groups are senses only if there is evidence for it; otherwise they are called groups, and merged unless asked
for.
Two kinds of evidence count, either is enough:

    topic        two separate parts of the context point to the same group, see `measure_topic_evidence`, and
                 do so more than around words that are used alike: where the contexts of all names of a text
                 divide into battles and talk, that is no sense of one name
    neighbours   the words nearest to one group are not those nearest to another

N usages, H values, K groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.io.html import Cell
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.search.clusters import Clusters, cluster, merge
from polyseme.search.contexts import ContextReader, Contexts
from polyseme.search.grammar import list_adjacent_words, measure_grammar
from polyseme.search.index import Index, Usage
from polyseme.search.selection import sort_groups
from polyseme.search.space import normalize

MAX_USAGES = 3000  # of a word that are clustered; of more a sample is drawn
MIN_USAGES = 10  # fewer have no senses to tell apart
NEIGHBOURS, COLLOCATES, EXAMPLES = 8, 8, 3  # of a group
MIN_GROUP = 5  # usages of a group
MIN_STABILITY = 0.7  # of groups
MIN_TOPIC = 0.55  # evidence of topics that makes groups senses, chosen in benchmarks/senses.py
COMPARED_NEIGHBOURS = 30  # nearest words of a group that are compared with those of another
MIN_EXCESS = 0.2  # by which that evidence must be larger than around similar words
SIMILAR_WORDS, SIMILAR_USAGES, MIN_SIMILAR_COUNT = 12, 400, 30  # words used alike, and usages of each
MAX_OVERLAP = 0.12  # share of nearest words in common that makes groups senses
MIN_GRAMMAR = 0.4  # from which on groups are called grammatical
SIGNIFICANCE = 0.05
FOLDS = 2
PERMUTATIONS = 200

SenseKind = Literal["senses", "groups"]


class Evidence(NamedTuple):
    """How much groups of usages differ in meaning.

    Attributes:
        topic: Correlation of what two separate parts of the context say about the group, -1 to 1.
        p: How often parts of contexts that are paired at random correlate at least as much.
        usual: The same correlation around words that are used alike, the median of them.
        overlap: Share of the nearest words that groups have in common, 0 to 1.
        grammar: How well the grammatical position of a usage tells its group: 0 for chance, 1 for certainty.

    """

    topic: float
    p: float
    usual: float
    overlap: float
    grammar: float = 0.0

    @property
    def is_grammatical(self) -> bool:
        """Whether the groups are mainly grammatical positions, such as subject and object."""
        return self.grammar >= MIN_GRAMMAR

    @property
    def supports_senses(self) -> bool:
        """Whether the groups are senses: they differ in their topics or in their nearest words."""
        differs_in_topic = self.topic >= max(MIN_TOPIC, self.usual + MIN_EXCESS) and self.p < SIGNIFICANCE
        return differs_in_topic or self.overlap <= MAX_OVERLAP

    def __str__(self) -> str:
        return (
            f"topics agree {self.topic:.2f}, around similar words {self.usual:.2f}, "
            f"nearest words in common {self.overlap:.0%}"
        )


@dataclass(frozen=True)
class Sense:
    """One group of usages.

    Attributes:
        share: Its share of the word's usages.
        count: How many usages it has.
        neighbours: The words whose mean vectors are nearest to its centre.
        collocates: The content words around its usages that are most typical of it, by log-likelihood.
        before: The words that stand most typically before its usages.
        after: The words that stand most typically after them.
        examples: The usages nearest to its centre.
        documents: For each document, or group of documents, the share of the word's usages in it that are in
            this group.

    """

    share: float
    count: int
    neighbours: list[str]
    collocates: list[str]
    examples: list[Usage]
    documents: dict[str, float]
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "share": f"{self.share:.0%}",
            "usages": self.count,
            "with": " ".join(self.collocates),
            "neighbours": " ".join(self.neighbours),
            "example": self.examples[0].as_row()["usage"],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Senses:
    """The groups of usages of a word, the most frequent first, and whether they are senses.

    Attributes:
        word: The word.
        senses: The senses or groups; one without evidence of several, unless groups were asked for.
        kind: What they are: "senses", or "groups" without evidence of different meanings.
        candidates: How many stable groups there are, with evidence or without.
        evidence: How much these groups differ in meaning; None if there is only one.
        stability: How surely the same groups come back from a part of the usages, 0 to 1.
        silhouette: How far apart the groups are, -1 to 1.
        numbers: (N,) the numbers of the usages that were clustered.
        labels: (N,) the group of each, from 0.
        documents: How many of the usages are in each document, or group of documents.

    """

    word: str
    senses: list[Sense]
    kind: SenseKind
    candidates: int
    evidence: Evidence | None
    stability: float
    silhouette: float
    numbers: NDArray[np.int64]
    labels: NDArray[np.int64]
    documents: dict[str, int]

    @property
    def summary(self) -> str:
        """How many senses or groups there are, and why."""
        if self.evidence is None:
            return "one group of usages"
        reason = f"{self.evidence}; stability {self.stability:.2f}"
        if self.evidence.is_grammatical:
            reason += f"; mainly grammatical position, {self.evidence.grammar:.2f}"
        if self.kind == "senses":
            return f"{len(self.senses)} senses ({reason})"
        if len(self.senses) == 1:
            no_evidence = f"{self.candidates} stable groups are no evidence of senses"
            return f"one group of usages; {no_evidence} ({reason})"
        return f"{len(self.senses)} groups of usages, without evidence that they are senses ({reason})"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "word": self.word,
            "kind": self.kind,
            "candidates": self.candidates,
            "evidence": None
            if self.evidence is None
            else self.evidence._asdict() | {"is_grammatical": self.evidence.is_grammatical},
            "stability": self.stability,
            "silhouette": self.silhouette,
            "documents": self.documents,
            "senses": [
                {
                    "share": sense.share,
                    "count": sense.count,
                    "neighbours": sense.neighbours,
                    "collocates": sense.collocates,
                    "before": sense.before,
                    "after": sense.after,
                    "examples": [usage.marked() for usage in sense.examples],
                    "documents": sense.documents,
                }
                for sense in self.senses
            ],
        }

    def _list_results(self) -> ResultList[Sense]:
        return ResultList(self.senses, f"{self.word}: {self.summary}")

    def __repr__(self) -> str:
        return repr(self._list_results())

    def _repr_html_(self) -> str:
        return self._list_results()._repr_html_()


def find_senses(
    index: Index,
    word: str,
    *,
    max_senses: int = 6,
    groups: bool = False,
    seed: int = 0,
    by: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Senses:
    """Group the usages of a word into senses. Their number follows from the data and may be one.

    Args:
        index: The index.
        word: The word.
        max_senses: The largest number of groups to look for.
        groups: Return stable groups even if nothing shows that they differ in meaning.
        seed: Seeds the sampling, the clustering and the permutation test.
        by: Count the groups by a field of the metadata, such as "year" or "year/10"; by document if None.
        on_progress: Receives the progress.

    Returns:
        The senses or groups, the most frequent first; `kind` says which they are.

    Raises:
        UnknownWordError: The index has no usage of the word.
        UsageError: The word has too few usages, or `max_senses` is less than 1.

    Example:
        >>> senses = find_senses(index, "bank")
        >>> senses.kind, [(sense.share, sense.collocates) for sense in senses.senses]

    """
    if max_senses < 1:
        raise UsageError(f"max_senses is {max_senses}, expected 1 or more.")
    numbers = index.usage_numbers(word)
    if len(numbers) < MIN_USAGES:
        raise UsageError(
            f"{word!r} has {len(numbers)} usages, too few to tell senses apart: {MIN_USAGES} are needed."
        )
    if len(numbers) > MAX_USAGES:
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, MAX_USAGES, replace=False))
    on_progress(ProgressEvent("reading"))
    reader = index.context_reader
    contexts, vectors = reader.read(numbers), index.vectors(numbers)
    joined = join_topics(reader, contexts, word, vectors)
    clusters = cluster(
        joined,
        max_senses,
        seed,
        min_stability=MIN_STABILITY,
        min_size=MIN_GROUP,
        on_progress=on_progress,
    )
    candidates, stability = len(clusters.centres), clusters.stability
    evidence = None
    if candidates > 1:
        topic, p = measure_topic_evidence(reader, contexts, word, clusters.labels, seed)
        usual = measure_usual_topics(index, word, contexts, clusters.labels)
        overlap = measure_overlap(index, word, vectors, clusters.labels)
        grammar = measure_grammar(reader, contexts, clusters.labels, seed)
        evidence = Evidence(topic, p, usual, overlap, grammar)
    kind: SenseKind = "senses" if evidence is not None and evidence.supports_senses else "groups"
    if kind == "groups" and not groups:
        clusters = merge(joined)
    documents = index.groups(numbers, by)
    totals = Counter(documents)
    if by is not None:
        totals = Counter({name: totals[name] for name in sort_groups(list(totals)) if name})
    return Senses(
        word,
        _describe(index, word, numbers, vectors, joined, contexts, clusters, documents, totals),
        kind,
        candidates,
        evidence,
        stability,
        clusters.silhouette,
        numbers,
        clusters.labels,
        dict(totals),
    )


def represent_usages(index: Index, word: str, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the vectors (N, 2H) by which usages of a word are grouped, of length 1."""
    reader = index.context_reader
    return join_topics(reader, reader.read(numbers), word, index.vectors(numbers))


def join_topics(
    reader: ContextReader, contexts: Contexts, word: str, vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Join the directions (N, H) of usages, without grammar, and the topics around them to (N, 2H)."""
    return normalize(np.concatenate([reader.remove_grammar(vectors), reader.topics(contexts, word)], axis=1))


def measure_topic_evidence(
    reader: ContextReader, contexts: Contexts, word: str, labels: NDArray[np.int64], seed: int = 0
) -> tuple[float, float]:
    """Measure whether the content words around usages tell their groups apart.

    The content words around each usage are divided into two parts. How near each part is to the mean topic
    of each group, learnt from other usages, says which group the part points to; the score is the
    correlation of the two parts over all usages. Groups that differ in position alone have no topics, so the
    parts do not agree. Topics that vary around every word of the corpus count less. The p-value comes from
    pairing the parts of different usages at random.

    Args:
        reader: Reads contexts of the index.
        contexts: The contexts of the usages.
        word: The word.
        labels: (N,) the group of each usage; two groups or more.
        seed: Seeds the folds and the permutations.

    Returns:
        The correlation and its p-value.

    """
    rng = np.random.default_rng(seed)
    whole = reader.unusual_topics(reader.topics(contexts, word))
    parts = [reader.unusual_topics(reader.topics(contexts, word, part)) for part in (0, 1)]
    folds = rng.permutation(len(labels)) % FOLDS
    scores = np.zeros((2, len(labels), int(labels.max()) + 1))
    for fold in range(FOLDS):
        learnt, tested = folds != fold, folds == fold
        sums = [whole[learnt & (labels == label)].sum(axis=0) for label in range(scores.shape[2])]
        for part in range(2):
            scores[part, tested] = _centre(parts[part][tested] @ normalize(np.stack(sums)).T)
    first, second = scores
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    if scale == 0:  # no content words around the usages
        return 0.0, 1.0
    score = float((first * second).sum()) / scale
    shuffled = (second[rng.permutation(len(labels))] for _ in range(PERMUTATIONS))
    larger = sum(float((first * values).sum()) / scale >= score for values in shuffled)
    return score, (larger + 1) / (PERMUTATIONS + 1)


def measure_usual_topics(index: Index, word: str, contexts: Contexts, labels: NDArray[np.int64]) -> float:
    """Measure how much two parts of the context agree about these groups around words that are used alike.

    The groups are those of `word`; the contexts are those of the words nearest to it. If they agree as much,
    the groups belong to the text, not to the word.

    Args:
        index: The index, or a part of it; similar words are those of the whole index.
        word: The word.
        contexts: The contexts of its usages.
        labels: (N,) the group of each usage.

    Returns:
        The median correlation, as in `measure_topic_evidence`; 0 if no similar word has enough usages.

    """
    reader, whole = index.context_reader, index.whole
    words, directions = whole.words, whole.word_directions
    topics = reader.unusual_topics(reader.topics(contexts, word))
    groups = range(int(labels.max()) + 1)
    centres = normalize(np.stack([topics[labels == group].sum(axis=0) for group in groups]))
    is_compared = reader.is_content & (words.counts >= MIN_SIMILAR_COUNT)
    is_compared[words.row(word)] = False
    cosines = np.where(is_compared, directions @ directions[words.row(word)], -np.inf)
    nearest = np.argsort(-cosines, kind="stable")[: min(SIMILAR_WORDS, int(is_compared.sum()))]
    scores = []
    for similar in (words.words[row] for row in nearest):
        numbers = whole.usage_numbers(similar)
        numbers = numbers[:: -(-len(numbers) // SIMILAR_USAGES)]
        around = reader.read(numbers)
        parts = [reader.unusual_topics(reader.topics(around, similar, part)) @ centres.T for part in (0, 1)]
        first, second = (_centre(part) for part in parts)
        scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
        scores.append(float((first * second).sum()) / scale if scale else 0.0)
    return float(np.median(scores)) if scores else 0.0


def _centre(nearness: NDArray[np.float32]) -> NDArray[np.float32]:
    """Nearness (N, K) to groups, without what a usage shares with all groups, and a group with all usages."""
    centred: NDArray[np.float32] = nearness - nearness.mean(axis=1, keepdims=True)
    centred -= centred.mean(axis=0)
    return centred


def measure_overlap(
    index: Index, word: str, vectors: NDArray[np.float32], labels: NDArray[np.int64]
) -> float:
    """Return the share of nearest words that pairs of groups have in common, on average."""
    nearest = index.nearest_words(average_groups(vectors, labels), COMPARED_NEIGHBOURS, without=word)
    pairs = combinations(map(set, nearest), 2)
    return float(np.mean([len(a & b) / max(1, min(len(a), len(b))) for a, b in pairs]))


def average_groups(vectors: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the mean direction (K, H) of each group."""
    return normalize(np.stack([vectors[labels == label].mean(axis=0) for label in range(labels.max() + 1)]))


def _describe(
    index: Index,
    word: str,
    numbers: NDArray[np.int64],
    vectors: NDArray[np.float32],
    joined: NDArray[np.float32],
    contexts: Contexts,
    clusters: Clusters,
    documents: list[str],
    totals: Mapping[str, int],
) -> list[Sense]:
    """The groups with their words, examples and documents."""
    labels = clusters.labels
    neighbours = index.nearest_words(average_groups(vectors, labels), NEIGHBOURS, without=word)
    reader = index.context_reader
    collocates = reader.collocates(contexts, labels, word, COLLOCATES)
    before, after = (list_adjacent_words(reader, contexts, labels, side) for side in (-1, 1))
    senses = []
    for label, centre in enumerate(clusters.centres):
        members = np.flatnonzero(labels == label)
        cosines = joined[members] @ centre
        best = np.argsort(-cosines, kind="stable")[:EXAMPLES]
        counts = Counter(documents[row] for row in members)
        senses.append(
            Sense(
                len(members) / len(numbers),
                len(members),
                neighbours[label],
                collocates[label],
                [index.usage(int(numbers[members[row]]), float(cosines[row])) for row in best],
                {name: counts[name] / total for name, total in totals.items()},
                before[label],
                after[label],
            )
        )
    return senses
