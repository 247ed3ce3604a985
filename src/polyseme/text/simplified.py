"""Read traditional Chinese characters as simplified ones.

    text.simplified  ->  text.segment.chinese, text.vocab, text.chars

One character becomes one character, so offsets stay as they are. The table, traditional.txt, is that of
OpenCC (TSCharacters, Apache 2.0), with the first simplified form of each character, and without characters
that simplified text uses, too (乾 in 乾隆): simplified text is not changed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]


def simplify(text: str) -> str:
    """Replace the traditional characters of a text; the result has the same length.

    Example:
        >>> simplify("經濟")
        '经济'

    """
    return text.translate(_table())


def simplify_codes(codes: Codes) -> Codes:
    """Replace traditional characters in an array of code points."""
    traditional, simplified = _code_table()
    positions = np.searchsorted(traditional, codes).clip(max=len(traditional) - 1)
    return np.where(traditional[positions] == codes, simplified[positions], codes)


@cache
def _table() -> dict[int, str]:
    traditional, simplified = _read_lines()
    return str.maketrans(traditional, simplified)  # type: ignore[return-value]  # code points to characters


@cache
def _code_table() -> tuple[Codes, Codes]:
    pairs = sorted(zip(*(map(ord, line) for line in _read_lines()), strict=True))
    columns = np.array(pairs, np.uint32).T
    return columns[0], columns[1]


def _read_lines() -> tuple[str, str]:
    """The traditional characters, and their simplified forms in the same order."""
    text = (files("polyseme") / "text" / "traditional.txt").read_text(encoding="utf-8")
    traditional, simplified = text.split()
    return traditional, simplified
