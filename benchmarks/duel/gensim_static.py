"""gensim in the duel: word2vec and fastText, one vector per word whatever its context.

A pass over a tenth of the text measures the speed (not counted); then as many whole passes are planned as
the budget allows, so that gensim's falling rate ends with it. Chinese text is read twice in each pass, as
words by jieba and as characters.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import FastText, Word2Vec
from rival import EmbedBatch, Run, Sentence, Settings, main, segment_chinese, spread_words

DEFAULTS: Settings = {
    "kind": "fasttext",  # or word2vec
    "size": 300,
    "window": 5,
    "negative": 5,
    "min_count": 2,
    "skip_gram": 1,
    "rate": 0.05,
    "sample": 1e-3,
    "most_epochs": 100,  # more passes over a small text do harm
    "buckets": 200_000,
}


def pretrain(run: Run) -> Settings:
    """Measure one pass over a tenth of the text, plan, train."""
    sentences = read_sentences(run)
    sample = sentences[::10]
    probe = make_model(run, sentences)
    preparing = run.budget.used
    probe.train(sample, total_examples=len(sample), epochs=1)
    pass_seconds = 10 * (run.budget.used - preparing)
    epochs = max(1, int((run.budget.seconds * 0.98 - preparing) / pass_seconds))
    epochs = min(epochs, run.settings["most_epochs"])
    model = make_model(run, sentences)
    run.budget.started = time.process_time() - preparing  # reading and counting count, measuring does not
    model.train(sentences, total_examples=len(sentences), epochs=epochs)
    model.save(str(run.out / "model"))
    return {"epochs": epochs, "tokens": epochs * sum(map(len, sentences))}


def read_sentences(run: Run) -> list[Sentence]:
    """The lines as tokens."""
    lines = run.read_lines()
    if run.language == "en":
        return [line.split() for line in lines]
    return [segment_chinese(line) for line in lines] + [list(line.replace(" ", "")) for line in lines]


def make_model(run: Run, sentences: list[Sentence]) -> Any:
    """A model that knows the words and is not trained."""
    settings = run.settings
    shared = {
        "vector_size": settings["size"],
        "window": settings["window"],
        "negative": settings["negative"],
        "min_count": settings["min_count"],
        "sg": settings["skip_gram"],
        "sample": settings["sample"],
        "alpha": settings["rate"],
        "workers": 1,
        "seed": run.seed,
    }
    if settings["kind"] == "word2vec":
        model = Word2Vec(**shared)
    else:
        shortest, longest = (1, 3) if run.language == "zh" else (3, 6)
        model = FastText(**shared, bucket=settings["buckets"], min_n=shortest, max_n=longest)
    model.build_vocab(sentences)
    return model


def load(folder: Path, language: str, characters: bool) -> EmbedBatch:
    """One row per word; zeros for words that word2vec does not know.

    A Chinese word that is unknown gets the mean of its characters, a character its own vector beside that of
    the word it stands in.
    """
    kind = json.loads((folder / "run.json").read_text())["settings"]["kind"]
    vectors = (Word2Vec if kind == "word2vec" else FastText).load(str(folder / "model")).wv

    def look_up(word: str) -> np.ndarray:
        if kind == "fasttext" or word in vectors:
            return vectors[word]
        known = [vectors[character] for character in word if character in vectors]
        if language == "zh" and known:
            return np.mean(known, axis=0)
        lowered = word.lower()
        return vectors[lowered] if lowered in vectors else np.zeros(vectors.vector_size, np.float32)

    def embed(sentences: list[Sentence]) -> list[np.ndarray]:
        return [np.stack([look_up(word) for word in sentence]) for sentence in sentences]

    if not characters:
        return embed
    by_words = spread_words(embed)

    def embed_characters(sentences: list[Sentence]) -> list[np.ndarray]:
        return [np.hstack(pair) for pair in zip(embed(sentences), by_words(sentences), strict=True)]

    return embed_characters


if __name__ == "__main__":
    main(__doc__, DEFAULTS, pretrain, load)
