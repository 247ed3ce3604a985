"""What was found to the rows of an answer: tokens, usages.

text.segment, search  ->  server.http.rows  ->  server.verbs
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.search.index import Usage
from polyseme.text.segment import Token

Row = dict[str, Any]


def token_rows(sentences: Sequence[Sequence[Token]]) -> list[Row]:
    """Tokens with their places, and the number of the sentence that each stands in."""
    return [
        {"text": token.text, "start": token.start, "end": token.end, "sentence": number}
        for number, sentence in enumerate(sentences)
        for token in sentence
    ]


def usage_row(usage: Usage) -> Row:
    """A usage with its sentence and location; of the path of its document only the name."""
    return {
        "word": usage.word,
        "sentence": usage.sentence,
        "start": usage.start,
        "stop": usage.stop,
        "document": Path(usage.document).name,
        "line": usage.line,
    }


def near_row(usage: Usage) -> Row:
    """A usage that was found, and how near it is."""
    return usage_row(usage) | {"cosine": usage.cosine}
