"""Read traditional Chinese characters as simplified ones.

    text.simplified  ->  text.segment.chinese, text.vocab, text.chars

One character becomes one character, so offsets stay as they are. The table, traditional.txt, is that of
OpenCC (TSCharacters, Apache 2.0), with the first simplified form of each character, and without characters
that simplified text uses, too (乾 in 乾隆): simplified text is not changed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


def simplify(text: str) -> str:
    """Replace the traditional characters of a text; the result has the same length.

    Example:
        >>> simplify("經濟")
        '经济'

    """
    return text.translate(_make_table())


def pair_characters() -> list[tuple[str, str]]:
    """The traditional characters, each with its simplified form."""
    return list(zip(*_read_lines(), strict=True))


@cache
def _make_table() -> dict[int, str]:
    traditional, simplified = _read_lines()
    return str.maketrans(traditional, simplified)  # type: ignore[return-value]  # code points to characters


def _read_lines() -> tuple[str, str]:
    """The traditional characters, and their simplified forms in the same order."""
    text = (files("polyseme") / "text" / "traditional.txt").read_text(encoding="utf-8")
    traditional, simplified = text.split()
    return traditional, simplified
