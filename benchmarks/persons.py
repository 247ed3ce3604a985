"""Measure the neighbours of persons in 三国演义: how many of the ten words nearest to a person are persons.

    a model, sanguo.txt, sanguo_entity_dict.json  ->  mean contextual vectors  ->  shares, and examples

Persons are the names of the type 人名 and what they are called by (`mention`), words of at least two
characters. The FREQUENT most frequent of them are measured; neighbours are words of at least two characters
with COUNT usages or more. The second score is about names of one person (刘备, 玄德): how often another name
is among the ten nearest. For comparison: static word2vec vectors of the same sentences (gensim). Neighbours
that are not persons are counted by cause: names that the novel uses otherwise (OTHERWISE), persons missing
from the list (MISSING, chosen by hand), and the rest. The ceiling is the score that the same vectors would
have if only persons, listed or missing, were near a person. Views: the mean of the word's vectors, or of its
contexts (search.usage_vectors).

    python benchmarks/persons.py MODEL FOLDER [--layer top] [--view word] [--word2vec]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.word_vectors import WordVectors

STATIC: tuple[dict[str, int], ...] = (
    {"sg": 0, "epochs": 30},
    {"sg": 1, "epochs": 30},
    {"sg": 0, "epochs": 5},
)
# A city, a verb (to calm the people), and a byname that occurs before 冈 (a hill) and 先生 (master).
OTHERWISE = frozenset(("许昌", "安民", "卧龙"))
# Persons and bynames that are missing from the list; some it spells differently (麋竺, 毌丘俭, 曹叡).
MISSING_NAMES = (
    "后主 先主 皇叔 刘皇叔 刘豫州 刘使君 阿斗 张翼德 关某 糜竺 糜芳 糜夫人 诸葛丞相 武侯 曹睿 曹丞相 曹公 "
    "毋丘俭 乔国老 傅士仁 傅彤 蔡夫人 献帝 何太后 伏后 徐母 周郎 吉平 单福"
)
MISSING = frozenset(MISSING_NAMES.split())
FREQUENT = 100
COUNT = 10
NEAREST = 10


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a model's folder or name")
    parser.add_argument("folder", type=Path, help="with sanguo.txt and sanguo_entity_dict.json")
    parser.add_argument("--layer", default="top")
    parser.add_argument("--view", default="word", choices=("word", "context"))
    parser.add_argument("--word2vec", action="store_true", help="static vectors beside; needs gensim")
    options = parser.parse_args()
    import polyseme

    layer = int(options.layer) if options.layer.isdecimal() else options.layer
    elmo = polyseme.load(options.model)
    vectors = average_usages(elmo, options.folder, layer, options.view)
    share, near = measure_neighbours(vectors, options.folder)
    print(f"{share:.3f} of the ten nearest words of the {len(near)} most frequent persons are persons")
    print(*(f"{cause}: {count}" for cause, count in count_causes(near, options.folder).items()), sep=", ")
    ceiling = measure_ceiling(vectors, near, options.folder)
    print(f"{ceiling:.3f} is the ceiling: only persons, listed or missing, near each person")
    for person in islice(near, 10):
        print(person, *near[person])
    print(f"{measure_same_person(vectors, options.folder):.3f} of names have another of the same person near")
    for settings in STATIC if options.word2vec else ():
        static = train_word2vec(options.folder, elmo.config.segment, **settings)
        neighbours, same = (
            measure_neighbours(static, options.folder)[0],
            measure_same_person(static, options.folder),
        )
        shares = f"persons {neighbours:.3f}, the same {same:.3f}"
        print(f"word2vec {settings}: {shares}")


def average_usages(elmo: Any, folder: Path, layer: str | int = "top", view: str = "word") -> WordVectors:
    """Compute the mean vectors of the words of the novel, or of their contexts."""
    import polyseme

    text = read_sentences(folder, elmo.config.segment)
    if view == "context":
        return average_contexts(elmo, text, layer)
    return polyseme.mean_vectors(elmo, text, layer=layer, min_count=COUNT)


def average_contexts(elmo: Any, text: list[list[str]], layer: str | int) -> WordVectors:
    """Compute the mean context of each word with enough usages."""
    from polyseme.search.sense_data import LabelledUsage
    from polyseme.search.usage_vectors import embed_usages

    counts = Counter(word for tokens in text for word in tokens)
    words = [word for word, count in counts.most_common() if count >= COUNT]
    rows = {word: row for row, word in enumerate(words)}
    sums = np.zeros((len(words), elmo.config.size))
    usages = [
        LabelledUsage("", word, tokens, position, position + 1)
        for tokens in map(tuple, text)
        for position, word in enumerate(tokens)
        if word in rows
    ]
    for usage, vector in zip(usages, embed_usages(elmo, usages, layer, "context"), strict=True):
        sums[rows[usage.key]] += vector
    numbers = np.array([counts[word] for word in words])
    means = (sums / numbers[:, None]).astype(np.float32)
    return WordVectors(tuple(words), numbers, means, means.mean(axis=0))


def read_sentences(folder: Path, segment: str) -> list[list[str]]:
    """Read the novel as token lists."""
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    return list(segment_lines(read_lines(folder / "sanguo.txt"), segment))


def train_word2vec(folder: Path, segment: str, *, sg: int, epochs: int) -> WordVectors:
    """Train static vectors on the same sentences, 256 values."""
    from gensim.models import Word2Vec

    trained = Word2Vec(
        read_sentences(folder, segment),
        vector_size=256,
        min_count=COUNT,
        sg=sg,
        epochs=epochs,
        seed=1,
        workers=2,
    ).wv
    counts = np.array([trained.get_vecattr(word, "count") for word in trained.index_to_key])
    return WordVectors(tuple(trained.index_to_key), counts, trained.vectors, np.zeros(256, np.float32))


def measure_neighbours(vectors: Any, folder: Path) -> tuple[float, dict[str, list[str]]]:
    """Return the share of persons among the nearest words of frequent persons, and these words by person."""
    persons = read_names(folder / "sanguo_entity_dict.json")
    frequent = list(islice((word for word in vectors.words if word in persons), FREQUENT))
    near = {
        person: [word for word, _ in vectors.nearest(person, NEAREST, min_chars=2)] for person in frequent
    }
    shares = [sum(word in persons for word in words) / len(words) for words in near.values()]
    return sum(shares) / len(shares), near


def count_causes(near: dict[str, list[str]], folder: Path) -> dict[str, int]:
    """Count the neighbours that are not persons by cause."""
    persons = read_names(folder / "sanguo_entity_dict.json")
    counts: Counter[str] = Counter({"used otherwise": 0, "missing": 0, "others": 0})
    for person, words in near.items():
        for word in (word for word in words if word not in persons):
            cause = "missing" if word in MISSING else "others"
            counts["used otherwise" if person in OTHERWISE else cause] += 1
    return dict(counts)


def measure_ceiling(vectors: Any, near: dict[str, list[str]], folder: Path) -> float:
    """Return the share if the ten nearest words of each person were persons, listed or missing.

    Names that are used otherwise keep their neighbours, which are in `near`.
    """
    persons = read_names(folder / "sanguo_entity_dict.json")
    allowed, neighbours = persons | MISSING, dict(near)
    for person in near.keys() - OTHERWISE:
        words = (word for word, _ in vectors.nearest(person, len(vectors.words), min_chars=2))
        neighbours[person] = list(islice((word for word in words if word in allowed), NEAREST))
    return float(np.mean([[word in persons for word in words] for words in neighbours.values()]))


def measure_same_person(vectors: Any, folder: Path) -> float:
    """Return the share of names with another name of the same person among the ten nearest."""
    matches = []
    known = set(vectors.words)
    for person in read_names_by_person(folder / "sanguo_entity_dict.json").values():
        person_names = person & known
        for name in person_names if len(person_names) > 1 else ():
            near = vectors.nearest(name, NEAREST, min_chars=2)
            matches.append(any(word in person_names for word, _ in near))
    return sum(matches) / len(matches)


def read_names_by_person(path: Path) -> dict[str, set[str]]:
    """Read the names of each person, of two characters or more; names of several persons are left out."""
    known = json.loads(path.read_text(encoding="utf-8"))
    persons = {
        name: {word for word in {name, *known["mention"].get(name, ())} if len(word) >= 2}
        for name, kind in known["type"].items()
        if kind == "人名"
    }
    times = Counter(word for words in persons.values() for word in words)
    return {name: {word for word in words if times[word] == 1} for name, words in persons.items()}


def read_names(path: Path) -> set[str]:
    """Read the names and bynames of persons, of two characters or more."""
    known = json.loads(path.read_text(encoding="utf-8"))
    types: dict[str, str] = known["type"]
    persons = {name for name, kind in types.items() if kind == "人名"}
    called_by = {word for name in persons for word in known["mention"].get(name, ())}
    return {name for name in persons | called_by if len(name) >= 2}


if __name__ == "__main__":
    main()
