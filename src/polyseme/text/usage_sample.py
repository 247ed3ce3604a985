"""Choose sentences of a text so that every word is sampled evenly over all of it.

    counts of words, sentences in order  ->  text.usage_sample  ->  word_vectors, training.report

A word with few usages is taken at all of them, a frequent one at `max_usages`, spread evenly: after any part
of the text a word has had its share. A sentence that is taken for one word counts for all its words, so that
few sentences are needed. One pass, in order, the same each time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

Word = TypeVar("Word", bound=Hashable)
_SIZES = (400, 200, 100, 50, 20, 10, 5)  # usages of a word that are tried, the most first


class UsageSample(Generic[Word]):
    """Decides for each sentence of a text whether to take it.

    Args:
        counts: How often each word occurs in the text; other words do not matter.
        max_usages: How many usages of a word to take, at least, if it has as many.

    """

    def __init__(self, counts: Mapping[Word, int], max_usages: int) -> None:
        self._shares = {word: min(1.0, max_usages / count) for word, count in counts.items()}
        self._due = dict.fromkeys(counts, 0.0)  # usages that should have been taken, minus those that were

    def take(self, sentence: Iterable[Word]) -> bool:
        """Whether to take the next sentence."""
        due, shares = self._due, self._shares
        known = [word for word in sentence if word in due]
        is_taken = False
        for word in known:
            due[word] += shares[word]
            is_taken = is_taken or due[word] >= 1 - 1e-9
        if is_taken:
            for word in known:
                due[word] -= 1
        return is_taken


def choose_sentences(
    sentences: Sequence[Sequence[Word]], counts: Mapping[Word, int], max_tokens: int
) -> list[int]:
    """Choose sentences with as many usages of every word as fit into a number of tokens.

    Args:
        sentences: The sentences, as words.
        counts: The words that matter, and how often they occur in the sentences.
        max_tokens: How many tokens to take, about; rare words are left out if they do not fit.

    Returns:
        The positions of the sentences, ascending; all of them if they fit.

    """
    lengths = [len(sentence) for sentence in sentences]
    if sum(lengths) <= max_tokens:
        return list(range(len(sentences)))
    chosen: list[int] = []
    for max_usages, min_count in [
        *((size, 1) for size in _SIZES),
        *((5, 2**power) for power in range(3, 30)),
    ]:
        frequent = {word: count for word, count in counts.items() if count >= min_count}
        sample = UsageSample(frequent, max_usages)
        chosen, tokens = [], 0
        for position, sentence in enumerate(sentences):
            if sample.take(sentence):
                chosen.append(position)
                tokens += lengths[position]
                if tokens > max_tokens:
                    break
        else:
            return chosen
    return chosen
