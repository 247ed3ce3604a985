"""Measure how many of the characters that `polyseme book` finds in English novels are persons.

    python benchmarks/characters.py FOLDER

FOLDER has the novels of LitBank (original_novels.tar.xz). characters.json lists, for each novel, the names
that were judged by hand: persons (one person, by any name), and others: places, ships, kinds, families.
Of each novel the TOP most frequent names count. Thresholds were set on the novels of the set `design`. A name
that is not judged yet is printed, and counts as wrong.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from polyseme.books.characters import find_characters
from polyseme.text.segment import WordList, split_token_texts
from polyseme.text.segment.discovery import SampledText
from polyseme.text.segment.english_names import discover_names
from polyseme.text.segment.word_list import ListedWord

TOP = 30
JUDGED = Path(__file__).with_name("characters.json")


def list_characters(text: str) -> list[str]:
    """The characters of an English novel, as `polyseme book` finds them without an alias file."""
    sample = SampledText()
    sample.add(text)
    entries = tuple(ListedWord(new.word, new.count, new.tag) for new in discover_names(sample.blocks))
    words = WordList(entries) if entries else None
    return [
        found.name for found in find_characters(split_token_texts(text, "en", words), "en", words, (), TOP)
    ]


def main() -> None:
    """Print the precision of each novel and set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
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
