"""Three classifiers in Keras: ELMo joined with word embeddings, ELMo alone, and the mean of fixed vectors.

    python examples/keras_classifier.py [--train TRAIN --test TEST] [--model en] [--limit N] [--epochs N]

Files are CSV with the columns label and text, or lines of "label text". Without --test a fifth of the file is
held out. Without --train it reads examples/data/topics.csv.
"""

import argparse
import csv
import os
import random
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from keras import layers, ops

import polyseme
from polyseme.integrations.keras import ElmoBatches, WeightedSum

TOPICS = Path(__file__).parent / "data" / "topics.csv"
SETUPS = ("joined", "elmo", "pooled")


def build(setup: str, shape: tuple[int, ...], n_words: int, n_labels: int) -> keras.Model:
    """One of the three networks: `shape` is that of a token, (L, H) or (H,)."""
    elmo, words = keras.Input((None, *shape), name="elmo"), keras.Input((None,), dtype="int32", name="words")
    mask = ops.not_equal(words, 0)
    if setup == "pooled":
        x = layers.GlobalAveragePooling1D()(elmo, mask=mask)
        x = layers.Dropout(0.2)(layers.Dense(256, activation="relu")(x))
    else:
        x = WeightedSum(name="mix")(elmo)
        if setup == "joined":
            x = layers.Concatenate()([layers.Embedding(n_words, 256)(words), x])
        x = layers.BatchNormalization()(x, mask=mask)
        x = layers.LSTM(256, dropout=0.2, recurrent_dropout=0.2)(x, mask=mask)
    model = keras.Model([elmo, words], layers.Dense(n_labels, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def run(setup: str, elmo: polyseme.Elmo, train: list, test: list, epochs: int, seed: int = 0) -> float:
    """Train a network and return its accuracy on the test set."""
    keras.utils.set_random_seed(seed)
    labels = sorted({label for label, _ in train})
    layer = "mean" if setup == "pooled" else "all"
    data = [
        ([text for _, text in rows], [labels.index(label) for label, _ in rows]) for rows in (train, test)
    ]
    batches = ElmoBatches(elmo, *data[0], layer=layer, shuffle=True, seed=seed)
    held_out = ElmoBatches(elmo, *data[1], layer=layer, vocabulary=batches.vocabulary)
    shape = batches[0][0]["elmo"].shape[2:]
    model = build(setup, shape, len(batches.vocabulary) + 2, len(labels))
    model.fit(batches, epochs=epochs, verbose=0)
    return model.evaluate(held_out, verbose=0)[1]


def read(path: Path) -> list[tuple[str, str]]:
    """Pairs of label and text."""
    with open(path, encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            return [(row["label"], row["text"]) for row in csv.DictReader(file)]
        return [tuple(line.rstrip("\n").split(" ", 1)) for line in file if line.strip()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, default=TOPICS)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--model", default="en")
    parser.add_argument("--limit", type=int, help="only so many texts for training")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--setups", nargs="+", choices=SETUPS, default=SETUPS)
    arguments = parser.parse_args()
    rows = read(arguments.train)
    random.Random(0).shuffle(rows)  # noqa: S311
    held_out = read(arguments.test) if arguments.test else rows[: len(rows) // 5]
    rows = rows[: arguments.limit] if arguments.test else rows[len(held_out) :][: arguments.limit]
    elmo = polyseme.load(arguments.model)
    print(f"{len(rows)} texts for training, {len(held_out)} held out")
    for setup in arguments.setups:
        accuracy = run(setup, elmo, rows, held_out, arguments.epochs)
        print(f"{setup:7} {accuracy:.2%}", flush=True)
