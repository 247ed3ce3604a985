"""The verb about words: nearest.

api  ->  cli.words  ->  a person's terminal
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from polyseme.cli.options import AsJson


def nearest(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model trained here, or en-classic or zh-classic; or a file."),
    ],
    word: Annotated[str, typer.Argument(help="The word to look at.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many words.")] = 10,
    min_count: Annotated[int, typer.Option(min=1, help="Only words with so many usages.")] = 1,
    min_chars: Annotated[int, typer.Option(min=1, help="Only words of so many characters.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Print the words nearest to a word, by the mean of their contextual vectors."""
    from polyseme import open_words

    words = open_words(model)
    found = words.nearest(word, k, min_count=min_count, min_chars=min_chars)
    if as_json:
        rows = [{"word": near, "cosine": cosine, "count": words.count(near)} for near, cosine in found]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for near, cosine in found:
        print(f"{cosine:.3f}\t{words.count(near)}\t{near}")
