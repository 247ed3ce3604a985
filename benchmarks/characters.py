"""Measure how many of the characters that `polyseme book` finds in English novels are persons.

    python benchmarks/characters.py FOLDER [--novels zh_four_novels]

FOLDER has the novels of LitBank (original_novels.tar.xz). characters.json lists, for each novel, the names
that were judged by hand: persons (one person, by any name), and others: places, ships, kinds, families.
Of each novel the TOP most frequent names count. Thresholds were set on the novels of the set `design`. A name
that is not judged yet is printed, and counts as wrong.

--novels has four Chinese novels, whose persons are those of novel_persons: how many of their 40 most frequent
names are found, and how many of the 40 most frequent characters are such names. The rules were set on them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from polyseme.books.characters import find_characters
from polyseme.text.segment import WordList, split_token_texts
from polyseme.text.segment.discovery import SampledText, discover_words
from polyseme.text.segment.english_names import discover_names
from polyseme.text.segment.word_list import ListedWord

TOP = 30
JUDGED = Path(__file__).with_name("characters.json")
PERSONS = Path(__file__).with_name("novel_persons")
CHINESE_TOP = 40


def list_characters(text: str) -> list[str]:
    """The characters of an English novel, as `polyseme book` finds them without an alias file."""
    sample = SampledText()
    sample.add(text)
    entries = tuple(ListedWord(new.word, new.count, new.tag) for new in discover_names(sample.blocks))
    words = WordList(entries) if entries else None
    return [
        found.name for found in find_characters(split_token_texts(text, "en", words), "en", words, (), TOP)
    ]


def measure_chinese(text: str, known: set[str]) -> str:
    """How many frequent names are found, and how many of those that are found are names."""
    words = WordList(tuple(ListedWord(new.word, new.count, new.tag) for new in discover_words([text])))
    sentences = list(split_token_texts(text, "zh", words))
    counts = Counter(token for sentence in sentences for token in sentence if token in known)
    found = [character.name for character in find_characters(sentences, "zh", words, (), 10_000)]
    frequent = [name for name, _ in counts.most_common(CHINESE_TOP)]
    missed = [name for name in frequent if name not in found]
    wrong = [name for name in found[:CHINESE_TOP] if name not in known]
    return (
        f"{len(frequent) - len(missed)} of {len(frequent)} frequent names found, not {missed}; "
        f"{CHINESE_TOP - len(wrong)} of {CHINESE_TOP} characters are names, not {wrong}"
    )


def main() -> None:
    """Print the precision of each novel and set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--novels", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder
    for path in sorted(PERSONS.glob("*.txt")) if arguments.novels else ():
        text = (arguments.novels / path.name).read_text("utf-8")
        print(f"{path.stem}: {measure_chinese(text, set(path.read_text('utf-8').split()))}", flush=True)
    found, right = Counter[str](), Counter[str]()
    for title, judged in json.loads(JUDGED.read_text("utf-8")).items():
        names = list_characters(next(folder.glob(f"*_{title}*.txt")).read_text("utf-8"))
        persons = [name for name in names if name in judged["persons"]]
        unknown = [name for name in names if name not in judged["persons"] and name not in judged["others"]]
        found[judged["set"]] += len(names)
        right[judged["set"]] += len(persons)
        wrong = [name for name in names if name in judged["others"]]
        print(
            f"{title}: {len(persons)} of {len(names)} persons; not: {wrong}; not judged: {unknown}",
            flush=True,
        )
    for kind in found:
        print(f"{kind}: {right[kind] / found[kind]:.1%} of {found[kind]} names are persons")


if __name__ == "__main__":
    main()
