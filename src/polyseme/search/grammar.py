"""Whether groups of usages differ in grammatical position, and the words that stand beside each group.

    search.contexts  ->  search.grammar  ->  search.senses

Usages of a name often fall into groups such as subject and object. Their vectors have the main grammatical
directions removed, but the rest may still follow position, so it is measured and said.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyseme.search.contexts import MIN_COLLOCATE_COUNT, RIDGE, ContextReader, Contexts, log_likelihood

Numbers = NDArray[np.int64]
FOLDS = 2
BESIDE = 6  # words before and after a group


def measure_grammar(reader: ContextReader, contexts: Contexts, labels: Numbers, seed: int = 0) -> float:
    """Measure how well the grammatical position of a usage tells its group.

    A ridge regression on one half of the usages predicts the groups of the other half from the classes of the
    adjacent words and the position in the sentence.

    Args:
        reader: Reads contexts of the index.
        contexts: The contexts of the usages.
        labels: (N,) the group of each usage.
        seed: Seeds the halves.

    Returns:
        Cohen's kappa of predicted and true groups: 0 for chance, 1 for certainty; never below 0.

    """
    features = reader.features(contexts).astype(np.float64)
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    groups = int(labels.max()) + 1
    targets = np.eye(groups)[labels]
    folds = np.random.default_rng(seed).permutation(len(labels)) % FOLDS
    predicted = np.zeros(len(labels), np.int64)
    for fold in range(FOLDS):
        learnt, tested = folds != fold, folds == fold
        x, y = features[learnt], targets[learnt]
        weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ y)
        predicted[tested] = (features[tested] @ weights).argmax(axis=1)
    agreement = float((predicted == labels).mean())
    shares = [np.bincount(values, minlength=groups) / len(labels) for values in (predicted, labels)]
    chance = float(shares[0] @ shares[1])
    return max(0.0, (agreement - chance) / (1 - chance)) if chance < 1 else 0.0


def list_adjacent_words(
    reader: ContextReader, contexts: Contexts, labels: Numbers, side: int, k: int = BESIDE
) -> list[list[str]]:
    """Return the words that stand most typically beside each group, by log-likelihood.

    Args:
        reader: Reads contexts of the index.
        contexts: The contexts of the usages.
        labels: (N,) the group of each usage.
        side: -1 for the words before, 1 for the words after.
        k: How many words for each group. They are compared with those beside the other groups, or with all
            words of the index if there are none.

    """
    beside = contexts.offsets == side
    words, groups = contexts.words[beside], labels[contexts.usages[beside]]
    types, columns = np.unique(words, return_inverse=True)
    table = np.zeros((int(labels.max()) + 1, len(types)))
    np.add.at(table, (groups, columns), 1)
    counts = np.asarray(reader.index.words.counts, np.float64)
    names = reader.index.words.words
    typical = []
    for row in table:
        rest = table.sum(axis=0) - row
        total = rest.sum()
        if not total:
            rest, total = counts[types], counts.sum()
        scores = log_likelihood(row, rest, row.sum(), float(total))
        scores[row < MIN_COLLOCATE_COUNT] = 0
        best = np.lexsort((types, -scores))[:k]
        typical.append([names[types[column]] for column in best if scores[column] > 0])
    return typical
