"""What a visitor may begin with: the language of a model, and words and sentences of an index.

    server.catalog  ->  server.suggestions  ->  /info, the explorer

An example that the corpus does not know would only be answered with an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from polyseme.search.index import Index

LOOKED_AT = 500  # frequent words that tell the language
ENGLISH = {"the", "of", "and"}
AMBIGUOUS = ("将", "意", "道", "bank", "spirit", "fair")  # good examples, where a corpus has them
WORDS, ENOUGH = 3, 10  # examples, and the usages that a word needs
LONG, SHORT = 5, 2  # letters, and characters of other scripts: what is shorter is mostly grammar
HAN, KANA = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[\u3040-\u30ff]")


def language_of(segment: str, words: Sequence[str]) -> str | None:
    """Chinese (zh) or English (en), by the segmentation, or else by words, frequent ones first; or None."""
    if segment in ("zh", "en"):
        return segment
    some = words[:LOOKED_AT]
    if sum(bool(HAN.search(word)) for word in some) > len(some) / 3:
        return None if any(map(KANA.search, some)) else "zh"
    return "en" if set(some) >= ENGLISH else None


def examples_of(index: Index) -> dict[str, list[str]]:
    """Words of an index, those that are known for their senses first, and a sentence for each."""
    words = [word for word in AMBIGUOUS if word in index.words and index.words.count(word) >= ENOUGH]
    others = (word for word in by_frequency(index) if word not in words and _tells(word))
    words = [*words, *islice(others, WORDS)][:WORDS]
    rows = [index.usage_numbers(word) for word in words]
    return {
        "words": words,
        "texts": [index.usage(int(some[len(some) // 2])).sentence for some in rows],
    }


def by_frequency(index: Index) -> list[str]:
    """The words with enough usages, the most frequent first."""
    counts = index.words.counts
    order = (-counts).argsort(kind="stable")
    return [index.words.words[row] for row in order if counts[row] >= ENOUGH]


def _tells(word: str) -> bool:
    """Whether a word is one of letters, and probably not one of grammar."""
    return word.isalpha() and len(word) >= (LONG if word.isascii() else SHORT)
