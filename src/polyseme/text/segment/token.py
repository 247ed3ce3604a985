"""A token with its place, and the classes of characters that all segmentations share.

    text.segment.token  ->  text.segment.english, text.segment.chinese  ->  text.segment

Comes in: nothing. Goes out: `Token`, and pieces of regular expressions: Han characters, combining
marks, emoji. Python's `re` knows no Unicode properties, so the classes are spelled out here, once.

What must not change: `text[token.start:token.end] == token.text`, in code points of the original string.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

# The inside of a character class: Han ideographs with 々, 〇, the Suzhou numerals and the radicals.
HAN = "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"

_PICTURE = "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_PAINT = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*+"  # text or picture, and the colour of the skin
_REGION = "[\U0001f1e6-\U0001f1ff]"

# One emoji with all that belongs to it: keycaps, flags, tagged flags, skin tones, families held by joiners.
EMOJI = (
    "(?:[0-9#*]\ufe0f?\u20e3"
    f"|{_REGION}{_REGION}?+"
    f"|{_PICTURE}{_PAINT}[\U000e0020-\U000e007f]*+(?:\u200d{_PICTURE}{_PAINT})*+)"
)


class Token(NamedTuple):
    """A token and where it stands: `text[start:end]`, counted in code points."""

    text: str
    start: int
    end: int


@cache
def marks() -> str:
    """Return the inside of a character class: what stays with the letter before it.

    These are the combining marks of all scripts, the joiners of Persian and Hindi, and the soft hyphen.
    """
    ranges: list[list[int]] = [[0xAD, 0xAD], [0x200C, 0x200D]]
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if unicodedata.category(chr(code))[0] != "M":
            continue
        if ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
