"""All layers of usages of an index: candidates for mixtures that are chosen later, and their products.

    search.index, embedder  ->  server.usage_layers  ->  server.verbs

An index holds one layer. The nearest in the token layer are known as well, since there a word has one vector
whatever stands around it; for the layers between, both lists together are what a mixture is ranked among.
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

SAMPLE = 300  # sentences of an index that tell how the vectors of each layer lie
GATHERED = 5000  # usages: to read more of them one by one is slower than to read all in their order
Numbers = NDArray[np.int64]


class Layers:
    """All layers of usages of an index, for mixtures that are chosen later.

    A layer is corrected as the index corrects its own, so the index's layer alone gives the index's cosines.
    """

    def __init__(self, elmo: Elmo, index: Index) -> None:
        self._elmo, self._index = elmo, index
        self._spec = resolve_output("all", None, "both", elmo.config.layers, context=index.is_context_view)

    def warm(self) -> None:
        """Compute what all questions share, which takes seconds for a large index."""
        _ = self.spaces
        if not self._index.is_context_view:
            _ = self._types, self._places

    @cached_property
    def spaces(self) -> list[Space]:
        """The correction of each layer, from words of sentences from all parts of the corpus."""
        rows = np.linspace(0, len(self._index) - 1, min(SAMPLE, len(self._index))).astype(int)
        texts = {self._index.usage(int(row)).sentence for row in rows}
        read = self._read(
            [self._elmo.token_texts(text, self._index.head["segment"]) for text in sorted(texts)]
        )
        sample: Array = np.concatenate(read, axis=1)  # (L, N, H)
        own = self._index.space
        weights = np.array(
            resolve_output(self._index.head["layer"], None, "both", len(sample)).weights, np.float32
        )
        if np.count_nonzero(weights) == 1:
            return [
                own if weight else fit_space(layer, own.kind)
                for weight, layer in zip(weights, sample, strict=True)
            ]
        # The correction of a mix was fitted to the mix: its layers share it, and their centres add up to its.
        centres = sample.mean(axis=1) if own.kind != "none" else np.zeros_like(sample[:, 0])
        centres += (own.centre - weights @ centres) / weights.sum()
        return [Space(own.kind, centre, own.matrix) for centre in centres]

    def without_context(self, word: str, query: Array, k: int) -> list[Usage]:
        """The `k` usages nearest to a word in the token layer, with their cosines to `query` in the index's.

        All usages of a word are equally near there: of these, the ones nearest in the index's layer.
        An index of places has context there, too, so that none is known.
        """
        if self._index.is_context_view:
            return []
        order = self._order(word, k)
        sums = np.cumsum(self._index.words.counts[order])
        full = order[: int(np.searchsorted(sums, k, side="right"))]  # words of which all usages are taken
        rows = self._rows(full)
        if len(rows) < k and len(full) < len(order):
            some = self._rows(order[len(full) : len(full) + 1])
            rows = np.concatenate([rows, self._nearest(some, query, k - len(rows))])
        cosines = self._cosines(rows, query)
        return [self._index.usage(int(rows[at]), float(cosines[at])) for at in np.argsort(-cosines)]

    def _order(self, word: str, k: int) -> Numbers:
        """Places of words by how near they are to `word` in the token layer: of enough for `k` usages."""
        words = self._index.words
        if word in words and words.count(word) >= k:  # nothing is nearer to a word than itself
            return np.array([words.words.index(word)])
        return np.argsort(-(self._types @ self._tokens([word])[0]), kind="stable")

    @cached_property
    def _types(self) -> Array:
        """The directions (N, H) of the words of the index in the token layer."""
        return self._tokens(self._index.words.words)

    def _tokens(self, words: Sequence[str]) -> Array:
        """The directions (N, H) of words in the token layer, where both halves of a vector are the same."""
        half = self._elmo.cache.vectors(list(words))[2:].float().cpu().numpy()  # behind <S> and </S>
        return normalize(self.spaces[0].transform(np.concatenate([half, half], axis=1)))

    def _rows(self, types: Numbers) -> Numbers:
        """The numbers of all usages of words, which are given by their places among the words."""
        found, start = [np.empty(0, np.int64)], 0
        for block, places in zip(self._index.blocks, self._places, strict=True):
            found.append(start + np.flatnonzero(np.isin(places, types)[block.words]))
            start += len(block)
        return np.concatenate(found)

    @cached_property
    def _places(self) -> list[Numbers]:
        """For the types of each block their places among the words of the index."""
        places = {word: place for place, word in enumerate(self._index.words.words)}
        return [np.array([places.get(word, -1) for word in block.types]) for block in self._index.blocks]

    def _nearest(self, rows: Numbers, query: Array, k: int) -> Numbers:
        """The `k` of these usages that are nearest in the index's layer."""
        if len(rows) <= GATHERED:
            return rows[np.argsort(-self._cosines(rows, query))[:k]]
        keep = np.zeros(len(self._index), np.bool_)
        keep[rows] = True
        return np.array([usage.number for usage in self._index.nearest(query, k, keep=keep)])

    def _cosines(self, rows: Numbers, query: Array) -> Array:
        """Of usages with a vector of the index's space, whose correction is folded into the query."""
        space = self._index.space
        turned = query if space.matrix is None else space.matrix @ query
        scores = self._index.raw_vectors(rows) @ turned - space.centre @ turned
        found = scores / np.maximum(self._index.lengths[rows], np.finfo(np.float32).tiny)
        return found.astype(np.float32)

    def products(self, tokens: list[str], place: int, usages: Sequence[Usage]) -> dict[str, Any]:
        """Products of the layers of a word and of usages, each with its own and with the word's (L, L)."""
        segment = self._index.head["segment"]
        cut = [self._elmo.tokenize(usage.sentence, segment) for usage in usages]
        found = self._read([tokens, *([token.text for token in some] for some in cut)])
        places = [place]
        for usage, some in zip(usages, cut, strict=True):
            at = next((n for n, token in enumerate(some) if token.start >= usage.start), len(some) - 1)
            places.append(at)
        moved = self._moved(np.stack([layers[:, at] for layers, at in zip(found, places, strict=True)]))
        own, cross = moved @ moved.transpose(0, 2, 1), moved[0] @ moved.transpose(0, 2, 1)
        rows = [
            {"own": _rounded(one), "cross": _rounded(with_word)}
            for one, with_word in zip(own[1:], cross[1:], strict=True)
        ]
        return {"query": {"own": _rounded(own[0])}, "usages": rows}

    def _moved(self, layers: Array) -> Array:
        """The layers (N, L, H) of words, corrected."""
        return np.stack(
            [space.transform(layers[:, number]) for number, space in enumerate(self.spaces)], axis=1
        )

    def _read(self, sentences: list[list[str]]) -> list[NDArray[np.float32]]:
        with self._elmo.track_counts() as counts:
            return self._elmo.embed_tokens(sentences, self._spec, counts)


def _rounded(matrix: Array) -> list[list[float]]:
    """Seven digits are enough for a cosine."""
    return [[float(f"{value:.7g}") for value in row] for row in matrix.tolist()]
