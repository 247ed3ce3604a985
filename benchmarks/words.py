r"""What vectors know of meaning: senses with labels, change between two periods, persons of a novel.

    a model, public sets  ->  accuracy, F1, Spearman, share of persons; by layer and correction of the space

CoarseWSD-20: nearest centroid, 20 words, beside the most frequent sense. SemCor to Raganato ALL: nearest
centroid, first sense of WordNet for words without examples. `left out`: the share of training examples of
words with several senses that all others give their sense; by it, not by the test sets, views, spaces and
priors are chosen. DWUG: graded change of words between 1810-60 and 1960-2010, Spearman with the judges.
Persons: benchmarks/persons.py. A set is measured if its path is given, and read once for all layers.

    python benchmarks/words.py MODEL [--layers 0 1 2 mean] [--views word context sentence] \
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


def main() -> None:
    """Parse the command line, measure, print and keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--layers", nargs="+", default=["0", "1", "2", "mean"])
    parser.add_argument("--views", nargs="+", default=list(USAGE_VIEWS), choices=USAGE_VIEWS)
    parser.add_argument("--spaces", nargs="+", default=["centre", "whiten", "senses"])
    parser.add_argument("--prior", nargs="+", default=["0", "auto"], help="numbers; auto: by the examples")
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--semcor", nargs="+", type=Path)
    parser.add_argument("--raganato", type=Path)
    parser.add_argument("--wordnet", type=Path)
    parser.add_argument("--dwug", type=Path)
    parser.add_argument("--persons", type=Path)
    parser.add_argument("--out", type=Path, help="a JSON file; rows are added to those that it holds")
    given = parser.parse_args()
    elmo = polyseme.load(given.model)
    for row in rows(elmo, given):
        row = {"model": Path(given.model).name, **row}
        print("  ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()))
        if given.out:
            kept = json.loads(given.out.read_text("utf-8")) if given.out.exists() else []
            given.out.write_text(json.dumps([*kept, row], ensure_ascii=False, indent=1), "utf-8")


def rows(elmo: Any, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each set, layer and correction."""
    layers = [_layer(text) for text in given.layers]
    if given.wsd:
        sets = read_sense_data(given.wsd, "train"), read_sense_data(given.wsd, "test")
        yield from senses("CoarseWSD-20", elmo, *sets, layers, given, None)
    if given.semcor:
        known = [example for file in given.semcor for example in read_sense_data(file, "train")]
        first = read_wordnet_senses(given.wordnet)
        yield from senses(
            "Raganato ALL", elmo, known, read_sense_data(given.raganato, "test"), layers, given, first
        )
    if given.dwug:
        yield from change(elmo, given.dwug, layers, given)
    if given.persons:
        yield from persons(elmo, given.persons, layers)


def _layer(text: str) -> Any:
    """A number, a name, or weights with commas between them."""
    if "," in text:
        return [float(weight) for weight in text.split(",")]
    return int(text) if text.isdecimal() else text


def senses(
    name: str,
    elmo: Any,
    known: list[LabelledUsage],
    asked: list[LabelledUsage],
    layers: list[Any],
    given: argparse.Namespace,
    first: dict[str, str] | None,
) -> Iterator[dict[str, Any]]:
    """Accuracy by layer, view, correction and prior."""
    of_known, of_asked = (all_parts(elmo, some) for some in (known, asked))
    for layer, view in product(layers, given.views):
        vectors, others = (mixed(select_view(parts, view), layer) for parts in (of_known, of_asked))
        for space, text in product(given.spaces, given.prior):
            prior = "auto" if text == "auto" else float(text)
            found = Disambiguator.learn(known, vectors, wordnet=first, space=space, prior=prior)
            judged = found.evaluate(asked, found.predict(asked, others))
            yield {
                "set": name,
                "layer": layer,
                "view": view,
                "space": space,
                "prior": text if prior != "auto" else f"auto: {found.prior}",
                "left out": found.leave_one_out_accuracy,
                "accuracy": judged.accuracy,
                "by_word": judged.accuracy_by_word,
                "first": judged.baseline,
            }


def all_parts(elmo: Any, examples: list[LabelledUsage]) -> Any:
    """What `embed_usage_parts` sees at all layers (N, L, 3H), in half the memory."""
    found = np.empty((len(examples), elmo.config.layers, 3 * elmo.config.size), np.float16)
    for row, parts in enumerate(embed_usage_parts(elmo, examples, "all")):
        found[row] = parts
    return found


def mixed(parts: Any, layer: Any) -> Any:
    """One layer of (N, L, …), or a mix of them, as `embed` names them."""
    weights = resolve_output(layer, None, "both", parts.shape[1]).weights
    return sum(np.float32(weight) * parts[:, number] for number, weight in enumerate(weights) if weight)


def change(elmo: Any, folder: Path, layers: list[Any], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Spearman of the graded change of each word with what the judges found."""
    from scipy.stats import spearmanr

    with (folder / "stats/opt/stats_groupings.csv").open(encoding="utf-8") as file:
        gold = {row["lemma"]: float(row["change_graded"]) for row in csv.DictReader(file, delimiter="\t")}
    usages = dwug(folder / "data.tar.gz")
    flat = [usage for word in gold for period in PERIODS for usage in usages[word, period]]
    parts = all_parts(elmo, flat)
    spaces = [kind for kind in given.spaces if kind in SPACE_KINDS]  # the others need senses
    for layer, view, kind in product(layers, given.views, spaces):
        vectors = mixed(select_view(parts, view), layer)
        moved = fit_space(vectors, kind).to_directions(vectors)
        found, at = [], 0
        for word in gold:
            periods = []
            for period in PERIODS:
                count = len(usages[word, period])
                periods.append(moved[at : at + count])
                at += count
            found.append(compare_usages(word, *periods, (len(periods[0]), len(periods[1]))))
        row = {"set": "DWUG", "layer": layer, "view": view, "space": kind, "words": len(gold)}
        for figure in ("distance", "prototype", "shift"):
            values = [getattr(one, figure) for one in found]
            row[figure] = float(spearmanr(values, list(gold.values())).statistic)
        yield row


def dwug(path: Path) -> dict[tuple[str, str], list[LabelledUsage]]:
    """The usages of each word in each period."""
    found: dict[tuple[str, str], list[LabelledUsage]] = defaultdict(list)
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.name.endswith("uses.csv"):
                continue
            text = io.TextIOWrapper(archive.extractfile(member), encoding="utf-8")  # type: ignore[arg-type]
            for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE):
                tokens, at = tuple(row["context_tokenized"].split()), row["indexes_target_token_tokenized"]
                if at.isdigit() and int(at) < len(tokens):
                    place = int(at)
                    marked = LabelledUsage(row["identifier"], row["lemma"], tokens, place, place + 1)
                    found[row["lemma"], row["grouping"]].append(marked)
    return found


def persons(elmo: Any, folder: Path, layers: list[Any]) -> Iterator[dict[str, Any]]:
    """The share of persons among the neighbours of persons, and of names with another of the same person."""
    from persons import contextual, judge, same_person

    for layer in layers:
        found = contextual(elmo, folder, layer)
        row = {"set": "persons", "layer": layer, "share": judge(found, folder)[0]}
        yield row | {"same person": same_person(found, folder)}


if __name__ == "__main__":
    main()
