"""The command line, the clock and the file formats that all rivals of benchmarks/duel.py share.

A rival is a file beside this one with two functions, run by the Python of its own environment:

    python RIVAL.py pretrain TEXT SECONDS MODEL --language en --seed 1 [--set NAME=VALUE …]
    python RIVAL.py embed MODEL SENTENCES VECTORS --language en

`pretrain` gets SECONDS of CPU time, counted over all threads of the process from the first look at TEXT
until the model is on disk; imports are free. `embed` reads every SENTENCES/*.jsonl (a list of tokens per
line) and writes VECTORS/*.npy: one row per token, all layers of the model side by side, in float16. Files
named *.characters.jsonl hold single characters of Chinese instead of words.

Needs numpy only, and rjieba for Chinese words, so that it runs in every environment.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

Sentence = list[str]
Settings = dict[str, Any]
EmbedBatch = Callable[[list[Sentence]], list[np.ndarray]]
CHARACTERS = ".characters.jsonl"
BATCH = 64  # sentences that are embedded together


@dataclass
class Budget:
    """CPU seconds of this process, all threads, since the budget was made."""

    seconds: float
    started: float = field(default_factory=time.process_time)

    @property
    def used(self) -> float:
        """CPU seconds so far."""
        return time.process_time() - self.started

    def part(self, share: float) -> Budget:
        """A budget that starts now and gets a share of the whole."""
        return Budget(self.seconds * share)

    @property
    def share(self) -> float:
        """The share that is used, at most 1."""
        return min(1.0, self.used / self.seconds)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.seconds

    def rate(self, peak: float, warmup: float = 0.05) -> float:
        """A learning rate that rises linearly, then falls to zero along a cosine just as the budget ends."""
        if self.share < warmup:
            return peak * max(self.share, 1e-3) / warmup
        return peak * 0.5 * (1 + math.cos(math.pi * (self.share - warmup) / (1 - warmup)))


@dataclass(frozen=True)
class Run:
    """What `pretrain` is asked for."""

    text: Path
    budget: Budget
    out: Path
    language: str  # en or zh
    seed: int
    settings: Settings

    def read_lines(self) -> list[str]:
        """The lines of the text that are not empty."""
        lines = self.text.read_text(encoding="utf-8").splitlines()
        return [line.strip() for line in lines if line.strip()]


def main(
    description: str,
    defaults: Settings,
    pretrain: Callable[[Run], Settings],
    load: Callable[[Path, str, bool], EmbedBatch],
) -> None:
    """Parse the command line and run one of the two functions.

    Args:
        description: The docstring of the rival.
        defaults: Its settings; `--set` changes them, and no other names are accepted.
        pretrain: Trains a model, writes it, and returns numbers worth keeping (steps, tokens).
        load: Opens a model; gets its folder, the language and whether tokens are single characters.

    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("pretrain")
    training.add_argument("text", type=Path)
    training.add_argument("seconds", type=float)
    training.add_argument("model", type=Path)
    training.add_argument("--seed", type=int, default=1)
    training.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    embedding = commands.add_parser("embed")
    for name in ("model", "sentences", "vectors"):
        embedding.add_argument(name, type=Path)
    for command in (training, embedding):
        command.add_argument("--language", choices=["en", "zh"], default="en")
    arguments = parser.parse_args()
    if arguments.command == "embed":
        embed_folder(arguments, load)
        return
    settings = defaults | dict(_parse_setting(line, defaults) for line in arguments.set)
    arguments.model.mkdir(parents=True, exist_ok=True)
    run = Run(
        arguments.text,
        Budget(arguments.seconds),
        arguments.model,
        arguments.language,
        arguments.seed,
        settings,
    )
    trained = pretrain(run)
    measured = {"cpu_seconds": round(run.budget.used, 1), **trained}
    (arguments.model / "run.json").write_text(json.dumps(measured | {"settings": settings}))
    print(json.dumps(measured))


def _parse_setting(line: str, defaults: Settings) -> tuple[str, Any]:
    """NAME=VALUE with the type that the default has."""
    name, _, value = line.partition("=")
    if name not in defaults:
        raise SystemExit(f"{line}: there is no setting {name!r}; there are {', '.join(defaults)}.")
    return name, type(defaults[name])(value)


def embed_folder(arguments: argparse.Namespace, load: Callable[[Path, str, bool], EmbedBatch]) -> None:
    """Embed all files of sentences, each in batches sorted by length."""
    arguments.vectors.mkdir(parents=True, exist_ok=True)
    for path in sorted(arguments.sentences.glob("*.jsonl")):
        sentences = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        embed = load(arguments.model, arguments.language, path.name.endswith(CHARACTERS))
        starts = np.cumsum([0, *map(len, sentences)])
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        vectors: np.ndarray | None = None
        for first in range(0, len(order), BATCH):
            numbers = order[first : first + BATCH]
            for number, rows in zip(numbers, embed([sentences[i] for i in numbers]), strict=True):
                if len(rows) != len(sentences[number]):
                    raise SystemExit(f"{path}:{number + 1}: {len(rows)} vectors, expected one per token.")
                if vectors is None:
                    vectors = np.empty((starts[-1], rows.shape[1]), np.float16)
                vectors[starts[number] : starts[number + 1]] = rows
        assert vectors is not None, path
        np.save(arguments.vectors / f"{path.name.removesuffix('.jsonl')}.npy", vectors)


def segment_chinese(text: str) -> Sentence:
    """Words by jieba, without white space."""
    import rjieba

    return [word for word in rjieba.cut(text) if word.strip()]


def spread_words(embed: EmbedBatch) -> EmbedBatch:
    """Let a model of words embed characters: each gets the vector of its word by jieba and its place in it.

    Four more columns say whether the character begins, continues, ends or is the word.
    """

    def embed_characters(sentences: list[Sentence]) -> list[np.ndarray]:
        words = [segment_chinese("".join(sentence)) or sentence for sentence in sentences]
        return [
            np.array(list(_spread(sentence, segmented, rows)), np.float32)
            for sentence, segmented, rows in zip(sentences, words, embed(words), strict=True)
        ]

    return embed_characters


def _spread(characters: Sentence, words: Sentence, rows: np.ndarray) -> Iterator[np.ndarray]:
    """One row per character."""
    owners = [(number, place, len(word)) for number, word in enumerate(words) for place in range(len(word))]
    if len(owners) != sum(map(len, characters)):
        raise ValueError(f"jieba lost characters of {''.join(characters)!r}")
    position = 0
    for character in characters:
        number, place, length = owners[position]
        mark = 3 if length == 1 else 0 if place == 0 else 2 if place == length - 1 else 1
        yield np.concatenate([rows[number], np.eye(4, dtype=np.float32)[mark]])
        position += len(character)


def pool_pieces(pieces: np.ndarray, lengths: list[int]) -> np.ndarray:
    """The mean vector of the pieces of each token; every token has at least one piece."""
    ends = np.cumsum(lengths)
    sums = np.add.reduceat(pieces, np.concatenate([[0], ends[:-1]]), axis=0)
    return sums / np.array(lengths)[:, None]
