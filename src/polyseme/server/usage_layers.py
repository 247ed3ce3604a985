"""All layers of the usages of an index, so that the explorer can mix them with any weights.

    search.index, elmo  ->  server.usage_layers  ->  server.verbs

An index stores one layer. The nearest usages in the token layer are known, too, because a word has the same
vector there in every context. A mix is ranked among the usages of both lists.
L layers, N vectors, H values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import Array, Elmo
from polyseme.model.output import resolve_output
from polyseme.search.index import Index, Usage
from polyseme.search.space import Space, fit_space, normalize

SAMPLE_SENTENCES = 300  # of an index, to fit the correction of each layer
MAX_GATHERED = 5000  # usages: beyond this, reading all vectors in order is faster than gathering some
Numbers = NDArray[np.int64]


class UsageLayers:
    """All layers of the usages of an index.

    Each layer is corrected as the index corrects its own, so the index's layer gives the index's cosines.
    """

    def __init__(self, elmo: Elmo, index: Index, *, max_gathered: int = MAX_GATHERED) -> None:
        self._elmo, self._index, self._max_gathered = elmo, index, max_gathered
        self._spec = resolve_output("all", None, "both", elmo.config.layers, context=index.is_context_view)

    def warm_up(self) -> None:
        """Compute what all requests share, which takes seconds for a large index."""
        _ = self.spaces
        _ = self._index.context_reader.ranks, self._index.context_reader.document_sizes
        if not self._index.is_context_view:
            _ = self._word_vectors, self._word_rows

    @cached_property
    def spaces(self) -> list[Space]:
        """The correction of each layer, fitted to sentences from the whole corpus."""
        rows = np.linspace(0, len(self._index) - 1, min(SAMPLE_SENTENCES, len(self._index))).astype(int)
        texts = {self._index.usage(int(row)).sentence for row in rows}
        segment = self._index.head["segment"]
        vectors = self._embed([self._elmo.token_texts(text, segment) for text in sorted(texts)])
        sample: Array = np.concatenate(vectors, axis=1)  # (L, N, H)
        index_space = self._index.space
        weights = np.array(
            resolve_output(self._index.head["layer"], None, "both", len(sample)).weights, np.float32
        )
        if np.count_nonzero(weights) == 1:
            return [
                index_space if weight else fit_space(layer, index_space.kind)
                for weight, layer in zip(weights, sample, strict=True)
            ]
        # The correction of a mix was fitted to the mix: its layers share it, and their centres add up to its.
        centres = sample.mean(axis=1) if index_space.kind != "none" else np.zeros_like(sample[:, 0])
        centres += (index_space.centre - weights @ centres) / weights.sum()
        return [Space(index_space.kind, centre, index_space.matrix) for centre in centres]

    def nearest_in_token_layer(self, word: str, query: Array, k: int) -> list[Usage]:
        """The `k` usages nearest to a word in the token layer, with their cosines to `query` in the index.

        All usages of a word are equally near there; of these, the nearest in the index's layer are taken.
        An index of contexts has no layer without context: the result is empty.
        """
        if self._index.is_context_view:
            return []
        order = self._find_nearest_words(word, k)
        totals = np.cumsum(self._index.words.counts[order])
        whole = order[: int(np.searchsorted(totals, k, side="right"))]  # words whose usages are all taken
        usages = self._list_usages(whole)
        if len(usages) < k and len(whole) < len(order):
            candidates = self._list_usages(order[len(whole) : len(whole) + 1])
            usages = np.concatenate([usages, self._find_nearest(candidates, query, k - len(usages))])
        cosines = self._compute_cosines(usages, query)
        return [self._index.usage(int(usages[row]), float(cosines[row])) for row in np.argsort(-cosines)]

    def _find_nearest_words(self, word: str, k: int) -> Numbers:
        """Rows of words by cosine to `word` in the token layer; enough of them for `k` usages."""
        words = self._index.words
        if word in words and words.count(word) >= k:  # no word is nearer than the word itself
            return np.array([words.words.index(word)])
        return np.argsort(-(self._word_vectors @ self._compute_token_vectors([word])[0]), kind="stable")

    @cached_property
    def _word_vectors(self) -> Array:
        """Unit vectors (N, H) of the words of the index in the token layer."""
        return self._compute_token_vectors(self._index.words.words)

    def _compute_token_vectors(self, words: Sequence[str]) -> Array:
        """Unit vectors (N, H) of words in the token layer, whose two halves are the same."""
        half = self._elmo.cache.vectors(list(words))[2:].float().cpu().numpy()  # after <S> and </S>
        return normalize(self.spaces[0].transform(np.concatenate([half, half], axis=1)))

    def _list_usages(self, words: Numbers) -> Numbers:
        """Numbers of all usages of words, which are given as rows."""
        numbers, start = [np.empty(0, np.int64)], 0
        for block, rows in zip(self._index.blocks, self._word_rows, strict=True):
            numbers.append(start + np.flatnonzero(np.isin(rows, words)[block.words]))
            start += len(block)
        return np.concatenate(numbers)

    @cached_property
    def _word_rows(self) -> list[Numbers]:
        """For the words of each block, their rows among the words of the index."""
        rows = {word: row for row, word in enumerate(self._index.words.words)}
        return [np.array([rows.get(word, -1) for word in block.types]) for block in self._index.blocks]

    def _find_nearest(self, usages: Numbers, query: Array, k: int) -> Numbers:
        """The `k` of these usages that are nearest in the index's layer."""
        if len(usages) <= self._max_gathered:
            return usages[np.argsort(-self._compute_cosines(usages, query))[:k]]
        keep = np.zeros(len(self._index), np.bool_)
        keep[usages] = True
        return np.array([usage.number for usage in self._index.nearest(query, k, keep=keep)])

    def _compute_cosines(self, usages: Numbers, query: Array) -> Array:
        """Cosines of usages with a corrected vector; the correction is applied to the query, not to them."""
        space = self._index.space
        turned = query if space.matrix is None else space.matrix @ query
        products = self._index.raw_vectors(usages) @ turned - space.centre @ turned
        cosines = products / np.maximum(self._index.lengths[usages], np.finfo(np.float32).tiny)
        return cosines.astype(np.float32)

    def dot_products(self, tokens: list[str], position: int, usages: Sequence[Usage]) -> dict[str, Any]:
        """Dot products (L, L) of the layers of a word and of usages.

        Args:
            tokens: The sentence of the query.
            position: The position of the query's word.
            usages: Usages to compare with.

        Returns:
            `query`: the products of the query's layers with each other (`own`). `usages`: for each usage, the
            products of its layers with each other (`own`) and of the query's layers with its (`cross`).

        """
        segment = self._index.head["segment"]
        sentences = [self._elmo.tokenize(usage.sentence, segment) for usage in usages]
        layers = self._embed([tokens, *([token.text for token in sentence] for sentence in sentences)])
        positions = [position]
        for usage, sentence in zip(usages, sentences, strict=True):
            last = len(sentence) - 1
            positions.append(
                next((n for n, token in enumerate(sentence) if token.start >= usage.start), last)
            )
        words = np.stack([vectors[:, n] for vectors, n in zip(layers, positions, strict=True)])  # (N, L, H)
        corrected = np.stack([space.transform(words[:, n]) for n, space in enumerate(self.spaces)], axis=1)
        own, cross = corrected @ corrected.transpose(0, 2, 1), corrected[0] @ corrected.transpose(0, 2, 1)
        products = [
            {"own": _round(usage_own), "cross": _round(usage_cross)}
            for usage_own, usage_cross in zip(own[1:], cross[1:], strict=True)
        ]
        return {"query": {"own": _round(own[0])}, "usages": products}

    def _embed(self, sentences: list[list[str]]) -> list[NDArray[np.float32]]:
        with self._elmo.track_counts() as counts:
            return self._elmo.embed_tokens(sentences, self._spec, counts)


def _round(matrix: Array) -> list[list[float]]:
    """Round to seven digits, which are enough for a cosine."""
    return [[float(f"{value:.7g}") for value in row] for row in matrix.tolist()]
