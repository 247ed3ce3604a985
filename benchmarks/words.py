r"""Measure what vectors know of meaning: labelled senses, change between two periods, persons of a novel.

    a model, public sets  ->  accuracy, F1, Spearman, share of persons; by layer and correction of the space

CoarseWSD-20: nearest centroid, 20 words, against the most frequent sense. SemCor to Raganato ALL: nearest
centroid, WordNet's first sense for words without examples. `left out` is the leave-one-out accuracy on the
training examples of words with several senses; views, spaces and priors are chosen by it, not by the test
sets. DWUG: graded change of words between 1810-60 and 1960-2010, Spearman correlation with the judges, beside
skip-gram vectors of the same usages aligned by orthogonal Procrustes (gensim; no model: `--layers` empty).
Persons: benchmarks/persons.py. A dataset is measured if its path is passed, and embedded once for all layers.

    python benchmarks/words.py MODEL [--layers 0 1 2 mean concat] [--views word context sentence] \
        [--spaces none centre components whiten senses] [--prior 0 auto] [--wsd COARSEWSD-20] \
        [--semcor FILE … --raganato ALL.data.xml --wordnet index.sense] [--dwug FOLDER] \
        [--persons FOLDER] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme.model.output import resolve_output
from polyseme.search.change import compare_usages
from polyseme.search.disambiguation import Disambiguator
from polyseme.search.sense_data import LabelledUsage, read_sense_data, read_wordnet_senses
from polyseme.search.space import SPACE_KINDS, fit_space
from polyseme.search.usage_vectors import USAGE_VIEWS, embed_usage_parts, select_view

PERIODS = ("1", "2")
STATIC_SEEDS = 3


def main() -> None:
    """Parse the command line, measure, print and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--layers", nargs="*", default=["0", "1", "2", "mean"])
    parser.add_argument("--views", nargs="+", default=list(USAGE_VIEWS), choices=USAGE_VIEWS)
    parser.add_argument("--spaces", nargs="+", default=["centre", "whiten", "senses"])
    parser.add_argument(
        "--prior", nargs="+", default=["0", "auto"], help="numbers, or auto: chosen on the examples"
    )
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--semcor", nargs="+", type=Path)
    parser.add_argument("--raganato", type=Path)
    parser.add_argument("--wordnet", type=Path)
    parser.add_argument("--dwug", type=Path)
    parser.add_argument("--persons", type=Path)
    parser.add_argument("--out", type=Path, help="a JSON file to append rows to")
    options = parser.parse_args()
    elmo = polyseme.load(options.model)
    for row in measure(elmo, options):
        row = {"model": Path(options.model).name, **row}
        print("  ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()))
        if options.out:
            rows = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
            options.out.write_text(json.dumps([*rows, row], ensure_ascii=False, indent=1), "utf-8")


def measure(elmo: Any, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each dataset, layer and correction."""
    layers = [parse_layer(text) for text in options.layers]
    if options.wsd:
        sets = read_sense_data(options.wsd, "train"), read_sense_data(options.wsd, "test")
        yield from measure_senses("CoarseWSD-20", elmo, *sets, layers, options, None)
    if options.semcor:
        train = [example for file in options.semcor for example in read_sense_data(file, "train")]
        first = read_wordnet_senses(options.wordnet)
        yield from measure_senses(
            "Raganato ALL", elmo, train, read_sense_data(options.raganato, "test"), layers, options, first
        )
    if options.dwug:
        yield measure_static_change(options.dwug)
        if layers:
            yield from measure_change(elmo, options.dwug, layers, options)
    if options.persons:
        yield from measure_persons(elmo, options.persons, layers)


def parse_layer(text: str) -> Any:
    """Parse a number, a name, or weights with commas between them."""
    if "," in text:
        return [float(weight) for weight in text.split(",")]
    return int(text) if text.isdecimal() else text


def measure_senses(
    name: str,
    elmo: Any,
    train: list[LabelledUsage],
    test: list[LabelledUsage],
    layers: list[Any],
    options: argparse.Namespace,
    first: dict[str, str] | None,
) -> Iterator[dict[str, Any]]:
    """Measure accuracy by layer, view, correction and prior."""
    train_parts, test_parts = (embed_all_parts(elmo, usages) for usages in (train, test))
    for layer, view in product(layers, options.views):
        train_vectors, test_vectors = (
            mix_layers(select_view(parts, view), layer) for parts in (train_parts, test_parts)
        )
        for space, text in product(options.spaces, options.prior):
            prior = "auto" if text == "auto" else float(text)
            disambiguator = Disambiguator.learn(train, train_vectors, wordnet=first, space=space, prior=prior)
            scores = disambiguator.evaluate(test, disambiguator.predict(test, test_vectors))
            yield {
                "set": name,
                "layer": layer,
                "view": view,
                "space": space,
                "prior": text if prior != "auto" else f"auto: {disambiguator.prior}",
                "left out": disambiguator.leave_one_out_accuracy,
                "accuracy": scores.accuracy,
                "by_word": scores.accuracy_by_word,
                "first": scores.baseline,
            }


def embed_all_parts(elmo: Any, examples: list[LabelledUsage]) -> Any:
    """Compute `embed_usage_parts` of all layers (N, L, 3H), in float16 to save memory."""
    all_parts = np.empty((len(examples), elmo.config.layers, 3 * elmo.config.size), np.float16)
    for row, parts in enumerate(embed_usage_parts(elmo, examples, "all")):
        all_parts[row] = parts
    return all_parts


def mix_layers(parts: Any, layer: Any) -> Any:
    """Select one layer of (N, L, …), mix or join them, as `Elmo.embed` does."""
    weights = resolve_output(layer, None, "both", parts.shape[1]).weights
    if weights is None:
        return parts.reshape(len(parts), -1).astype(np.float32)
    return sum(np.float32(weight) * parts[:, number] for number, weight in enumerate(weights) if weight)


def measure_change(
    elmo: Any, folder: Path, layers: list[Any], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Measure the Spearman correlation of the change of each word with the judges."""
    from scipy.stats import spearmanr

    labels, usages = read_graded_change(folder), read_dwug(folder / "data.tar.gz")
    flat = [usage for word in labels for period in PERIODS for usage in usages[word, period]]
    parts = embed_all_parts(elmo, flat)
    spaces = [kind for kind in options.spaces if kind in SPACE_KINDS]  # the others need senses
    for layer, view, kind in product(layers, options.views, spaces):
        vectors = mix_layers(select_view(parts, view), layer)
        directions = fit_space(vectors, kind).to_directions(vectors)
        changes, start = [], 0
        for word in labels:
            periods = []
            for period in PERIODS:
                count = len(usages[word, period])
                periods.append(directions[start : start + count])
                start += count
            changes.append(compare_usages(word, *periods, (len(periods[0]), len(periods[1]))))
        row = {"set": "DWUG", "layer": layer, "view": view, "space": kind, "words": len(labels)}
        for name in ("distance", "prototype", "shift"):
            values = [getattr(change, name) for change in changes]
            row[name] = float(spearmanr(values, list(labels.values())).statistic)
        yield row


def measure_static_change(folder: Path) -> dict[str, Any]:
    """Measure the same with static vectors: skip-gram of each period, aligned by a rotation; mean of seeds.

    The usual comparison (Hamilton et al. 2016): each period has vectors of its own, unit length and centred;
    orthogonal Procrustes over the shared words turns the first space to the second.
    """
    from gensim.models import Word2Vec
    from scipy.linalg import orthogonal_procrustes
    from scipy.stats import spearmanr

    labels, usages = read_graded_change(folder), read_dwug(folder / "data.tar.gz")
    texts = [
        [
            [
                *map(str.lower, usage.tokens[: usage.start]),
                usage.key,
                *map(str.lower, usage.tokens[usage.stop :]),
            ]
            for word in labels
            for usage in usages[word, period]
        ]
        for period in PERIODS
    ]
    scores = []
    for seed in range(STATIC_SEEDS):
        spaces = [
            Word2Vec(
                text,
                sg=1,
                negative=5,
                vector_size=100,
                window=5,
                min_count=3,
                epochs=10,
                seed=seed,
                workers=1,
            ).wv
            for text in texts
        ]
        shared = [word for word in spaces[0].index_to_key if word in spaces[1]]
        first, second = (centre_directions(space[shared]) for space in spaces)
        rotation, _ = orthogonal_procrustes(first, second)
        rows = [shared.index(word) for word in labels]
        before, after = (first @ rotation)[rows], second[rows]
        norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        distances = 1 - (before * after).sum(axis=1) / norms
        scores.append(float(spearmanr(distances, list(labels.values())).statistic))
    return {
        "set": "DWUG",
        "vectors": "SGNS + Procrustes",
        "words": len(labels),
        "prototype": float(np.mean(scores)),
        "least": min(scores),
        "most": max(scores),
    }


def centre_directions(vectors: Any) -> Any:
    """Unit vectors minus their mean."""
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return directions - directions.mean(axis=0)


def read_graded_change(folder: Path) -> dict[str, float]:
    """Read how much the annotators found each word to have changed."""
    with (folder / "stats/opt/stats_groupings.csv").open(encoding="utf-8") as file:
        return {row["lemma"]: float(row["change_graded"]) for row in csv.DictReader(file, delimiter="\t")}


def read_dwug(path: Path) -> dict[tuple[str, str], list[LabelledUsage]]:
    """Read the usages of each word in each period."""
    usages: dict[tuple[str, str], list[LabelledUsage]] = defaultdict(list)
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.name.endswith("uses.csv"):
                continue
            text = io.TextIOWrapper(archive.extractfile(member), encoding="utf-8")  # type: ignore[arg-type]
            for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE):
                tokens = tuple(row["context_tokenized"].split())
                position = row["indexes_target_token_tokenized"]
                if position.isdigit() and int(position) < len(tokens):
                    start = int(position)
                    usage = LabelledUsage(row["identifier"], row["lemma"], tokens, start, start + 1)
                    usages[row["lemma"], row["grouping"]].append(usage)
    return usages


def measure_persons(elmo: Any, folder: Path, layers: list[Any]) -> Iterator[dict[str, Any]]:
    """Measure the share of persons among their neighbours, and of names near another of the same person."""
    from persons import average_usages, measure_neighbours, measure_same_person

    for layer in layers:
        vectors = average_usages(elmo, folder, layer)
        row = {"set": "persons", "layer": layer, "share": measure_neighbours(vectors, folder)[0]}
        yield row | {"same person": measure_same_person(vectors, folder)}


if __name__ == "__main__":
    main()
