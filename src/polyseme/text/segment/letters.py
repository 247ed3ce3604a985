"""Split text into single characters: the residues of a protein, the letters of any script.

    text.segment.token  ->  text.segment.letters  ->  text.segment

A line is a sentence. Combining marks stay with their letter, and an emoji is one token.
"""

from __future__ import annotations

import re
from functools import cache

from polyseme.text.segment.token import EMOJI, marks


def split_letters(text: str) -> list[str]:
    """Split text into single characters, without white space."""
    if text.isascii():
        return list("".join(text.split()))
    return _letters().findall(text)


@cache
def _letters() -> re.Pattern[str]:
    return re.compile(rf"{EMOJI}|\S[{marks()}]*+")
