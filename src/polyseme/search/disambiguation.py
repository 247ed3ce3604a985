"""Predict the sense of a word in its sentence from labelled examples.

    search.usage_vectors, search.sense_data  ->  search.disambiguation  ->  api

As in the ELMo paper: a sense is the mean vector of its examples, a usage gets the sense with the nearest
mean, and a word without examples gets its first sense (from WordNet, or the most frequent one in training).
Near is the cosine in a corrected space, less for a mean of few examples, plus a prior: the logarithm of the
share of the examples, times a weight that is chosen by leave-one-out.

N examples, H values, K senses of a word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import Correction
from polyseme.errors import UsageError
from polyseme.search.sense_data import LabelledUsage
from polyseme.search.space import Space, fit_space, normalize

Array = NDArray[np.float32]
Flags = NDArray[np.bool_]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
Prior = float | Literal["auto"]
MAX_SAMPLE = 50_000  # examples that the space is fitted to and the prior is chosen with
BLOCK = 4096  # usages that are predicted together
PRIORS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
NOISE = 3  # examples: the mean of n of them counts sqrt(n / (n + NOISE)); chosen on held-out texts of SemCor
DIGITS = 5  # of scores: those that differ by less are equal


@dataclass(frozen=True)
class SenseScores:
    """Accuracy of predicted senses.

    Attributes:
        accuracy: Share of correct senses; equal to F1 if every word gets one.
        accuracy_by_word: The mean of the accuracies of the words.
        baseline: Accuracy of each word's first sense (WordNet's, or the most frequent one in training).
        unseen: Share of usages whose word has no examples.
        count: How many usages were scored.

    """

    accuracy: float
    accuracy_by_word: float
    baseline: float
    unseen: float
    count: int


@dataclass(frozen=True)
class SenseMeans:
    """The senses of one word that have examples.

    Attributes:
        senses: The senses, the most frequent first: it wins where scores are equal.
        counts: (K,) how many examples each has.
        means: (K, H) the mean of its examples.

    """

    senses: tuple[str, ...]
    counts: NDArray[np.int64]
    means: Array

    def match_labels(self, examples: Sequence[LabelledUsage]) -> Flags:
        """Return which senses are correct for which example (N, K)."""
        return np.array([[sense in usage.senses for sense in self.senses] for usage in examples], np.bool_)

    def transform(self, space: Space) -> SenseMeans:
        """Return the same senses with their means in a corrected space."""
        return SenseMeans(self.senses, self.counts, space.transform(self.means))

    def predict(self, directions: Array, prior: float) -> list[str]:
        """Return the best sense of each direction (N, H)."""
        cosines = directions @ normalize(self.means).T
        return [self.senses[row] for row in _score(cosines, self.counts, prior).argmax(axis=1).tolist()]


def check_correction(space: str) -> None:
    """Refuse a correction that does not exist."""
    if space not in CORRECTIONS:
        raise UsageError(f"space is {space!r}, expected one of {', '.join(CORRECTIONS)}.")


class Disambiguator:
    """Predicts senses by the mean vector of each sense. `Disambiguator.learn` makes one.

    Attributes:
        prior: The weight of the logarithm of a sense's share.
        leave_one_out_accuracy: The accuracy with that prior on the examples; None if the prior was set.

    """

    def __init__(
        self,
        senses: dict[str, SenseMeans],
        first_senses: dict[str, str],
        space: Space,
        prior: float,
        leave_one_out_accuracy: float | None,
    ) -> None:
        self._senses, self._first_senses, self._space, self.prior = senses, first_senses, space, prior
        self.leave_one_out_accuracy = leave_one_out_accuracy

    @classmethod
    def learn(
        cls,
        examples: Sequence[LabelledUsage],
        vectors: Iterable[Array],
        *,
        wordnet: Mapping[str, str] | None = None,
        space: Correction = "senses",
        prior: Prior = "auto",
    ) -> Disambiguator:
        """Compute the mean vector of every sense.

        Args:
            examples: Labelled usages.
            vectors: The vector (H,) of each; see `search.usage_vectors`.
            wordnet: The first sense of each word, for words without examples.
            space: The correction of the vectors: as in `search.space`, or "senses", which whitens by the
                covariance within senses.
            prior: The weight of the logarithm of a sense's share; "auto" chooses it by leave-one-out.

        Raises:
            UsageError: `space` is unknown, or no example has a sense.

        """
        check_correction(space)
        means, sampled_vectors = _compute_means(examples, vectors)
        sample = [examples[row] for row in sampled_vectors]
        stacked = np.stack(list(sampled_vectors.values()))
        fitted = _fit_correction(sample, stacked, means, space)
        transformed = {key: senses.transform(fitted) for key, senses in means.items()}
        accuracy = None
        if prior == "auto":
            prior, accuracy = choose_prior(sample, fitted.transform(stacked), transformed)
        first_senses = dict(wordnet or {})
        if wordnet is None:
            first_senses = {key: senses.senses[0] for key, senses in means.items()}
        return cls(transformed, first_senses, fitted, prior, accuracy)

    def predict(self, usages: Sequence[LabelledUsage], vectors: Iterable[Array]) -> list[str | None]:
        """Predict the sense of each usage; None if its word has neither examples nor a first sense."""
        predictions = [self._first_senses.get(usage.key) for usage in usages]
        pairs = zip(usages, vectors, strict=True)
        for start in range(0, len(usages), BLOCK):
            block = list(islice(pairs, BLOCK))
            directions = self._space.to_directions(np.stack([vector for _, vector in block]))
            for key, rows in _rows_by_key([usage for usage, _ in block]):
                if key in self._senses:
                    best = self._senses[key].predict(directions[rows], self.prior)
                    for row, sense in zip(rows, best, strict=True):
                        predictions[start + row] = sense
        return predictions

    def evaluate(self, usages: Sequence[LabelledUsage], predictions: Sequence[str | None]) -> SenseScores:
        """Score predictions on the usages whose senses are known.

        Raises:
            UsageError: No usage has a sense.

        """
        pairs = [(usage, sense) for usage, sense in zip(usages, predictions, strict=True) if usage.senses]
        if not pairs:
            raise UsageError("None of the usages has a sense, so there is nothing to compare with.")
        labelled = [usage for usage, _ in pairs]
        is_correct = [sense in usage.senses for usage, sense in pairs]
        by_word: dict[str, list[bool]] = defaultdict(list)
        for usage, correct in zip(labelled, is_correct, strict=True):
            by_word[usage.key].append(correct)
        return SenseScores(
            float(np.mean(is_correct)),
            float(np.mean([np.mean(rights) for rights in by_word.values()])),
            float(np.mean([self._first_senses.get(usage.key) in usage.senses for usage in labelled])),
            float(np.mean([usage.key not in self._senses for usage in labelled])),
            len(labelled),
        )


def _compute_means(
    examples: Sequence[LabelledUsage], vectors: Iterable[Array]
) -> tuple[dict[str, SenseMeans], dict[int, Array]]:
    """The means of the senses of each word; and the vectors of at most MAX_SAMPLE examples, by number."""
    sums: dict[str, dict[str, NDArray[np.float64]]] = defaultdict(dict)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    step = -(-len(examples) // MAX_SAMPLE)
    sample: dict[int, Array] = {}
    for number, (example, vector) in enumerate(zip(examples, vectors, strict=True)):
        if number % step == 0:
            sample[number] = vector
        for sense in example.senses:
            word_sums = sums[example.key]
            word_sums[sense] = word_sums.get(sense, 0) + vector.astype(np.float64)
            counts[example.key][sense] += 1
    if not sums:
        raise UsageError("None of the examples has a sense, so there is nothing to learn from.")
    means_by_key = {}
    for key, word_counts in counts.items():
        senses = tuple(sense for sense, _ in word_counts.most_common())
        numbers = np.array([word_counts[sense] for sense in senses])
        means = np.stack([sums[key][sense] for sense in senses]) / numbers[:, None]
        means_by_key[key] = SenseMeans(senses, numbers, means.astype(np.float32))
    return means_by_key, sample


def _fit_correction(
    examples: list[LabelledUsage], vectors: Array, means: dict[str, SenseMeans], space: Correction
) -> Space:
    """Fit the correction to the vectors (N, H) of the examples."""
    if space != "senses":
        return fit_space(vectors, space)
    sense_means, has_others = np.zeros_like(vectors), np.zeros(len(vectors), np.bool_)
    for row, example in enumerate(examples):
        if example.senses:
            word = means[example.key]
            column = word.senses.index(example.senses[0])
            sense_means[row], has_others[row] = word.means[column], word.counts[column] > 1
    return fit_space(vectors, "whiten", (vectors - sense_means)[has_others] if has_others.sum() > 1 else None)


def choose_prior(
    examples: Sequence[LabelledUsage], vectors: Array, means: dict[str, SenseMeans]
) -> tuple[float, float]:
    """Choose the prior of PRIORS with the best leave-one-out accuracy, the smallest among equals.

    Each example is taken out of the mean of its sense. Examples of words that have fewer than two senses
    without them do not count.

    Args:
        examples: The examples.
        vectors: Their vectors (N, H) in the corrected space, not normalized.
        means: The means in the same space.

    Returns:
        The prior and its accuracy.

    """
    correct, total = np.zeros(len(PRIORS), np.int64), 0
    for key, rows in _rows_by_key(examples):
        if key not in means or len(means[key].senses) < 2:
            continue
        labels = means[key].match_labels([examples[row] for row in rows])
        cosines, counts = _leave_one_out(vectors[rows], labels, means[key])
        counted = (counts > 0).sum(axis=1) > 1
        total += int(counted.sum())
        for number, prior in enumerate(PRIORS):
            best = _score(cosines[counted], counts[counted], prior).argmax(axis=1)
            correct[number] += labels[counted][np.arange(len(best)), best].sum()
    best = int(correct.argmax())
    return PRIORS[best], float(correct[best] / max(1, total))


def _leave_one_out(vectors: Array, labels: Flags, word: SenseMeans) -> tuple[Array, NDArray[np.int64]]:
    """Cosines (N, K) of examples with the means of all other examples, and how many others each sense has."""
    directions = normalize(vectors)
    cosines: Array = directions @ normalize(word.means).T
    rows, columns = np.nonzero(labels)
    count = word.counts[columns][:, None]
    means = (word.means[columns] * count - vectors[rows]) / np.maximum(count - 1, 1)
    cosines[rows, columns] = (normalize(means.astype(np.float32)) * directions[rows]).sum(axis=1)
    return cosines, word.counts - labels


def _score(cosines: Array, counts: NDArray[np.int64], prior: float) -> NDArray[np.float64]:
    """Weigh cosines (N, K) by the number of examples and add the prior; a sense without any comes last."""
    known = np.sqrt(counts / (counts + NOISE))
    shares = np.maximum(counts, 1) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    scores = np.round(cosines * known + prior * np.log(shares), DIGITS)
    masked: NDArray[np.float64] = np.where(counts > 0, scores, -np.inf)
    return masked


def _rows_by_key(usages: Sequence[LabelledUsage]) -> Iterator[tuple[str, list[int]]]:
    """The rows of each word."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, usage in enumerate(usages):
        rows[usage.key].append(row)
    yield from rows.items()
