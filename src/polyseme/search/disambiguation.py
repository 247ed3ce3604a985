"""The sense of a word in its sentence, from labelled examples: the nearest mean, or the first sense.

    embedder, search.labelled  ->  search.disambiguation  ->  api

As in the ELMo paper: each sense is the mean of its examples' vectors, a usage has the sense with the nearest
mean, a word without examples has its first sense. H values.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.embedder import CHUNK, Elmo
from polyseme.errors import DataError, UsageError
from polyseme.model.choice import Layer, choose
from polyseme.search.labelled import Marked
from polyseme.search.space import Kind, Space, directions, fit

Array = NDArray[np.float32]
Means = dict[str, dict[str, tuple[Array, int]]]  # of each sense of each word, with the number of its examples
Prior = float | Literal["auto"]
SAMPLE = 50_000  # examples that the correction of the space is fitted to, and the prior is chosen by
PRIORS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
DIGITS = 5  # of scores: what differs less is equal


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

    def __init__(self, means: Means, usual: dict[str, str], space: Space, prior: float) -> None:
        self._means, self._usual, self._space, self.prior = means, usual, space, prior

    @classmethod
    def learn(
        cls,
        examples: Sequence[Marked],
        vectors: Iterable[Array],
        *,
        first: Mapping[str, str] | None = None,
        space: Kind = "whiten",
        prior: Prior = 0.0,
    ) -> Disambiguator:
        """The means of all senses, from examples and their vectors; see `vectors_of`.

        first: the first senses of words, for those without examples. prior: how much the logarithm of a
        sense's share of the examples counts beside its cosine; "auto": see `choose_prior`.
        """
        sums: dict[tuple[str, str], NDArray[np.float64]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        every = -(-len(examples) // SAMPLE)
        sample: list[tuple[Marked, Array]] = []
        for number, (example, vector) in enumerate(zip(examples, vectors, strict=True)):
            if number % every == 0:
                sample.append((example, vector))
            for sense in example.senses:
                place = example.key, sense
                sums[place] = sums.get(place, 0) + vector.astype(np.float64)
                counts[place] += 1
        if not sums:
            raise UsageError("None of the examples has a sense: there is nothing to learn from.")
        fitted = fit(np.stack([vector for _, vector in sample]), space)
        means: Means = defaultdict(dict)
        for (key, sense), total in sums.items():
            count = counts[key, sense]
            means[key][sense] = fitted.move(total[None] / count)[0], count
        if prior == "auto":
            prior = choose_prior(sample, means, fitted)
        pointing = {
            key: {sense: (directions(mean), count) for sense, (mean, count) in some.items()}
            for key, some in means.items()
        }
        usual = dict(first or {})
        if first is None:
            for (key, sense), _ in counts.most_common():
                usual.setdefault(key, sense)
        return cls(pointing, usual, fitted, prior)

    def guess(self, examples: Sequence[Marked], vectors: Iterable[Array]) -> list[str | None]:
        """The sense of each; None where the word has neither examples nor a first sense."""
        found: list[str | None] = []
        for example, vector in zip(examples, vectors, strict=True):
            means = self._means.get(example.key)
            if means is None:
                found.append(self._usual.get(example.key))
                continue
            found.append(self._best(means, self._space.apply(vector[None])[0]))
        return found

    def _best(self, means: dict[str, tuple[Array, int]], direction: Array) -> str:
        """The sense that lies nearest; of those that lie equally near, the one with most examples."""
        total = sum(count for _, count in means.values())

        def score(sense: str) -> tuple[float, int]:
            mean, count = means[sense]
            value = float(direction @ mean) + self.prior * math.log(count / total)
            return round(value, DIGITS), count

        return max(means, key=score)

    def judge(self, examples: Sequence[Marked], guesses: Sequence[str | None]) -> Judged:
        """How often the guesses are among the right senses, where these are known."""
        pairs = [(e, guess) for e, guess in zip(examples, guesses, strict=True) if e.senses]
        if not pairs:
            raise UsageError("None of the examples has a sense: there is nothing to judge by.")
        known = [example for example, _ in pairs]
        right = [guess in example.senses for example, guess in pairs]
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


def choose_prior(sample: Sequence[tuple[Marked, Array]], means: Means, space: Space) -> float:
    """The prior of PRIORS with which most examples get their sense from all others; the least of equals.

    means: of the moved vectors, not yet of length 1. Each example is taken out of the mean of its own sense.
    """
    right = np.zeros(len(PRIORS), np.int64)
    weights = np.array(PRIORS)[:, None]
    moved = space.move(np.stack([vector for _, vector in sample]))
    for (example, _), own in zip(sample, moved, strict=True):
        others: dict[str, tuple[Array, int]] = {}
        for sense, (mean, count) in means[example.key].items():
            if sense not in example.senses:
                others[sense] = mean, count
            elif count > 1:
                others[sense] = (mean * count - own) / (count - 1), count - 1
        if len(others) < 2:
            continue
        senses, counts = list(others), np.array([count for _, count in others.values()])
        cosines = directions(np.stack([mean for mean, _ in others.values()])) @ directions(own)
        best = (cosines + weights * np.log(counts / counts.sum())).argmax(axis=1)
        right += [senses[row] in example.senses for row in best.tolist()]
    return PRIORS[int(right.argmax())]


def vectors_of(elmo: Elmo, examples: Sequence[Marked], layer: Layer) -> Iterator[Array]:
    """The vector of each marked word, the mean of its tokens; a sentence is read once for all its words."""
    choice = choose(layer, None, "both", elmo.config.layers)
    if choice.weights is None:
        raise UsageError("layer is 'all', but a word has one vector: choose top, mean, a number or weights.")
    for some in _together(examples, CHUNK * elmo.batch_tokens):
        sentences = list(dict.fromkeys(example.tokens for example in some))
        with elmo.call() as counts:
            read = elmo.vectors([list(tokens) for tokens in sentences], choice, counts)
        found = dict(zip(sentences, read, strict=True))
        for example in some:
            vector = found[example.tokens][example.start : example.stop].mean(axis=0)
            if not np.isfinite(vector).all():
                raise DataError(f"{example.name}: a vector is not finite. Is the model broken?")
            yield vector


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
