"""Who stands beside whom in 三国演义: how many of the ten words nearest to a person are persons.

    a model, sanguo.txt, sanguo_entity_dict.json  ->  mean contextual vectors  ->  shares, and examples

Persons are the names of the type 人名 and what they are called by (`mention`), words of at least two
characters. Judged are the FREQUENT most frequent of them; their neighbours are words of at least two
characters with COUNT usages or more. The second figure is of the names of one person (刘备, 玄德): how often
another one is among the ten nearest. Static vectors beside: word2vec of the same sentences (gensim).
What is missing to 1 is counted by cause: names that the novel uses otherwise (OTHERWISE), persons that the
list lacks (LACKING, chosen by hand), and the rest. The most that the list allows is what the same vectors
would have if no other word than persons, of the list or lacking, stood near a person. Views: the mean of the
word's own vectors, or of the states around it (search.views).

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
# A city, a verb (to calm the people), and a byname that stands before 冈 (a hill) and 先生 (master).
OTHERWISE = frozenset(("许昌", "安民", "卧龙"))
# Persons, or bynames of one person, who are not in the list: some it spells otherwise (麋竺, 毌丘俭, 曹叡).
MORE = (
    "后主 先主 皇叔 刘皇叔 刘豫州 刘使君 阿斗 张翼德 关某 糜竺 糜芳 糜夫人 诸葛丞相 武侯 曹睿 曹丞相 曹公 "
    "毋丘俭 乔国老 傅士仁 傅彤 蔡夫人 献帝 何太后 伏后 徐母 周郎 吉平 单福"
)
LACKING = frozenset(MORE.split())
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
    given = parser.parse_args()
    import polyseme

    layer = int(given.layer) if given.layer.isdecimal() else given.layer
    elmo = polyseme.load(given.model)
    vectors = contextual(elmo, given.folder, layer, given.view)
    share, near = judge(vectors, given.folder)
    print(f"{share:.3f} of the ten nearest words of the {len(near)} most frequent persons are persons")
    print(*(f"{cause}: {count}" for cause, count in causes(near, given.folder).items()), sep=", ")
    print(
        f"{most(vectors, near, given.folder):.3f} is the most that the list allows: with no such others left"
    )
    for person in islice(near, 10):
        print(person, *near[person])
    print(f"{same_person(vectors, given.folder):.3f} of names have another of the same person near")
    for settings in STATIC if given.word2vec else ():
        static = word2vec(given.folder, elmo.config.segment, **settings)
        shares = (
            f"persons {judge(static, given.folder)[0]:.3f}, the same {same_person(static, given.folder):.3f}"
        )
        print(f"word2vec {settings}: {shares}")


def contextual(elmo: Any, folder: Path, layer: str | int = "top", view: str = "word") -> WordVectors:
    """The mean vectors of the words of the novel, or of their places."""
    import polyseme

    text = sentences(folder, elmo.config.segment)
    if view == "context":
        return places(elmo, text, layer)
    return polyseme.mean_vectors(elmo, text, layer=layer, min_count=COUNT)


def places(elmo: Any, text: list[list[str]], layer: str | int) -> WordVectors:
    """The mean states of the model around each word with enough usages."""
    from polyseme.search.sense_data import LabelledUsage
    from polyseme.search.usage_vectors import embed_usages

    counts = Counter(word for tokens in text for word in tokens)
    words = [word for word, count in counts.most_common() if count >= COUNT]
    rows = {word: row for row, word in enumerate(words)}
    sums = np.zeros((len(words), elmo.config.size))
    used = [
        LabelledUsage("", word, tokens, place, place + 1)
        for tokens in map(tuple, text)
        for place, word in enumerate(tokens)
        if word in rows
    ]
    for usage, vector in zip(used, embed_usages(elmo, used, layer, "context"), strict=True):
        sums[rows[usage.key]] += vector
    numbers = np.array([counts[word] for word in words])
    means = (sums / numbers[:, None]).astype(np.float32)
    return WordVectors(tuple(words), numbers, means, means.mean(axis=0))


def sentences(folder: Path, segment: str) -> list[list[str]]:
    """The novel, cut."""
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    return list(segment_lines(read_lines(folder / "sanguo.txt"), segment))


def word2vec(folder: Path, segment: str, *, sg: int, epochs: int) -> WordVectors:
    """Static vectors of the same sentences, 256 dimensions."""
    from gensim.models import Word2Vec

    trained = Word2Vec(
        sentences(folder, segment), vector_size=256, min_count=COUNT, sg=sg, epochs=epochs, seed=1, workers=2
    ).wv
    counts = np.array([trained.get_vecattr(word, "count") for word in trained.index_to_key])
    return WordVectors(tuple(trained.index_to_key), counts, trained.vectors, np.zeros(256, np.float32))


def judge(vectors: Any, folder: Path) -> tuple[float, dict[str, list[str]]]:
    """The share of persons among the nearest words of frequent persons, and these words by person."""
    persons = names(folder / "sanguo_entity_dict.json")
    frequent = list(islice((word for word in vectors.words if word in persons), FREQUENT))
    near = {
        person: [word for word, _ in vectors.nearest(person, NEAREST, min_chars=2)] for person in frequent
    }
    shares = [sum(word in persons for word in words) / len(words) for words in near.values()]
    return sum(shares) / len(shares), near


def causes(near: dict[str, list[str]], folder: Path) -> dict[str, int]:
    """How many of the words that are no persons by the list have which cause."""
    persons = names(folder / "sanguo_entity_dict.json")
    found: Counter[str] = Counter({"used otherwise": 0, "lacking": 0, "others": 0})
    for person, words in near.items():
        for word in (word for word in words if word not in persons):
            cause = "lacking" if word in LACKING else "others"
            found["used otherwise" if person in OTHERWISE else cause] += 1
    return dict(found)


def most(vectors: Any, near: dict[str, list[str]], folder: Path) -> float:
    """The share by the list if the ten nearest of a person were persons, those the list lacks among them.

    Names that are used otherwise keep their neighbours, which are in `near`.
    """
    persons = names(folder / "sanguo_entity_dict.json")
    known, found = persons | LACKING, dict(near)
    for person in near.keys() - OTHERWISE:
        words = (word for word, _ in vectors.nearest(person, len(vectors.words), min_chars=2))
        found[person] = list(islice((word for word in words if word in known), NEAREST))
    return float(np.mean([[word in persons for word in words] for words in found.values()]))


def same_person(vectors: Any, folder: Path) -> float:
    """Of names with another name of the same person: the share that has one among its ten nearest."""
    found = []
    known = set(vectors.words)
    for person in called(folder / "sanguo_entity_dict.json").values():
        own = person & known
        for name in own if len(own) > 1 else ():
            found.append(any(word in own for word, _ in vectors.nearest(name, NEAREST, min_chars=2)))
    return sum(found) / len(found)


def called(path: Path) -> dict[str, set[str]]:
    """Names of each person, words of at least two characters; names of several persons are left out."""
    known = json.loads(path.read_text(encoding="utf-8"))
    persons = {
        name: {word for word in {name, *known["mention"].get(name, ())} if len(word) >= 2}
        for name, kind in known["type"].items()
        if kind == "人名"
    }
    times = Counter(word for words in persons.values() for word in words)
    return {name: {word for word in words if times[word] == 1} for name, words in persons.items()}


def names(path: Path) -> set[str]:
    """Names of persons, and what they are called by, of at least two characters."""
    known = json.loads(path.read_text(encoding="utf-8"))
    types: dict[str, str] = known["type"]
    persons = {name for name, kind in types.items() if kind == "人名"}
    called_by = {word for name in persons for word in known["mention"].get(name, ())}
    return {name for name in persons | called_by if len(name) >= 2}


if __name__ == "__main__":
    main()
