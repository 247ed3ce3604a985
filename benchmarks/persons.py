"""Who stands beside whom in 三国演义: how many of the ten words nearest to a person are persons.

    a model, sanguo.txt, sanguo_entity_dict.json  ->  mean contextual vectors  ->  shares, and examples

Persons are the names of the type 人名 and what they are called by (`mention`), words of at least two
characters. Judged are the FREQUENT most frequent of them; their neighbours are words of at least two
characters with COUNT usages or more. The second figure is of the names of one person (刘备, 玄德): how often
another one is among the ten nearest. Static vectors beside: word2vec of the same sentences (gensim).

    python benchmarks/persons.py MODEL FOLDER [--layer top] [--word2vec]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.words import WordVectors

STATIC: tuple[dict[str, int], ...] = (
    {"sg": 0, "epochs": 30},
    {"sg": 1, "epochs": 30},
    {"sg": 0, "epochs": 5},
)
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
    parser.add_argument("--word2vec", action="store_true", help="static vectors beside; needs gensim")
    given = parser.parse_args()
    import polyseme

    layer = int(given.layer) if given.layer.isdecimal() else given.layer
    elmo = polyseme.load(given.model)
    vectors = contextual(elmo, given.folder, layer)
    share, near = judge(vectors, given.folder)
    print(f"{share:.3f} of the ten nearest words of the {len(near)} most frequent persons are persons")
    for person in islice(near, 10):
        print(person, *near[person])
    print(f"{same_person(vectors, given.folder):.3f} of names have another of the same person near")
    for settings in STATIC if given.word2vec else ():
        static = word2vec(given.folder, elmo.config.segment, **settings)
        shares = (
            f"persons {judge(static, given.folder)[0]:.3f}, the same {same_person(static, given.folder):.3f}"
        )
        print(f"word2vec {settings}: {shares}")


def contextual(elmo: Any, folder: Path, layer: str | int = "top") -> WordVectors:
    """The mean vectors of the words of the novel."""
    import polyseme

    return polyseme.mean_vectors(elmo, sentences(folder, elmo.config.segment), layer=layer, min_count=COUNT)


def sentences(folder: Path, segment: str) -> list[list[str]]:
    """The novel, cut."""
    from polyseme.text.reading import read_lines
    from polyseme.text.stream import sentences_of_lines

    return list(sentences_of_lines(read_lines(folder / "sanguo.txt"), segment))


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
