"""A token with its offsets, and the character classes that all segmentations share.

    text.segment.token  ->  text.segment.english, text.segment.chinese  ->  text.segment

The classes are parts of regular expressions: Han characters, combining marks, emoji. Python's `re` has no
Unicode properties, so they are listed here.

What must not change: `text[token.start:token.end] == token.text`, in code points of the original string.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

# Inside of a character class: Han ideographs with 々, 〇, the Suzhou numerals and the radicals.
HAN = "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"

_PICTURE = "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_PAINT = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*+"  # text or picture style, and skin tones
_REGION = "[\U0001f1e6-\U0001f1ff]"

# One emoji with all its code points: keycaps, flags, tagged flags, skin tones, families joined by U+200D.
EMOJI = (
    "(?:[0-9#*]\ufe0f?\u20e3"
    f"|{_REGION}{_REGION}?+"
    f"|{_PICTURE}{_PAINT}[\U000e0020-\U000e007f]*+(?:\u200d{_PICTURE}{_PAINT})*+)"
)


class Token(NamedTuple):
    """A token and its offsets in the original text, in code points: `text[start:end]`.

    Attributes:
        text: The token, as it is in the original text.
        start: Offset of its first character.
        end: Offset after its last character.

    Example:
        >>> token = polyseme.load("en").tokenize("It's late.", "en")[1]
        >>> token
        Token(text="'s", start=2, end=4)

    """

    text: str
    start: int
    end: int


@cache
def marks() -> str:
    """Return the inside of a character class: characters that belong to the letter before them.

    They are the combining marks of all scripts, the joiners of Persian and Hindi, and the soft hyphen.
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
