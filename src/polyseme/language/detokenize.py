"""Tokens to readable text: the other way round from text.segment, as far as it can be told.

    language.generation  ->  language.detokenize  ->  people

Han characters, kana and their punctuation stand without spaces; Western punctuation and the second halves
of don't and it's go with the word before them, opening brackets with the word behind them. Straight quotes
open and close in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from polyseme.text.segment.token import HAN

# Han, kana, the punctuation of both, and the wide forms.
_WIDE = re.compile(f"[{HAN}\u3000-\u303f\u3040-\u30ff\uff00-\uffef]")
_WIDE_BESIDE_WIDE = frozenset("“”‘’…—·")  # these are Chinese only between Chinese
_CLOSES = re.compile(r"[.,;:!?)\]}%…”’»›。，、；：！？]+|''|['’](?:s|S|d|m|re|ve|ll)|n['’]t|N['’]T")
_OPENS = frozenset([*"([{“‘«‹$£€#¿¡", "``"])
_IN_TURN = frozenset("\"'")


def join(tokens: Iterable[str], before: str = "") -> str:
    """`tokens` as text that goes on after the text `before`, with the space between them, if one belongs."""
    parts: list[str] = []
    last = before.split()[-1] if before.split() else ""
    spaced = before[-1:].isspace()
    open_quotes = {quote for quote in _IN_TURN if _stand_alone(before, quote) % 2}
    glued = _opens(last, open_quotes, before)
    for token in tokens:
        closing = token in open_quotes
        if last and not spaced and not glued and not closing and not _touch(last, token):
            parts.append(" ")
        parts.append(token)
        glued = token in _OPENS
        if token in _IN_TURN:
            glued = not closing
            open_quotes ^= {token}
        last, spaced = token, False
    return "".join(parts)


def _touch(left: str, right: str) -> bool:
    """Whether no space stands between two tokens."""
    if _CLOSES.fullmatch(right):
        return True
    wide = bool(_WIDE.search(left[-1])), bool(_WIDE.search(right[0]))
    if any(wide):
        return True
    return left[-1] in _WIDE_BESIDE_WIDE and right[0] in _WIDE_BESIDE_WIDE


def _opens(last: str, open_quotes: set[str], before: str) -> bool:
    """Whether the text `before` ends in something that holds on to what follows."""
    if before[-1:].isspace():
        return False
    return last[-1:] in _OPENS or last[-1:] in open_quotes


def _stand_alone(text: str, quote: str) -> int:
    """How many quotes of a text are no apostrophes."""
    return len(re.findall(rf"(?<!\w){quote}|{quote}(?!\w)", text))
