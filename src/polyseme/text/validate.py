"""Text as a caller gives it: strings, lists of strings or of tokens; all else is refused with its place.

embedder, layer, words, language  ->  text.validate
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from polyseme.errors import UsageError

Sentence = TypeVar("Sentence")


def checked_text(text: str) -> str:
    """`text` if it is a string."""
    if not isinstance(text, str):
        raise UsageError(f"text is of type {type(text).__name__}, expected a string.")
    return text


def checked_list(sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """`sentences` if they are a list or the like; a generator would be used up, a number is no text."""
    if isinstance(sentences, bytes) or not isinstance(sentences, Sequence):
        advice = " Say list(…)." if isinstance(sentences, Iterable) else ""
        raise UsageError(f"sentences is of type {type(sentences).__name__}, expected a list.{advice}")
    return sentences


def checked_tokens(sentence: object, number: int) -> list[str]:
    """`sentence` as a list of tokens, each a word without white space."""
    if isinstance(sentence, str):
        raise UsageError(
            f"sentence {number} is the string {sentence!r:.60}, expected a list of tokens. Split it, or use "
            "Elmo.embed, which takes strings."
        )
    if isinstance(sentence, bytes) or not isinstance(sentence, Sequence):
        raise UsageError(f"sentence {number} is {sentence!r:.60}, expected a string or a list of tokens.")
    for place, token in enumerate(sentence):
        if not isinstance(token, str):
            raise UsageError(f"token {place} of sentence {number} is {token!r:.60}, expected a string.")
        if token.split() != [token]:
            what = "is empty" if not token.strip() else f"holds white space ({token!r:.60})"
            raise UsageError(
                f"token {place} of sentence {number} {what}. A token is one word: pass whole sentences as "
                "strings, and join the parts of a word with another character."
            )
    return list(sentence)
