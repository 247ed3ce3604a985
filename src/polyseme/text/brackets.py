r"""Find the word that is meant in a sentence: the one in brackets, at a position, or the only one.

    text  ->  text.brackets  ->  language.substitutes, search.similarity, search.sense_data, search.index

Example: He sat on the [bank] of the river. An empty pair of brackets marks a gap. A literal bracket is
written \[ or \].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from polyseme.errors import UsageError, WordPositionError

_BRACKET = re.compile(r"\\([\[\]])|([\[\]])")
_HINT = "Put one word in brackets: He sat on the [bank] . (a literal bracket is \\[ or \\])"


class MarkedText(NamedTuple):
    """Text around a marked word."""

    before: str
    marked: str
    after: str


def parse_brackets(text: str, *, allow_several_words: bool = False) -> MarkedText:
    r"""Split text at its one pair of brackets.

    Args:
        text: Text with one pair of brackets.
        allow_several_words: Accept more than one word in the brackets.

    Returns:
        What is before, inside and after the brackets, without the backslashes of literal brackets. What is
        inside is stripped, and empty for a gap.

    Raises:
        UsageError: There is no pair of brackets, more than one, or more than one word inside.

    Example:
        >>> parse_brackets(r"the [bank] \[1\]")
        MarkedText(before='the ', marked='bank', after=' [1]')

    """
    brackets = [match for match in _BRACKET.finditer(text) if match[2]]
    if [match[2] for match in brackets] != ["[", "]"]:
        problem = "no word is marked" if not brackets else "the brackets are not one pair"
        raise UsageError(f"{text!r:.80}: {problem}. {_HINT}")
    opening, closing = brackets
    parts = text[: opening.start()], text[opening.end() : closing.start()].strip(), text[closing.end() :]
    marked_text = MarkedText(*(_BRACKET.sub(lambda match: match[1], part) for part in parts))
    if len(marked_text.marked.split()) > 1 and not allow_several_words:
        raise UsageError(f"{marked_text.marked!r:.60} is more than one word. {_HINT}")
    return marked_text


class WordInSentence(NamedTuple):
    """The tokens of a sentence, and the position of a word among them, from 0."""

    tokens: list[str]
    position: int


def split_at_brackets(text: str, segment: Callable[[str], list[str]]) -> WordInSentence:
    """Split a sentence into tokens; the word in brackets, which may be empty, stays one token."""
    before, word, after = parse_brackets(text)
    left = segment(before)
    return WordInSentence([*left, word, *segment(after)], len(left))


def locate_word(
    word: str,
    sentence: str | Sequence[str],
    segment: Callable[[str], list[str]],
    *,
    which: int | None = None,
    position: int | None = None,
) -> WordInSentence:
    """Find a word in a sentence.

    Args:
        word: The word.
        sentence: The sentence, in which [brackets] may mark the word; or its tokens.
        segment: Splits text into tokens.
        which: If the word occurs several times: which one, from 1.
        position: With tokens: the position of the word, from 0.

    Raises:
        WordPositionError: The word is not in the sentence, or occurs several times and neither `which` nor
            `position` says which one is meant.
        UsageError: `position` was passed with a string.

    """
    if isinstance(sentence, str):
        if position is not None:
            raise UsageError("`position` needs tokens: pass the sentence as a list of them.")
        if f"[{word}]" in sentence and which is None:
            return split_at_brackets(sentence, segment)
        tokens = segment(sentence)
    else:
        tokens = list(sentence)
    positions = [number for number, token in enumerate(tokens) if token == word]
    if position is not None:
        if position not in positions:
            raise WordPositionError(f"{word!r} is not the token at position {position}.", len(positions))
        return WordInSentence(tokens, position)
    if not positions:
        raise WordPositionError(
            f"{word!r} is not in the sentence, whose tokens are: {' '.join(tokens)}. If they are split "
            f"wrongly, mark the word: [{word}].",
            0,
        )
    if len(positions) > 1 and which is None:
        raise WordPositionError(
            f"{word!r} occurs {len(positions)} times in the sentence: say which one with `which=1` to "
            f"`which={len(positions)}`, or mark it: [{word}].",
            len(positions),
        )
    if which is not None and not 1 <= which <= len(positions):
        raise WordPositionError(
            f"which is {which}, but {word!r} occurs {len(positions)} times in the sentence.", len(positions)
        )
    return WordInSentence(tokens, positions[(which or 1) - 1])
