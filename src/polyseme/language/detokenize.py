"""Join tokens to readable text: the reverse of text.segment, as far as spaces can be inferred.

    language.generation, tasks.tagging  ->  language.detokenize  ->  text

Han characters, kana and their punctuation take no spaces. Western punctuation and the second halves of don't
and it's attach to the word before, opening brackets to the word after. Straight quotes open and close in
turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from polyseme.text.segment.token import HAN

# Han, kana, the punctuation of both, and full-width forms.
_WIDE = re.compile(f"[{HAN}\u3000-\u303f\u3040-\u30ff\uff00-\uffef]")
_WIDE_BESIDE_WIDE = frozenset("“”‘’…—·")  # these are Chinese only between Chinese
_CLOSING = re.compile(r"[.,;:!?)\]}%…”’»›。，、；：！？]+|''|['’](?:s|S|d|m|re|ve|ll)|n['’]t|N['’]T")
_OPENING = frozenset([*"([{“‘«‹$£€#¿¡", "``"])
_STRAIGHT_QUOTES = frozenset("\"'")


def join_tokens(tokens: Iterable[str], before: str = "") -> str:
    """Join tokens to text that continues the text `before`.

    Args:
        tokens: The tokens.
        before: Text that the result is appended to; the result starts with a space if one belongs between.

    Example:
        >>> join_tokens(["He", "did", "n't", "go", "."])
        "He didn't go."

    """
    parts: list[str] = []
    last = before.split()[-1] if before.split() else ""
    after_space = before[-1:].isspace()
    open_quotes = {quote for quote in _STRAIGHT_QUOTES if _count_quotes(before, quote) % 2}
    attach_next = _is_opened(last, open_quotes, before)
    for token in tokens:
        is_closing = token in open_quotes
        if last and not after_space and not attach_next and not is_closing and not _is_attached(last, token):
            parts.append(" ")
        parts.append(token)
        attach_next = token in _OPENING
        if token in _STRAIGHT_QUOTES:
            attach_next = not is_closing
            open_quotes ^= {token}
        last, after_space = token, False
    return "".join(parts)


def _is_attached(left: str, right: str) -> bool:
    """Whether there is no space between two tokens."""
    if _CLOSING.fullmatch(right):
        return True
    if _WIDE.search(left[-1]) or _WIDE.search(right[0]):
        return True
    return left[-1] in _WIDE_BESIDE_WIDE and right[0] in _WIDE_BESIDE_WIDE


def _is_opened(last: str, open_quotes: set[str], before: str) -> bool:
    """Whether the text `before` ends with an opening bracket or quote."""
    if before[-1:].isspace():
        return False
    return last[-1:] in _OPENING or last[-1:] in open_quotes


def _count_quotes(text: str, quote: str) -> int:
    """How many quotes of a text are not apostrophes."""
    return len(re.findall(rf"(?<!\w){quote}|{quote}(?!\w)", text))
