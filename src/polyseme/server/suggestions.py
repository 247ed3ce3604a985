"""Suggestions for the explorer: the language of a model, and words and sentences of an index.

    server.catalog  ->  server.suggestions  ->  /info, the explorer

Suggestions come from the index itself: a word that its corpus lacks would only give an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from polyseme.search.index import Index

LANGUAGE_WORDS = 500  # most frequent words, from which the language is guessed
ENGLISH = {"the", "of", "and"}
AMBIGUOUS = ("将", "意", "道", "bank", "spirit", "fair")  # good examples, if a corpus has them
EXAMPLES, MIN_USAGES = 3, 10  # number of examples, and of usages that each needs
MIN_LETTERS, MIN_CHARACTERS = 5, 2  # ASCII and other scripts: shorter words are mostly function words
TRIED = 50  # usages whose sentences are looked at
READABLE = {True: (8, 40), False: (30, 120)}  # characters of a sentence, of Chinese and other words
HAN, KANA = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[\u3040-\u30ff]")


def guess_language(segment: str, words: Sequence[str]) -> str | None:
    """Chinese (zh) or English (en), by the segmentation or else by words, most frequent first; or None."""
    if segment in ("zh", "en"):
        return segment
    frequent = words[:LANGUAGE_WORDS]
    if sum(bool(HAN.search(word)) for word in frequent) > len(frequent) / 3:
        return None if any(map(KANA.search, frequent)) else "zh"
    return "en" if set(frequent) >= ENGLISH else None


def suggest_examples(index: Index) -> dict[str, list[str]]:
    """Words of an index, known ambiguous ones first, and a sentence for each."""
    words = [word for word in AMBIGUOUS if word in index.words and index.words.count(word) >= MIN_USAGES]
    frequent = filter(_is_content_word, list_words_by_frequency(index))
    words = [*words, *islice((word for word in frequent if word not in words), EXAMPLES)][:EXAMPLES]
    return {"words": words, "texts": [_choose_sentence(index, word) for word in words]}


def _choose_sentence(index: Index, word: str) -> str:
    """A sentence of readable length with a word, from the middle of the corpus."""
    numbers = index.usage_numbers(word)
    middle = numbers[len(numbers) // 2 :][:TRIED]
    sentences = [index.usage(number).sentence for number in middle.tolist()]
    shortest, longest = READABLE[HAN.search(word) is not None]
    readable = (sentence for sentence in sentences if shortest <= len(sentence) <= longest)
    return next(readable, sentences[0])


def list_words_by_frequency(index: Index) -> list[str]:
    """Words with enough usages, most frequent first."""
    counts = index.words.counts
    order = (-counts).argsort(kind="stable")
    return [index.words.words[row] for row in order if counts[row] >= MIN_USAGES]


def _is_content_word(word: str) -> bool:
    """Whether a word consists of letters and is probably not a function word."""
    return word.isalpha() and len(word) >= (MIN_LETTERS if word.isascii() else MIN_CHARACTERS)
