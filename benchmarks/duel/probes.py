"""Linear probes on frozen vectors: the same multinomial logistic regression for every rival and set.

    vectors of tokens, a ProbeSet  ->  probes  ->  score on dev and test

Columns are standardised by the training part. The penalty is chosen on the dev part; no
other choice is made. Spans are scored by seqeval, after labels were decided token by token.

    python benchmarks/duel/probes.py DATA en VECTORS SEED     # scores as a line of JSON
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from probe_sets import PARTS, READERS, Part, ProbeSet
from torch import nn

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)  # of squared weights, beside the mean loss
LARGE = 20_000  # examples; more are trained in batches, with a smaller penalty each
LARGE_PENALTIES = (1e-6, 1e-5, 1e-4)
EPOCHS, BATCH, RATE = 8, 256, 0.002
Scores = dict[str, float]  # dev and test


def probe(dataset: ProbeSet, vectors: Path, seed: int) -> Scores:
    """Score a set with the vectors of all parts, which stand one after another in one file."""
    rows = np.load(vectors, mmap_mode="r")
    lengths = {part: [len(sentence) for sentence in dataset.sentences[part]] for part in PARTS}
    starts, start = {}, 0
    for part in PARTS:
        starts[part], start = start, start + sum(lengths[part])
    if start != len(rows):
        raise SystemExit(f"{vectors}: {len(rows)} vectors, expected {start}.")
    tokens = {part: rows[starts[part] : starts[part] + sum(lengths[part])] for part in PARTS}
    if dataset.kind == "senses":
        return probe_senses(dataset, tokens, lengths, seed)
    if dataset.kind == "sentences":
        features = {part: mean_rows(tokens[part], lengths[part]) for part in PARTS}
        labels = dataset.labels
    else:
        features = {part: np.asarray(tokens[part], np.float32) for part in PARTS}
        labels = {part: [label for sentence in dataset.labels[part] for label in sentence] for part in PARTS}
    names = sorted(set(labels["train"]))
    best: Scores = {}
    for predicted in predict_all(features, labels["train"], names, seed):
        scores = {part: score(dataset, part, predicted[part], lengths[part]) for part in ("dev", "test")}
        best = max(best, scores, key=lambda mean: mean.get("dev", -1.0))
    return best


def mean_rows(rows: np.ndarray, lengths: list[int]) -> np.ndarray:
    """The mean vector of each sentence."""
    ends = np.cumsum(lengths)
    return np.stack(
        [
            rows[end - length : end].astype(np.float32).mean(0)
            for end, length in zip(ends, lengths, strict=True)
        ]
    )


def score(dataset: ProbeSet, part: Part, predicted: list[str], lengths: list[int]) -> float:
    """Accuracy of tokens or sentences, or F1 of spans."""
    if dataset.kind == "sentences":
        return float(np.mean([a == b for a, b in zip(predicted, dataset.labels[part], strict=True)]))
    ends = np.cumsum(lengths)
    sentences = [predicted[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    if dataset.kind == "spans":
        from seqeval.metrics import f1_score

        return float(f1_score(dataset.labels[part], sentences))
    correct = [a == b for s, t in zip(sentences, dataset.labels[part], strict=True) for a, b in zip(s, t)]  # noqa: B905
    return float(np.mean(correct))


def probe_senses(
    dataset: ProbeSet, tokens: dict[Part, np.ndarray], lengths: dict[Part, list[int]], seed: int
) -> Scores:
    """A probe for each word; macro F1 of its senses, mean of the words. One penalty for all words."""
    from sklearn.metrics import f1_score

    assert dataset.positions is not None
    assert dataset.words is not None
    features, of_word = {}, {}
    for part in PARTS:
        firsts = np.cumsum([0, *lengths[part][:-1]])
        features[part] = np.asarray(tokens[part][firsts + np.array(dataset.positions[part])], np.float32)
        of_word[part] = np.array(dataset.words[part])
    candidates: dict[float, dict[str, list[float]]] = {p: {"dev": [], "test": []} for p in PENALTIES}
    for word in sorted(set(dataset.words["train"])):
        chosen = {part: np.flatnonzero(of_word[part] == word) for part in PARTS}
        own_features = {part: features[part][chosen[part]] for part in PARTS}
        labels = {part: [dataset.labels[part][i] for i in chosen[part]] for part in PARTS}
        names = sorted(set(labels["train"]))
        for penalty, predicted in zip(
            PENALTIES, predict_all(own_features, labels["train"], names, seed), strict=True
        ):
            for part in ("dev", "test"):
                value = f1_score(labels[part], predicted[part], average="macro", zero_division=0)
                candidates[penalty][part].append(value)
    means = [{part: float(np.mean(values)) for part, values in by.items()} for by in candidates.values()]
    return max(means, key=lambda mean: mean["dev"])


def predict_all(
    features: dict[Part, np.ndarray], labels: list[str], names: list[str], seed: int
) -> list[dict[Part, list[str]]]:
    """Predictions of the dev and test parts, for each penalty."""
    mean, spread = features["train"].mean(0), features["train"].std(0) + 1e-5
    ready = {
        part: torch.from_numpy(np.clip((rows - mean) / spread, -10, 10)) for part, rows in features.items()
    }
    targets = torch.tensor([names.index(label) for label in labels])
    results = []
    is_large = len(targets) > LARGE
    for penalty in LARGE_PENALTIES if is_large else PENALTIES:
        torch.manual_seed(seed)
        layer = nn.Linear(ready["train"].shape[1], len(names))
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        (fit_in_batches if is_large else fit_whole)(layer, ready["train"], targets, penalty)
        with torch.no_grad():
            answers = {part: layer(ready[part]).argmax(1).tolist() for part in ("dev", "test")}
        results.append({part: [names[i] for i in numbers] for part, numbers in answers.items()})
    return results


def fit_whole(layer: nn.Linear, rows: torch.Tensor, targets: torch.Tensor, penalty: float) -> None:
    """L-BFGS on all examples at once."""
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(layer(rows), targets) + penalty * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def fit_in_batches(layer: nn.Linear, rows: torch.Tensor, targets: torch.Tensor, penalty: float) -> None:
    """Adam with a rate that falls to zero."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=RATE)
    steps = EPOCHS * (len(rows) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(EPOCHS):
        for numbers in torch.randperm(len(rows)).split(BATCH)[: len(rows) // BATCH]:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(layer(rows[numbers]), targets[numbers])
            (loss + penalty * layer.weight.square().sum()).backward()
            optimizer.step()
            schedule.step()


if __name__ == "__main__":
    data, language, folder, number = sys.argv[1:]
    candidates = {
        dataset.name: probe(dataset, Path(folder) / f"{dataset.stem}.npy", int(number))
        for dataset in READERS[language](Path(data))
    }
    print(json.dumps(candidates))
