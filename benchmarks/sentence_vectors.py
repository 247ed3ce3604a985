"""Measure vectors of sentences, frozen: classification with logistic regression, and relatedness by cosine.

    SST-2, ChnSentiCorp, SICK, XQuAD, DRCD in DATA  ->  polyseme.Elmo.embed  ->  a table per model

Classification: the pooled vectors of each sentence, standardised, with C chosen on the dev part; beside it
TF-IDF of words (of characters and pairs of them in Chinese), and both together. Relatedness: Spearman's
correlation of the cosine with SICK's score, test part; with `centred`, minus the mean of both columns.
Retrieval: how often the paragraph nearest to a question of XQuAD, of 240, is the one that answers it.
Traditional text: the share of unknown words in DRCD, as it is and with simplified characters.

    python benchmarks/sentence_vectors.py DATA en en-classic [--examples 6920] [--parts classification …]
    python benchmarks/sentence_vectors.py DATA zh zh-classic
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import hstack
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import polyseme
from polyseme.text.segment import token_texts

STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)  # C of logistic regression on vectors
TFIDF_STRENGTHS = (0.3, 1.0, 3.0, 10.0)
PARTS = ("classification", "relatedness", "retrieval", "unknown")
JOINED = "layers joined, mean, maximum and minimum"
VECTORS = {
    "mean of the layers, mean of the tokens": {"pool": "mean"},
    "layers joined, mean of the tokens": {"layer": "concat", "pool": "mean"},
    JOINED: {"layer": "concat", "pool": "concat"},
    "top layer, mean of the tokens": {"layer": "top", "pool": "mean"},
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
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    arguments = parser.parse_args()
    for name in arguments.models:
        elmo = polyseme.load(name)
        chinese = elmo.config.segment == "zh"
        print(f"\n{name}")
        if "classification" in arguments.parts:
            print_classification(elmo, arguments.data, arguments.examples, chinese=chinese)
        if "unknown" in arguments.parts and chinese:
            print_unknown(elmo, arguments.data)
        if "relatedness" in arguments.parts and not chinese:
            print_relatedness(elmo, arguments.data)
        if "retrieval" in arguments.parts:
            print_retrieval(elmo, arguments.data, "zh" if chinese else "en")


def print_classification(elmo: polyseme.Elmo, data: Path, examples: int, *, chinese: bool) -> None:
    """Print test accuracies of logistic regression: TF-IDF, the vectors, and both."""
    parts = read_hotels(data) if chinese else read_sst(data)
    train = Labelled(*(column[:examples] for column in parts[0]))
    chosen = (train, *parts[1:])
    print(f"{'ChnSentiCorp' if chinese else 'SST-2'}, {len(train.labels):,} examples")
    print(f"TF-IDF and logistic regression: {score_tfidf(chosen, chinese=chinese):.4f}", flush=True)
    print(f"TF-IDF beside {JOINED}: {score_joined(elmo, chosen, chinese=chinese):.4f}", flush=True)
    for title, options in VECTORS.items():
        if "sentence" not in title or elmo.model.pooling is not None:
            print(f"{title}: {score_vectors(elmo, chosen, options):.4f}", flush=True)


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
    return choose(weigh_terms(parts, chinese=chinese), parts, TFIDF_STRENGTHS)


def score_joined(elmo: polyseme.Elmo, parts: tuple[Labelled, Labelled, Labelled], *, chinese: bool) -> float:
    """Test accuracy of logistic regression on TF-IDF with vectors beside it, standardised and of length 2."""
    options = VECTORS[JOINED]
    vectors = [elmo.embed(part.tokens, **options) for part in parts]  # type: ignore[call-overload]
    mean, scale = vectors[0].mean(axis=0), 2 / (vectors[0].std(axis=0) + 1e-6) / vectors[0].shape[1] ** 0.5
    terms = weigh_terms(parts, chinese=chinese)
    pairs = zip(terms, vectors, strict=True)
    return choose(
        [hstack([left, (right - mean) * scale]).tocsr() for left, right in pairs], parts, TFIDF_STRENGTHS
    )


def weigh_terms(parts: tuple[Labelled, Labelled, Labelled], *, chinese: bool) -> list[Any]:
    """TF-IDF of the parts, fitted to the first."""
    texts = [["".join(t) if chinese else " ".join(t) for t in part.tokens] for part in parts]
    kind = {"analyzer": "char"} if chinese else {"token_pattern": r"\S+"}
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, **kind)
    return [vectorizer.fit_transform(texts[0]), *map(vectorizer.transform, texts[1:])]


def choose(features: list[Any], parts: tuple[Labelled, ...], strengths: tuple[float, ...]) -> float:
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


def print_retrieval(elmo: polyseme.Elmo, data: Path, language: str) -> None:
    """Print how often the paragraph nearest to a question of XQuAD is its own."""
    articles = json.loads((data / "en_zh_xquad" / f"xquad.{language}.json").read_text("utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = [(row["question"], n) for n, paragraph in enumerate(paragraphs) for row in paragraph["qas"]]
    right = np.array([number for _, number in questions])
    for title, options in VECTORS.items():
        if "sentence" in title and elmo.model.pooling is None:
            continue
        texts = [paragraph["context"] for paragraph in paragraphs], [text for text, _ in questions]
        kept, asked = (elmo.embed(column, **options) for column in texts)  # type: ignore[call-overload]
        shares = []
        for centres in ((0.0, 0.0), (kept.mean(axis=0), asked.mean(axis=0))):
            rows = [array - centre for array, centre in zip((kept, asked), centres, strict=True)]
            first, second = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in rows)
            shares.append(float(np.mean((second @ first.T).argmax(axis=1) == right)))
        print(f"XQuAD {language}, {title}: {shares[0]:.3f}, centred {shares[1]:.3f}", flush=True)


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
