"""Small files of examples with labels that depend on one word, and a small ELMo with random weights."""

from __future__ import annotations

import json
import random
from pathlib import Path

from builders import random_model, small_config
from polyseme.elmo import Elmo

GOOD = ["good", "great", "lovely", "fine", "nice"]
BAD = ["bad", "awful", "poor", "sad", "ugly"]
OTHER = ["the", "a", "film", "story", "is", "was", "very", "plot", "actor"]
QUICK = (
    "train.epochs=25",
    "train.patience=25",
    "train.rate=0.02",
    "train.batch=16",
    "encoder.size=16",
    "encoder.dropout=0.1",
    "input.words=16",
    "input.dropout=0.1",
    "head.dropout=0.1",
)
EPOCH = (*QUICK, "train.epochs=1")


def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


def sentence(rng: random.Random, good: bool) -> list[str]:
    words = [rng.choice(OTHER) for _ in range(rng.randint(2, 6))]
    words.insert(rng.randrange(len(words) + 1), rng.choice(GOOD if good else BAD))
    return words


def write(folder: Path) -> Path:
    """Write training, dev and test files of every task: .csv, .conll, .jsonl and .txt (SemEval)."""
    for number, (name, count) in enumerate({"train": 64, "dev": 24, "test": 24}.items()):
        rng = random.Random(number)
        flags = [(rng.random() < 0.5, rng.random() < 0.5) for _ in range(count)]
        texts = [(sentence(rng, first), sentence(rng, second)) for first, second in flags]
        rows = [
            f'{"pos" if good else "neg"},"{" ".join(text)}"'
            for (good, _), (text, _) in zip(flags, texts, strict=True)
        ]
        (folder / f"{name}.csv").write_text("label,text\n" + "\n".join(rows) + "\n", encoding="utf-8")
        blocks = ["\n".join(f"{w} {tag(w)}" for w in text) for text, _ in texts]
        (folder / f"{name}.conll").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
        pairs = [
            {
                "sentence1": " ".join(first),
                "sentence2": " ".join(second),
                "label": "same" if a == b else "other",
                "score": 1.0 + a + 2 * b,
            }
            for (a, b), (first, second) in zip(flags, texts, strict=True)
        ]
        lines = "".join(json.dumps(pair) + "\n" for pair in pairs)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        (folder / f"{name}.txt").write_text("".join(map(relation, range(count), flags)), encoding="utf-8")
    return folder


def tag(word: str) -> str:
    return "B-GOOD" if word in GOOD else "B-BAD" if word in BAD else "O"


def relation(number: int, flags: tuple[bool, bool]) -> str:
    first, second = ("good", "bad") if flags[0] else ("bad", "good")
    label = "Better(e1,e2)" if flags[0] else "Other"
    return f'{number}\t"the <e1>{first}</e1> film is <e2>{second}</e2>."\n{label}\nComment: none\n\n'
