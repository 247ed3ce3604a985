r"""Parse JSON and numbers of unknown origin.

    text  ->  json_text  ->  config, io.checked, text.corpus.documents, tasks.data, search

JSON can write half a character (`"\ud83d"`). Python reads it, and fails much later, when that text is
written, printed or sent; here it becomes U+FFFD, as in other damaged text.
"""

from __future__ import annotations

import json
from typing import Any

MAX_DIGITS = 18  # of a number that fits into 64 bits


def parse_digits(text: str) -> int | None:
    """The number that at most 18 digits 0 to 9 write; None for all else.

    `str.isdigit` is true of `²`, which `int` refuses, as it refuses thousands of digits.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def parse_json(text: str | bytes) -> Any:
    r"""Parse a JSON value; text that no encoding can represent becomes U+FFFD.

    Raises:
        ValueError: It is not JSON; of bytes: not UTF-8.
        RecursionError: It is nested too deeply.

    Example:
        >>> parse_json(r'["\ud83d\ude00", "\ud83d!"]')
        ['😀', '\ufffd!']

    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    value = json.loads(text)
    if "\\ud" not in text and "\\uD" not in text:
        return value
    whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(whole.decode("utf-16-le", "replace"))
