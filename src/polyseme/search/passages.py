"""Find the passages of a text that a question is about.

    text.function_words, elmo  ->  search.passages  ->  tasks.answers

Passages are ranked by BM25 (Robertson and Zaragoza 2009) over words, their stems and Chinese characters. If
none shares a word with the question, they are ranked by the cosine of pooled vectors; beside shared words,
the cosine did not help on SQuAD and DRCD. N passages, H values of a vector.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from polyseme.text.function_words import is_content_word

SATURATION, LENGTH_SHARE = 1.2, 0.75  # k1 and b of BM25
STEM = 4  # letters that words with the same stem share

Pool = Callable[[list[list[str]]], NDArray[np.float32]]  # token lists to vectors (N, H)


@lru_cache(maxsize=100_000)
def is_telling(token: str) -> bool:
    """Whether a token says what a text is about: a content word, or a number."""
    return is_content_word(token) or token.isdigit()


def list_stems(token: str) -> list[str]:
    """What a word in lower case shares with related ones: its first letters, or its Chinese characters."""
    if token.isascii():
        return [token[:STEM]] if len(token) >= STEM else []
    return [letter for letter in token if letter > "\u2e7f" and letter.isalpha()] or [token[:STEM]]


def list_terms(tokens: Iterable[str]) -> list[str]:
    """The terms of a text: content words, numbers, and the stems of words."""
    lowered = [token.lower() for token in tokens]
    telling = [token for token in lowered if is_telling(token)]
    return [*telling, *(f"{stem}-" for token in telling for stem in list_stems(token))]


class PassageIndex:
    """Passages by their terms.

    Args:
        passages: The tokens of each.
        pool: Turns token lists into vectors, for questions that share no word; None ranks by words alone.

    """

    def __init__(self, passages: Sequence[Sequence[str]], pool: Pool | None = None) -> None:
        self._passages, self._pool = passages, pool
        self._units: NDArray[np.float32] | None = None  # vectors of the passages, once they are needed
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for number, tokens in enumerate(passages):
            counts = Counter(list_terms(tokens))
            lengths.append(counts.total())
            for term, count in counts.items():
                self._postings[term].append((number, count))
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms = [SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / mean) for length in lengths]

    def rank(self, question: Sequence[str], count: int) -> list[tuple[int, float]]:
        """The best passages for a question, with their scores, best first.

        Args:
            question: Its tokens.
            count: How many passages to return, at most.

        """
        scores: defaultdict[int, float] = defaultdict(float)
        for term in dict.fromkeys(list_terms(question)):
            postings = self._postings.get(term, ())
            weight = math.log(1 + (len(self._passages) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, times in postings:
                scores[number] += weight * times * (SATURATION + 1) / (times + self._norms[number])
        ranked = scores.items() if scores else enumerate(self._compare(question))
        return sorted(ranked, key=lambda item: (-item[1], item[0]))[:count]

    def _compare(self, question: Sequence[str]) -> list[float]:
        """The cosine of each passage and a question; 0 without vectors."""
        if self._pool is None or not self._passages:
            return [0.0] * len(self._passages)
        if self._units is None:
            self._units = _scale(self._pool([list(tokens) for tokens in self._passages]))
        cosines: list[float] = (self._units @ _scale(self._pool([list(question)]))[0]).tolist()
        return cosines


def _scale(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors (N, H) scaled to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
