"""The words around usages: the topic of a passage, and the grammatical position of a word in it.

    search.index (rows of the same sentence)  ->  search.contexts  ->  search.senses, search.change

An index stores every indexed word of a sentence in adjacent rows, so contexts are read without segmenting
text again. They give three results: topics, the mean direction of the content words around a usage;
grammatical directions, which depend on the words next to a usage and its position rather than on its meaning;
and collocates, the content words that are typical of a group of usages. Which variation is grammar, and which
topics vary with every word (narrative and speech, news and tables of results), is estimated from frequent
words of the index, the same way each time.

N usages, M context words, V words of the index, F grammatical features, H values, R directions.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError
from polyseme.search.index import Index
from polyseme.search.space import Space, fit_space, make_uncorrected_space, normalize
from polyseme.search.usage_store import ADVICE
from polyseme.text.function_words import find_frequent_function_words, is_content_word

Array = NDArray[np.float32]
Numbers = NDArray[np.int64]
WINDOW = 20  # words on each side of a usage
FREQUENT = 1e-3  # share of all usages at which a context word counts half as much as a rare one
FUNCTION_WORDS = 40  # frequent function words, each a grammatical feature of its own
SAMPLE_WORDS, SAMPLE_USAGES = 200, 80  # frequent content words, and usages of each, that show what is usual
MIN_SAMPLE_COUNT = 30  # usages of such a word
GRAMMAR_DIRECTIONS = 20
RIDGE = 10.0
MIN_COLLOCATE_COUNT = 2


@dataclass(frozen=True)
class Contexts:
    """The indexed words around N usages, in the same sentence, the usages themselves left out.

    Attributes:
        usages: (M,) the row of the usage, ascending.
        words: (M,) the row of the word in `Index.words`.
        offsets: (M,) words after the usage; negative before it.
        before: (N,) words before the usage in its sentence.
        after: (N,) words after it.

    """

    usages: Numbers
    words: Numbers
    offsets: Numbers
    before: Numbers
    after: Numbers

    def __len__(self) -> int:
        return len(self.before)


class SortedUsages(NamedTuple):
    """The usages of each word, one word after the other.

    Attributes:
        numbers: (U,) the numbers of the usages, ascending for each word.
        starts: (V,) where the usages of a word begin.
        counts: (V,) how many it has.

    """

    numbers: NDArray[np.uint32]
    starts: Numbers
    counts: Numbers

    def find(self, row: int) -> Numbers:
        """Return the usages of the word in a row of `Index.words`."""
        start = self.starts[row]
        return self.numbers[start : start + self.counts[row]].astype(np.int64)


class ContextReader:
    """Reads the words around usages of an index, and represents them."""

    def __init__(self, index: Index) -> None:
        self.index = index
        rows = {word: row for row, word in enumerate(index.words.words)}
        self._block_rows = []
        for block in index.blocks:
            missing = next((word for word in block.types if word not in rows), None)
            if missing is not None:
                raise FormatError(f"{index.folder}: damaged: {missing!r:.40} has no vector. {ADVICE}")
            self._block_rows.append(np.array([rows[word] for word in block.types], np.int64))

    @cached_property
    def is_content(self) -> NDArray[np.bool_]:
        """(V,) which words of the index are content words."""
        words = self.index.words
        frequent = find_frequent_function_words(dict(zip(words.words, words.counts.tolist(), strict=True)))
        return np.array([is_content_word(word) and word not in frequent for word in words.words], np.bool_)

    @cached_property
    def function_words(self) -> frozenset[str]:
        """The words of the index that are not content words."""
        pairs = zip(self.index.words.words, self.is_content.tolist(), strict=True)
        return frozenset(word for word, is_content in pairs if not is_content)

    @cached_property
    def _weights(self) -> Array:
        """(V,) how much a word says about the topic: rare ones most, function words nothing."""
        counts = np.asarray(self.index.words.counts, np.float64)
        weights: Array = (FREQUENT / (FREQUENT + counts / max(counts.sum(), 1)) * self.is_content).astype(
            np.float32
        )
        return weights

    @cached_property
    def ranks(self) -> Numbers:
        """(V,) the position of each word in alphabetical order; words that differ in case share one.

        Chinese characters are in the order of GB 2312: the frequent ones by their sound in pinyin.
        """
        keys = [_make_sort_key(word) for word in self.index.words.words]
        order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return np.array([order[key] for key in keys], np.int64)

    @cached_property
    def document_sizes(self) -> Numbers:
        """(D,) how many usages each of the listed documents has."""
        sizes = np.zeros(len(self.index.listed_documents), np.int64)
        for number in range(len(self.index.blocks)):
            rows = np.arange(*self.index.block_starts[number : number + 2])
            sizes += np.bincount(self.index.document_numbers(rows), minlength=len(sizes))
        return sizes

    def read(self, numbers: Numbers, window: int = WINDOW) -> Contexts:
        """Return the words around usages in their sentences, at most `window` on each side."""
        first, row, last = (np.zeros(len(numbers), np.int64) for _ in range(3))  # in the index
        starts = self.index.block_starts
        owners = np.searchsorted(starts, numbers, side="right") - 1
        for owner in np.unique(owners):
            chosen = owners == owner
            rows = numbers[chosen] - starts[owner]
            begin, end = self.index.blocks[owner].sentence_rows(rows)
            first[chosen], row[chosen], last[chosen] = (
                begin + starts[owner],
                numbers[chosen],
                end + starts[owner],
            )
        low, high = np.maximum(first, row - window), np.minimum(last, row + window + 1)
        sizes = high - low
        usages = np.repeat(np.arange(len(numbers)), sizes)
        members = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(low, sizes)
        offsets = members - row[usages]
        is_other = offsets != 0
        usages, members, offsets = usages[is_other], members[is_other], offsets[is_other]
        return Contexts(usages, self.find_word_rows(members), offsets, row - first, last - row - 1)

    def find_word_rows(self, numbers: Numbers) -> Numbers:
        """Return the row in `Index.words` of the word of each usage."""
        rows, starts = np.zeros(len(numbers), np.int64), self.index.block_starts
        owners = np.searchsorted(starts, numbers, side="right") - 1
        for owner in np.unique(owners):
            chosen = owners == owner
            types = self.index.blocks[owner].words[numbers[chosen] - starts[owner]]
            rows[chosen] = self._block_rows[owner][types]
        return rows

    def sort_usages(self) -> SortedUsages:
        """Return the usages of all words, sorted by word."""
        rows = self.find_word_rows(np.arange(self.index.block_starts[-1])).astype(np.int32)
        counts = np.bincount(rows, minlength=len(self.index.words))
        return SortedUsages(
            np.argsort(rows, kind="stable").astype(np.uint32), np.cumsum(counts) - counts, counts
        )

    def count_words(self, kept: NDArray[np.bool_]) -> Numbers:
        """Return how many of the usages (U,) that are kept each word of the index has (V,)."""
        counts = np.zeros(len(self.index.words), np.int64)
        starts = self.index.block_starts
        for number, (block, rows) in enumerate(zip(self.index.blocks, self._block_rows, strict=True)):
            words = block.words[kept[starts[number] : starts[number + 1]]]
            if len(words):
                counts += np.bincount(rows[words], minlength=len(counts))
        return counts

    def topics(self, contexts: Contexts, word: str, part: int | None = None) -> Array:
        """Return the direction (N, H) of the content words around each usage, rare words weighing more.

        Args:
            contexts: The contexts of usages of one word.
            word: That word, which is left out.
            part: 0 or 1 takes every other content word, so that two parts share none; None takes all.

        """
        kept = self._weights[contexts.words] > 0
        kept &= contexts.words != self.index.words.row(word)
        usages, words = contexts.usages[kept], contexts.words[kept]
        if part is not None:
            starts = np.searchsorted(usages, np.arange(len(contexts)))
            chosen = (np.arange(len(usages)) - starts[usages]) % 2 == part
            usages, words = usages[chosen], words[chosen]
        sums = np.zeros((len(contexts), self.index.head["size"]), np.float32)
        if len(usages):
            weighted = self._weights[words, None] * self.index.word_directions[words]
            present, firsts = np.unique(usages, return_index=True)
            sums[present] = np.add.reduceat(weighted, firsts, axis=0)
        return normalize(sums)

    @cached_property
    def _word_classes(self) -> Numbers:
        """(V,) the grammatical class of each word: a frequent function word, or a kind of word."""
        words = self.index.words.words  # most frequent first
        functions = [row for row in range(len(words)) if not self.is_content[row]][:FUNCTION_WORDS]
        is_word = np.array([any(map(str.isalnum, word)) for word in words], np.bool_)
        classes = np.where(self.is_content, 0, np.where(is_word, 1, 2))
        classes[functions] = np.arange(4, 4 + len(functions))
        return classes.astype(np.int64)

    def features(self, contexts: Contexts) -> Array:
        """Return features of the grammatical position of usages (N, F).

        The class of the word before and after (content, function, punctuation, none, or one of the most
        frequent function words), the relative position in the sentence, and the length of the sentence.
        """
        kinds = 4 + FUNCTION_WORDS
        count, rows = len(contexts), np.arange(len(contexts))
        values = np.zeros((count, 2 * kinds + 4), np.float32)
        for side, offset in enumerate((-1, 1)):
            classes = np.full(count, 3)  # no word on this side
            beside = contexts.offsets == offset
            classes[contexts.usages[beside]] = self._word_classes[contexts.words[beside]]
            values[rows, side * kinds + classes] = 1
        length = contexts.before + contexts.after
        position = contexts.before / np.maximum(length, 1)
        values[:, -4:] = np.stack([position, position**2, np.log1p(length), contexts.before == 0], axis=1)
        return values

    @cached_property
    def _deviations(self) -> tuple[Array, Array, Array]:
        """Features (N, F), vectors (N, H) and topics (N, H) of frequent words, minus the mean of the word."""
        index, rng = self.index, np.random.default_rng(0)
        counts = np.asarray(index.words.counts)
        size = int(index.head["size"])
        deviations = [self.features(self.read(np.zeros(0, np.int64)))], [np.zeros((0, size), np.float32)]
        topics = [np.zeros((0, size), np.float32)]
        for row in np.flatnonzero(self.is_content & (counts >= MIN_SAMPLE_COUNT))[:SAMPLE_WORDS]:
            word = index.words.words[row]
            numbers = index.usage_numbers(word)
            if len(numbers) > SAMPLE_USAGES:
                numbers = np.sort(rng.choice(numbers, SAMPLE_USAGES, replace=False))
            contexts = self.read(numbers)
            measured = self.features(contexts), index.vectors(numbers), self.topics(contexts, word)
            for parts, values in zip((*deviations, topics), measured, strict=True):
                parts.append(values - values.mean(axis=0))
        return np.concatenate(deviations[0]), np.concatenate(deviations[1]), np.concatenate(topics)

    @cached_property
    def grammatical_directions(self) -> Array:
        """(H, R) orthonormal directions that depend most on grammatical position.

        A ridge regression predicts the vectors of usages of frequent content words from `features`, both
        around the mean of each word; the directions are the main components of the predictions.
        """
        features, vectors, _ = self._deviations
        x, y = features.astype(np.float64), vectors.astype(np.float64)
        predicted = x @ np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ y)
        variances, axes = np.linalg.eigh(predicted.T @ predicted)  # ascending
        used = variances[::-1] > max(variances[-1], 1) * np.finfo(np.float32).eps
        count = min(GRAMMAR_DIRECTIONS, len(axes) // 8)  # leave most of a short vector
        return np.ascontiguousarray(axes[:, ::-1][:, used][:, :count], np.float32)

    @cached_property
    def _topic_space(self) -> Space:
        """Scales directions of topics by how much they usually vary around one word."""
        deviations = self._deviations[2]
        if len(deviations) < 2:
            return make_uncorrected_space(deviations.shape[1])
        return fit_space(np.zeros_like(deviations), "whiten", deviations)

    def unusual_topics(self, topics: Array) -> Array:
        """Return topics (N, H) in which directions that vary around every word count less."""
        return self._topic_space.to_directions(topics)

    def remove_grammar(self, directions: Array) -> Array:
        """Return directions (N, H) without their grammatical part."""
        axes = self.grammatical_directions
        return normalize(directions - np.matmul(np.matmul(directions, axes), axes.T, dtype=np.float32))

    def collocates(self, contexts: Contexts, labels: Numbers, word: str, k: int) -> list[list[str]]:
        """Return the content words that are most typical of each group of usages, by log-likelihood.

        Args:
            contexts: The contexts of usages of one word.
            labels: (N,) the group of each usage, from 0.
            word: The word, which is left out.
            k: How many words for each group, compared with the others; a single group with the whole index.

        """
        kept = self.is_content[contexts.words] & (contexts.words != self.index.words.row(word))
        words, groups = contexts.words[kept], labels[contexts.usages[kept]]
        types, columns = np.unique(words, return_inverse=True)
        table = np.zeros((int(labels.max()) + 1, len(types)))
        np.add.at(table, (groups, columns), 1)
        rest = table.sum(axis=0) - table
        rest_totals = rest.sum(axis=1)
        if len(table) == 1:
            counts = np.asarray(self.index.words.counts, np.float64)
            rest = np.broadcast_to(counts[types], table.shape)
            rest_totals = np.full(len(table), counts[self.is_content].sum())
        names = self.index.words.words
        collocates = []
        for group, count in enumerate(table):
            scores = log_likelihood(count, rest[group], count.sum(), rest_totals[group])
            scores[count < MIN_COLLOCATE_COUNT] = 0
            best = np.lexsort((types, -scores))[:k]
            collocates.append([names[types[column]] for column in best if scores[column] > 0])
        return collocates


def _make_sort_key(word: str) -> bytes:
    """What words are sorted by."""
    return unicodedata.normalize("NFKD", word.casefold()).encode("gb18030", "replace")


def log_likelihood(
    first: NDArray[np.float64], second: NDArray[np.float64], first_total: float, second_total: float
) -> NDArray[np.float64]:
    """Return Dunning's log-likelihood ratio of words that are more frequent in the first corpus, else 0."""
    total = first_total + second_total
    if first_total == 0 or second_total == 0:
        return np.zeros(len(first))
    expected = (first + second) * first_total / total
    expected_second = (first + second) * second_total / total
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(first > 0, first * np.log(first / expected), 0)
        terms = terms + np.where(second > 0, second * np.log(second / expected_second), 0)
    scores: NDArray[np.float64] = np.where(first > expected, 2 * terms, 0)
    return scores
