"""Measure vectors of sentences, frozen: classification with logistic regression, and relatedness by cosine.

    SST-2, ChnSentiCorp, SICK, DRCD in DATA  ->  polyseme.Elmo.embed  ->  a table per model

Classification: the pooled vectors of each sentence, standardised, with C chosen on the dev part; beside it
TF-IDF of words (of characters and pairs of them in Chinese). Relatedness: Spearman's correlation of the
cosine with SICK's score, test part; with `centred`, minus the mean of the two columns of sentences.
Traditional text: the share of unknown words in DRCD, as it is and with simplified characters.

    python benchmarks/sentence_vectors.py DATA en en-classic [--examples 6920]
    python benchmarks/sentence_vectors.py DATA zh zh-classic
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import polyseme
from polyseme.text.segment import token_texts

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1)  # C of logistic regression on vectors
TFIDF_STRENGTHS = (0.3, 1.0, 3.0, 10.0)
VECTORS = {
    "mean of the layers, mean of the tokens": {"pool": "mean"},
    "layers joined, mean of the tokens": {"layer": "concat", "pool": "mean"},
    'pool="sentence"': {"pool": "sentence"},
}


class Labelled(NamedTuple):
    """Sentences as token lists, and their labels."""

    tokens: list[list[str]]
    labels: list[str]


def main() -> None:
    """Parse the command line, measure, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--examples", type=int, default=6920, help="training examples (default 6920: all)")
    arguments = parser.parse_args()
    for name in arguments.models:
        elmo = polyseme.load(name)
        chinese = elmo.config.segment == "zh"
        parts = read_hotels(arguments.data) if chinese else read_sst(arguments.data)
        train = Labelled(*(column[: arguments.examples] for column in parts[0]))
        print(f"\n{name}: {'ChnSentiCorp' if chinese else 'SST-2'}, {len(train.labels):,} examples")
        print(f"TF-IDF and logistic regression: {score_tfidf((train, *parts[1:]), chinese=chinese):.4f}")
        for title, options in VECTORS.items():
            if "sentence" in title and elmo.model.pooling is None:
                continue
            print(f"{title}: {score_vectors(elmo, (train, *parts[1:]), options):.4f}", flush=True)
        if chinese:
            print_unknown(elmo, arguments.data)
        else:
            print_relatedness(elmo, arguments.data)


def read_sst(data: Path) -> tuple[Labelled, Labelled, Labelled]:
    """Train, dev and test of SST-2."""
    parts = []
    for part in ("train", "dev", "test"):
        lines = (data / "en_sst" / f"stsa.binary.{part}").read_text(encoding="utf-8").splitlines()
        rows = [line.split(" ", 1) for line in lines]
        parts.append(Labelled([text.split() for _, text in rows], [label for label, _ in rows]))
    return parts[0], parts[1], parts[2]


def read_hotels(data: Path) -> tuple[Labelled, Labelled, Labelled]:
    """Train, dev and test of the hotel reviews: shuffled by a fixed seed, 80%, 10% and 10%."""
    path = data / "zh_chnsenticorp_htl" / "ChnSentiCorp_htl_all.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["label"], row["review"]) for row in csv.DictReader(file) if row["review"].strip()]
    random.Random(1).shuffle(rows)
    tokens, labels = [token_texts(text, "zh") for _, text in rows], [label for label, _ in rows]
    cuts = (0, len(rows) * 8 // 10, len(rows) * 9 // 10, len(rows))
    first, second, third = (Labelled(tokens[a:b], labels[a:b]) for a, b in pairwise(cuts))
    return first, second, third


def score_vectors(
    elmo: polyseme.Elmo, parts: tuple[Labelled, Labelled, Labelled], options: dict[str, str]
) -> float:
    """Test accuracy of logistic regression on pooled vectors."""
    vectors = [elmo.embed(part.tokens, **options) for part in parts]  # type: ignore[call-overload]
    mean, deviation = vectors[0].mean(axis=0), vectors[0].std(axis=0) + 1e-6
    return choose([(array - mean) / deviation for array in vectors], parts, STRENGTHS)


def score_tfidf(parts: tuple[Labelled, Labelled, Labelled], *, chinese: bool) -> float:
    """Test accuracy of logistic regression on TF-IDF of words and pairs of them; of characters in Chinese."""
    texts = [["".join(t) if chinese else " ".join(t) for t in part.tokens] for part in parts]
    kind = {"analyzer": "char"} if chinese else {"token_pattern": r"\S+"}
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, **kind)
    matrices = [vectorizer.fit_transform(texts[0]), *map(vectorizer.transform, texts[1:])]
    return choose(matrices, parts, TFIDF_STRENGTHS)


def choose(features: list[np.ndarray], parts: tuple[Labelled, ...], strengths: tuple[float, ...]) -> float:
    """Test accuracy with the strength that is best on the dev part."""
    fits = [LogisticRegression(C=c, max_iter=500).fit(features[0], parts[0].labels) for c in strengths]
    best = max(fits, key=lambda fit: fit.score(features[1], parts[1].labels))
    return float(best.score(features[2], parts[2].labels))


def print_relatedness(elmo: polyseme.Elmo, data: Path) -> None:
    """Print the correlation of cosines with the relatedness of SICK's test part."""
    lines = (data / "en_sick" / "SICK_test_annotated.txt").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    ratings = [float(row[3]) for row in rows]
    for title, options in VECTORS.items():
        if "sentence" in title and elmo.model.pooling is None:
            continue
        pair = [elmo.embed([row[column] for row in rows], **options) for column in (1, 2)]  # type: ignore[call-overload]
        centre = np.concatenate(pair).mean(axis=0)
        plain, centred = correlate(pair, ratings), correlate([array - centre for array in pair], ratings)
        print(f"SICK, {title}: {plain:.3f}, centred {centred:.3f}", flush=True)


def correlate(pair: list[np.ndarray], ratings: list[float]) -> float:
    """Spearman's correlation of the cosines of two columns of vectors with the scores."""
    first, second = pair
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(spearmanr((first * second).sum(axis=1) / norms, ratings)[0])


def print_unknown(elmo: polyseme.Elmo, data: Path) -> None:
    """Print the shares of unknown words and characters of traditional text, without and with simplifying."""
    articles = json.loads((data / "zh_drcd" / "DRCD_dev.json").read_text(encoding="utf-8"))["data"]
    text = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    tokens = [token for paragraph in text for token in token_texts(paragraph, "zh")]
    vocab = elmo.model.vocab
    assert vocab is not None
    words, total = set(vocab.words), len(tokens)
    plain = sum(token not in words for token in tokens) / total
    simplified = sum(token not in vocab for token in tokens) / total
    print(f"DRCD, {total:,} words: {plain:.1%} unknown as written, {simplified:.1%} in simplified characters")


if __name__ == "__main__":
    main()
