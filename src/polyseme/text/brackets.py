r"""Parse text in which one word is marked with brackets: He sat on the [bank] of the river.

    text  ->  text.brackets  ->  language.substitutes, search.similarity, search.sense_data

An empty pair marks a gap. A literal bracket is written \[ or \].
"""

from __future__ import annotations

import re
from typing import NamedTuple

from polyseme.errors import UsageError

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
        what = "no word is marked" if not brackets else "the brackets are not one pair"
        raise UsageError(f"{text!r:.80}: {what}. {_HINT}")
    opening, closing = brackets
    parts = text[: opening.start()], text[opening.end() : closing.start()].strip(), text[closing.end() :]
    marked_text = MarkedText(*(_BRACKET.sub(lambda match: match[1], part) for part in parts))
    if len(marked_text.marked.split()) > 1 and not allow_several_words:
        raise UsageError(f"{marked_text.marked!r:.60} is more than one word. {_HINT}")
    return marked_text
