"""The sense of a word in its sentence, from labelled examples: the nearest mean, or the first sense.

    embedder, search.labelled  ->  search.disambiguation  ->  api

As in the ELMo paper: each sense is the mean of its examples' vectors, a usage has the sense with the nearest
mean, a word without examples has its first sense. H values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.embedder import CHUNK, Elmo
from polyseme.errors import UsageError
from polyseme.model.choice import Layer, choose
from polyseme.search.labelled import Marked

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Judged:
    """How often the senses were right."""

    accuracy: float  # of all; where every word gets an answer it is F1, too
    by_word: float  # the mean over the words
    first: float  # accuracy of the most frequent sense in training, or of the first sense
    backed_off: float  # share of words without examples
    count: int


class Disambiguator:
    """Means of senses, by word. `learn` makes one."""

    def __init__(
        self, elmo: Elmo, layer: Layer, means: dict[str, dict[str, Array]], usual: dict[str, str]
    ) -> None:
        self._elmo, self._layer, self._means, self._usual = elmo, layer, means, usual

    @classmethod
    def learn(
        cls,
        elmo: Elmo,
        examples: Sequence[Marked],
        layer: Layer = "top",
        *,
        first: Mapping[str, str] | None = None,
    ) -> Disambiguator:
        """The means of all senses; `first`: the first senses of words, for those without examples."""
        sums: dict[tuple[str, str], NDArray[np.float64]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        labelled = [example for example in examples if example.senses]
        if not labelled:
            raise UsageError("None of the examples has a sense: there is nothing to learn from.")
        for example, vector in zip(labelled, vectors_of(elmo, labelled, layer), strict=True):
            for sense in example.senses:
                place = example.key, sense
                sums[place] = sums.get(place, 0) + vector.astype(np.float64)
                counts[place] += 1
        means: dict[str, dict[str, Array]] = defaultdict(dict)
        for (key, sense), total in sums.items():
            means[key][sense] = _unit(total)
        usual = dict(first or {})
        if first is None:
            for (key, sense), _ in counts.most_common():
                usual.setdefault(key, sense)
        return cls(elmo, layer, dict(means), usual)

    def guess(self, examples: Sequence[Marked]) -> list[str | None]:
        """The sense of each; None where the word has neither examples nor a first sense."""
        found = []
        for example, vector in zip(examples, vectors_of(self._elmo, examples, self._layer), strict=True):
            means = self._means.get(example.key)
            if means is None:
                found.append(self._usual.get(example.key))
                continue
            direction = _unit(vector)
            found.append(max(means, key=lambda sense: float(direction @ means[sense])))
        return found

    def judge(self, examples: Sequence[Marked]) -> Judged:
        """How often the guesses are among the right senses."""
        known = [example for example in examples if example.senses]
        if not known:
            raise UsageError("None of the examples has a sense: there is nothing to judge by.")
        right = [g in e.senses for g, e in zip(self.guess(known), known, strict=True)]
        words: dict[str, list[bool]] = defaultdict(list)
        for example, good in zip(known, right, strict=True):
            words[example.key].append(good)
        return Judged(
            float(np.mean(right)),
            float(np.mean([np.mean(some) for some in words.values()])),
            float(np.mean([self._usual.get(example.key) in example.senses for example in known])),
            float(np.mean([example.key not in self._means for example in known])),
            len(known),
        )


def vectors_of(elmo: Elmo, examples: Sequence[Marked], layer: Layer) -> Iterator[Array]:
    """The vector of each marked word, the mean of its tokens; a sentence is read once for all its words."""
    choice = choose(layer, None, "both", elmo.config.layers)
    if choice.weights is None:
        raise UsageError("layer is 'all', but a word has one vector: choose top, mean or a number.")
    for some in _together(examples, CHUNK * elmo.batch_tokens):
        sentences = list(dict.fromkeys(example.tokens for example in some))
        with elmo.call() as counts:
            read = elmo.vectors([list(tokens) for tokens in sentences], choice, counts)
        found = dict(zip(sentences, read, strict=True))
        for example in some:
            yield found[example.tokens][example.start : example.stop].mean(axis=0)


def _together(examples: Sequence[Marked], tokens: int) -> Iterator[list[Marked]]:
    """Runs of examples whose sentences have about so many tokens."""
    some: list[Marked] = []
    size, last = 0, tuple[str, ...]()
    for example in examples:
        if example.tokens != last:
            if size >= tokens:
                yield some
                some, size = [], 0
            size += len(example.tokens)
            last = example.tokens
        some.append(example)
    if some:
        yield some


def _unit(vector: NDArray[np.floating]) -> Array:
    direction: Array = (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)
    return direction
