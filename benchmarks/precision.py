"""Loss of quality in bf16 and int8 on a trained model: cosine, neighbours, perplexity, word senses.

    a model, a held-out text, CoarseWSD-20  ->  load in each precision  ->  a table

Cosine: of each vector of the text, in every recurrent layer, with that of fp32. Neighbours: of the ten
nearest words of frequent words by mean contextual vectors, the share that fp32 has, too. Perplexity: of both
directions. Senses: accuracy of the nearest mean vector of a sense, in the top layer; mean over the words.

    python benchmarks/precision.py MODEL TEXT [--wsd FOLDER] [--sentences 1000]
"""

from __future__ import annotations

import argparse
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

PRECISIONS = ("fp32", "bf16", "int8")
NEAREST = 10
FREQUENT = 200  # words whose neighbours are compared
MARKED = 300  # sentences of a word to learn from, and to judge, at most


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--wsd", type=Path, help="the folder of CoarseWSD-20")
    parser.add_argument("--sentences", type=int, default=1000, help="how many of the text are embedded")
    arguments = parser.parse_args()
    print("| precision | cosine: mean | lowest | largest error | neighbours | forward | backward | senses |")
    print("|---|---|---|---|---|---|---|---|")
    exact: dict[str, Any] = {}
    for precision in PRECISIONS:
        measured = measure(arguments, precision)
        exact = exact or measured
        print(row(precision, measured, exact), flush=True)


def measure(arguments: argparse.Namespace, precision: str) -> dict[str, Any]:
    """Everything about one precision."""
    import polyseme
    from polyseme import api
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    elmo = polyseme.load(arguments.model, precision=precision)
    lines = segment_lines(read_lines(arguments.text), elmo.config.segment)
    sentences = list(islice(lines, arguments.sentences))
    vectors = np.concatenate(elmo.embed(sentences, layer="all"), axis=1)[1:]
    means = polyseme.mean_vectors(elmo, sentences, min_count=3)
    near = {word: {other for other, _ in means.nearest(word, NEAREST)} for word in means.words[:FREQUENT]}
    perplexity = api.evaluate(elmo, arguments.text).total.all.perplexities
    return {
        "vectors": vectors,
        "near": near,
        "forward": perplexity["forward"],
        "backward": perplexity["backward"],
        "senses": senses(elmo, arguments.wsd) if arguments.wsd else float("nan"),
    }


def senses(elmo: Any, folder: Path, layer: str | int = "top") -> float:
    """The share of right senses by the vectors of `layer`, mean over the words of CoarseWSD-20."""
    from polyseme.search.disambiguation import Disambiguator
    from polyseme.search.usage_vectors import embed_usages

    known, asked = marked(folder, "train"), marked(folder, "test")
    disambiguator = Disambiguator.learn(known, embed_usages(elmo, known, layer), space="none")
    predictions = disambiguator.predict(asked, embed_usages(elmo, asked, layer))
    return disambiguator.evaluate(asked, predictions).accuracy_by_word


def marked(folder: Path, part: str) -> list[Any]:
    """The first MARKED examples of each word."""
    from polyseme.search.sense_data import read_sense_data

    words = groupby(read_sense_data(folder, part), key=lambda example: example.key)
    return [example for _, examples in words for example in islice(examples, MARKED)]


def cosines(approximate_vectors: np.ndarray, exact_vectors: np.ndarray) -> np.ndarray:
    """Of each vector to the one at its place."""
    size = np.linalg.norm(approximate_vectors, axis=-1) * np.linalg.norm(exact_vectors, axis=-1)
    return (approximate_vectors * exact_vectors).sum(axis=-1) / np.maximum(size, 1e-12)


def row(precision: str, measured: dict[str, Any], exact: dict[str, Any]) -> str:
    """One line of the table."""
    approximate_vectors, exact_vectors = measured["vectors"], exact["vectors"]
    cosine = cosines(approximate_vectors, exact_vectors)
    difference = np.abs(approximate_vectors - exact_vectors).max()
    kept = np.mean([len(near & exact["near"][word]) / NEAREST for word, near in measured["near"].items()])
    return (
        f"| {precision} | {cosine.mean():.6f} | {cosine.min():.6f} | {difference:.4f} "
        f"| {kept:.1%} | {measured['forward']:.2f} | {measured['backward']:.2f} | {measured['senses']:.1%} |"
    )


if __name__ == "__main__":
    main()
