"""The sense of a word in its sentence, from labelled examples: the nearest mean, or the first sense.

    search.usage_vectors (vectors), search.sense_data  ->  search.disambiguation  ->  api

As in the ELMo paper: each sense is the mean of its examples' vectors, a usage has the sense with the nearest
mean, a word without examples has its first sense. Near is a cosine in a corrected space, to which the
logarithm of a sense's share of the examples is added with a weight, the prior, which is chosen by leaving
examples out. N examples, H values, K senses of a word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.search.sense_data import LabelledUsage
from polyseme.search.space import SPACE_KINDS, Space, SpaceKind, fit_space, normalize

Array = NDArray[np.float32]
Flags = NDArray[np.bool_]
Correction = SpaceKind | Literal["senses"]
CORRECTIONS: tuple[Correction, ...] = (*SPACE_KINDS, "senses")
Prior = float | Literal["auto"]
SAMPLE = 50_000  # examples that the correction of the space is fitted to, and the prior is chosen by
BLOCK = 4096  # usages that are guessed together
PRIORS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
DIGITS = 5  # of scores: what differs less is equal


@dataclass(frozen=True)
class SenseScores:
    """How often the senses were right."""

    accuracy: float  # of all; where every word gets an answer it is F1, too
    by_word: float  # the mean over the words
    first: float  # accuracy of the most frequent sense in training, or of the first sense
    backed_off: float  # share of words without examples
    count: int


@dataclass(frozen=True)
class Known:
    """The senses of a word that have examples, the most frequent first: so it wins where scores are equal."""

    senses: tuple[str, ...]
    counts: NDArray[np.int64]  # (K,)
    means: Array  # (K, H)

    def owns(self, examples: Sequence[LabelledUsage]) -> Flags:
        """Which senses are right for which example (N, K)."""
        return np.array([[sense in one.senses for sense in self.senses] for one in examples], np.bool_)

    def moved(self, space: Space) -> Known:
        """The same in a space, with their lengths."""
        return Known(self.senses, self.counts, space.transform(self.means))

    def best(self, pointing: Array, prior: float) -> list[str]:
        """The sense of usages (N, H), of length 1 as the means are taken."""
        cosines = pointing @ normalize(self.means).T
        return [self.senses[row] for row in _scores(cosines, self.counts, prior).argmax(axis=1).tolist()]


def check_correction(space: str) -> None:
    """Refuse a correction that there is not."""
    if space not in CORRECTIONS:
        raise UsageError(f"space is {space!r}, expected one of {', '.join(CORRECTIONS)}.")


class Disambiguator:
    """Means of senses, by word. `learn` makes one."""

    def __init__(
        self,
        known: dict[str, Known],
        usual: dict[str, str],
        space: Space,
        prior: float,
        left_out: float | None,
    ) -> None:
        self._known, self._usual, self._space, self.prior = known, usual, space, prior
        self.left_out = (
            left_out  # share of examples that all others give their sense; where a prior was chosen
        )

    @classmethod
    def learn(
        cls,
        examples: Sequence[LabelledUsage],
        vectors: Iterable[Array],
        *,
        first: Mapping[str, str] | None = None,
        space: Correction = "senses",
        prior: Prior = "auto",
    ) -> Disambiguator:
        """The means of all senses, from examples and their vectors; see `search.views`.

        first: the first senses of words, for those without examples. space: as of an index, or "senses":
        every direction is scaled by how far the examples of one sense lie apart in it. prior: how much the
        logarithm of a sense's share of the examples counts beside its cosine; "auto": see `choose_prior`.
        """
        check_correction(space)
        means, sample = _means(examples, vectors)
        own = [examples[row] for row in sample]
        taken = np.stack(list(sample.values()))
        fitted = _fit(own, taken, means, space)
        moved = {key: known.moved(fitted) for key, known in means.items()}
        left_out = None
        if prior == "auto":
            prior, left_out = choose_prior(own, fitted.transform(taken), moved)
        usual = dict(first or {})
        if first is None:
            usual = {key: known.senses[0] for key, known in means.items()}
        return cls(moved, usual, fitted, prior, left_out)

    def guess(self, examples: Sequence[LabelledUsage], vectors: Iterable[Array]) -> list[str | None]:
        """The sense of each; None where the word has neither examples nor a first sense."""
        found = [self._usual.get(example.key) for example in examples]
        given = zip(examples, vectors, strict=True)
        for start in range(0, len(examples), BLOCK):
            some = list(islice(given, BLOCK))
            pointing = self._space.to_directions(np.stack([vector for _, vector in some]))
            for key, rows in _by_key([example for example, _ in some]):
                if key in self._known:
                    best = self._known[key].best(pointing[rows], self.prior)
                    for row, sense in zip(rows, best, strict=True):
                        found[start + row] = sense
        return found

    def judge(self, examples: Sequence[LabelledUsage], guesses: Sequence[str | None]) -> SenseScores:
        """How often the guesses are among the right senses, where these are known."""
        pairs = [(e, guess) for e, guess in zip(examples, guesses, strict=True) if e.senses]
        if not pairs:
            raise UsageError("None of the examples has a sense: there is nothing to judge by.")
        known = [example for example, _ in pairs]
        right = [guess in example.senses for example, guess in pairs]
        words: dict[str, list[bool]] = defaultdict(list)
        for example, good in zip(known, right, strict=True):
            words[example.key].append(good)
        return SenseScores(
            float(np.mean(right)),
            float(np.mean([np.mean(some) for some in words.values()])),
            float(np.mean([self._usual.get(example.key) in example.senses for example in known])),
            float(np.mean([example.key not in self._known for example in known])),
            len(known),
        )


def _means(
    examples: Sequence[LabelledUsage], vectors: Iterable[Array]
) -> tuple[dict[str, Known], dict[int, Array]]:
    """The means of the senses of each word; and the vectors of at most SAMPLE examples, by number."""
    sums: dict[str, dict[str, NDArray[np.float64]]] = defaultdict(dict)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    every = -(-len(examples) // SAMPLE)
    sample: dict[int, Array] = {}
    for number, (example, vector) in enumerate(zip(examples, vectors, strict=True)):
        if number % every == 0:
            sample[number] = vector
        for sense in example.senses:
            own = sums[example.key]
            own[sense] = own.get(sense, 0) + vector.astype(np.float64)
            counts[example.key][sense] += 1
    if not sums:
        raise UsageError("None of the examples has a sense: there is nothing to learn from.")
    found = {}
    for key, some in counts.items():
        senses = tuple(sense for sense, _ in some.most_common())
        numbers = np.array([some[sense] for sense in senses])
        means = np.stack([sums[key][sense] for sense in senses]) / numbers[:, None]
        found[key] = Known(senses, numbers, means.astype(np.float32))
    return found, sample


def _fit(examples: list[LabelledUsage], vectors: Array, means: dict[str, Known], space: Correction) -> Space:
    """The correction of the space that the examples (N, H) ask for."""
    if space != "senses":
        return fit_space(vectors, space)
    around, several = np.zeros_like(vectors), np.zeros(len(vectors), np.bool_)
    for row, example in enumerate(examples):
        if example.senses:
            known = means[example.key]
            place = known.senses.index(example.senses[0])
            around[row], several[row] = known.means[place], known.counts[place] > 1
    return fit_space(vectors, "whiten", (vectors - around)[several] if several.sum() > 1 else None)


def choose_prior(
    examples: Sequence[LabelledUsage], moved: Array, means: dict[str, Known]
) -> tuple[float, float]:
    """The prior of PRIORS with which most examples get their sense from all others, the least of equals.

    And their share. moved: the vectors of the examples (N, H) and the means in the corrected space, with
    their lengths. Each example is taken out of the mean of its own sense; one whose word has no two senses
    among the others tells nothing.
    """
    right, asked = np.zeros(len(PRIORS), np.int64), 0
    for key, rows in _by_key(examples):
        if key not in means or len(means[key].senses) < 2:
            continue
        own = means[key].owns([examples[row] for row in rows])
        cosines, counts = _without(moved[rows], own, means[key])
        telling = (counts > 0).sum(axis=1) > 1
        asked += int(telling.sum())
        for number, prior in enumerate(PRIORS):
            best = _scores(cosines[telling], counts[telling], prior).argmax(axis=1)
            right[number] += own[telling][np.arange(len(best)), best].sum()
    best = int(right.argmax())
    return PRIORS[best], float(right[best] / max(1, asked))


def _without(moved: Array, own: Flags, known: Known) -> tuple[Array, NDArray[np.int64]]:
    """Cosines of examples (N, H) with the means of all others, and how many others each sense has: (N, K)."""
    pointing = normalize(moved)
    cosines: Array = pointing @ normalize(known.means).T
    rows, columns = np.nonzero(own)
    count = known.counts[columns][:, None]
    others = (known.means[columns] * count - moved[rows]) / np.maximum(count - 1, 1)
    cosines[rows, columns] = (normalize(others.astype(np.float32)) * pointing[rows]).sum(axis=1)
    return cosines, known.counts - own


def _scores(cosines: Array, counts: NDArray[np.int64], prior: float) -> NDArray[np.float64]:
    """Cosines (N, K) and shares as scores; a sense without examples comes last."""
    shares = np.maximum(counts, 1) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    scores = np.round(cosines + prior * np.log(shares), DIGITS)
    found: NDArray[np.float64] = np.where(counts > 0, scores, -np.inf)
    return found


def _by_key(examples: Sequence[LabelledUsage]) -> Iterator[tuple[str, list[int]]]:
    """The rows of each word."""
    found: dict[str, list[int]] = defaultdict(list)
    for row, example in enumerate(examples):
        found[example.key].append(row)
    yield from found.items()
