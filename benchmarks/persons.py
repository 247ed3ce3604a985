"""Who stands beside whom in 三国演义: how many of the ten words nearest to a person are persons.

    a model, sanguo.txt, sanguo_entity_dict.json  ->  mean contextual vectors  ->  a share, and examples

Persons are the names of the type 人名 and what they are called by (`mention`), words of at least two
characters. Judged are the FREQUENT most frequent of them; their neighbours are words of at least two
characters with COUNT usages or more.

    python benchmarks/persons.py MODEL FOLDER [--layer top]
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any

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
    given = parser.parse_args()
    import polyseme

    layer = int(given.layer) if given.layer.isdecimal() else given.layer
    share, near = share_of_persons(polyseme.load(given.model), given.folder, layer)
    print(f"{share:.3f} of the ten nearest words of the {len(near)} most frequent persons are persons")
    for person in islice(near, 10):
        print(person, *near[person])


def share_of_persons(elmo: Any, folder: Path, layer: str | int = "top") -> tuple[float, dict[str, list[str]]]:
    """The share of persons among the nearest words of frequent persons, and these words by person."""
    import polyseme
    from polyseme.text.reading import read_lines
    from polyseme.text.stream import sentences_of_lines

    sentences = list(sentences_of_lines(read_lines(folder / "sanguo.txt"), elmo.config.segment))
    vectors = polyseme.mean_vectors(elmo, sentences, layer=layer, min_count=COUNT)
    return judge(vectors, folder)


def word2vec_share(folder: Path, segment: str, *, sg: int, epochs: int) -> float | None:
    """The share by word2vec of the same sentences, 256 dimensions; None where gensim is not installed."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        return None
    import numpy as np

    from polyseme.text.reading import read_lines
    from polyseme.text.stream import sentences_of_lines
    from polyseme.words import WordVectors

    sentences = list(sentences_of_lines(read_lines(folder / "sanguo.txt"), segment))
    trained = Word2Vec(
        sentences, vector_size=256, min_count=COUNT, sg=sg, epochs=epochs, seed=1, workers=2
    ).wv
    counts = np.array([trained.get_vecattr(word, "count") for word in trained.index_to_key])
    plain = np.zeros(256, np.float32)
    return judge(WordVectors(tuple(trained.index_to_key), counts, trained.vectors, plain), folder)[0]


def judge(vectors: Any, folder: Path) -> tuple[float, dict[str, list[str]]]:
    """The share of persons among the nearest words of frequent persons, and these words by person."""
    persons = names(folder / "sanguo_entity_dict.json")
    frequent = list(islice((word for word in vectors.words if word in persons), FREQUENT))
    near = {
        person: [word for word, _ in vectors.nearest(person, NEAREST, min_chars=2)] for person in frequent
    }
    shares = [sum(word in persons for word in words) / len(words) for words in near.values()]
    return sum(shares) / len(shares), near


def names(path: Path) -> set[str]:
    """Names of persons, and what they are called by, of at least two characters."""
    known = json.loads(path.read_text(encoding="utf-8"))
    types: dict[str, str] = known["type"]
    persons = {name for name, kind in types.items() if kind == "人名"}
    called = {word for name in persons for word in known["mention"].get(name, ())}
    return {name for name in persons | called if len(name) >= 2}


if __name__ == "__main__":
    main()
