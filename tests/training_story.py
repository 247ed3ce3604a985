"""Generated text that a small model can learn, for the tests of training."""

from __future__ import annotations

import random
from pathlib import Path

NAMES = ("Anna", "Bruno", "Clara", "David")
VERBS = {
    "sees": ("river", "bank", "boat"),
    "buys": ("bread", "milk", "fish"),
    "reads": ("letter", "book", "map"),
}


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return sentences `name verb the noun .`, in which the verb limits the noun."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        verb = rng.choice(list(VERBS))
        article = rng.choice(["the", "the old", "the very old"])
        lines.append(f"{rng.choice(NAMES)} {verb} {article} {rng.choice(VERBS[verb])} .")
    return lines


def write(path: Path, count: int = 400, seed: int = 0) -> Path:
    """Write a text of `count` lines."""
    path.write_text("\n".join(sentences(count, seed)) + "\n", encoding="utf-8")
    return path


SETTINGS = (
    "model.segment=split",
    "corpus.documents=line",
    "corpus.valid_tokens=100",
    "corpus.valid_share=0.1",
    "train.seed=3",
)
