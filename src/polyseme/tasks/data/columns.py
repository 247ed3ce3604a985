"""Files of tagged sentences: CoNLL's columns, CoNLL-U, and word/tag lines.

    text.reading  ->  tasks.data.columns  ->  tasks.examples

Comes in: the lines of a file; a blank line ends a sentence. Goes out: `Tagged`, a sentence with the line of
each word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from polyseme.errors import DataError, UsageError
from polyseme.text.conllu import COLUMNS as CONLLU
from polyseme.text.conllu import read_conllu
from polyseme.text.reading import Line, expand_path

DOCUMENT = "-DOCSTART-"
NUMBER = re.compile(r"-?[0-9]+")


class Tagged(NamedTuple):
    """A sentence: words, their tags (none where a file has no such column), and where each stands."""

    words: list[str]
    tags: list[str]
    places: list[str]


def tagged_kind(path: str | Path, lines: Sequence[Line], asked: str) -> str:
    """The format of a file: as asked for, or by its name and its first line."""
    if asked != "auto":
        return asked
    if Path(expand_path(path)).name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".conllu"):
        return "conllu"
    first = next((line.text for line in lines if line.text.strip()), "")
    words = first.split()
    slashed = len(words) > 1 and "\t" not in first and all("/" in word[1:] for word in words)
    return "slashed" if slashed else "columns"


def width_of(lines: Sequence[Line], kind: str) -> int:
    """How many columns a tagged file has, by its first line; 0 where tags stand behind a slash."""
    if kind == "slashed":
        return 0
    rows = (line for line in lines if line.text.strip() and not line.text.startswith((DOCUMENT, "#")))
    return next((len(CONLLU) if kind == "conllu" else len(_fields(line)) for line in rows), 0)


def check_width(path: str | Path, width: int, known: int | None) -> None:
    """Refuse columns that are neither those of training, nor these without a tag, nor words alone."""
    if known and width not in (1, known - 1, known):
        raise DataError(
            f"{path}: {width} columns, the training file had {known} (the tag may be missing). "
            "If it is plain text, say --raw."
        )


def read_tagged(
    lines: Sequence[Line], kind: str, word: str | int, tag: str | int, *, tags: bool = True
) -> Iterator[Tagged]:
    """The sentences of a file; without `tags` there may be none in it."""
    if kind == "slashed":
        yield from _slashed(lines, tags=tags)
        return
    if kind == "conllu":
        for sentence in read_conllu(lines):
            yield _sentence(sentence.words, kind, word, tag, tags=tags)
        return
    if kind != "columns":
        raise UsageError(f"Tagging does not read {kind}. Set data.format to columns, conllu, slashed.")
    rows: list[tuple[str, list[str]]] = []
    width = 0
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith(DOCUMENT):
            if rows:
                yield _sentence(rows, kind, word, tag, tags=tags)
            rows = []
        else:
            fields = _fields(line)
            width = width or len(fields)
            if len(fields) != width:
                raise DataError(
                    f"{line.source}:{line.number}: {len(fields)} columns, expected {width} as before. "
                    "Is a column empty, or a blank line between two sentences missing?"
                )
            rows.append((f"{line.source}:{line.number}", fields))
    if rows:
        yield _sentence(rows, kind, word, tag, tags=tags)


def _fields(line: Line) -> list[str]:
    """Columns are separated by tabs where there are any, else by white space."""
    text = line.text.rstrip("\r")
    return text.split("\t") if "\t" in text else text.split()


def _sentence(
    rows: Sequence[tuple[str, list[str]]], kind: str, word: str | int, tag: str | int, *, tags: bool
) -> Tagged:
    found = Tagged([], [], [])
    word = "form" if kind == "conllu" and word == 0 else word
    tag = "upos" if kind == "conllu" and tag == -1 else tag
    for place, fields in rows:
        text = _column(fields, word, kind, place).strip()
        if not text:
            raise DataError(f"{place}: the word is empty.")
        found.words.append("_".join(text.split()))  # CoNLL-U allows spaces within a word
        found.places.append(place)
        if tags:
            if len(fields) == 1:
                raise DataError(f"{place}: 1 column, expected a word and its tag.")
            found.tags.append(_column(fields, tag, kind, place).strip())
            if not found.tags[-1]:
                raise DataError(f"{place}: the tag is empty. Write O, or what else stands for none.")
    return found


def _column(fields: list[str], which: str | int, kind: str, place: str) -> str:
    if isinstance(which, str) and NUMBER.fullmatch(which):
        which = int(which)
    if isinstance(which, str):
        if kind != "conllu" or which not in CONLLU:
            known = f"a name of CoNLL-U ({', '.join(CONLLU)})" if kind == "conllu" else "a number"
            raise UsageError(f"data.word and data.tag: {which!r} is no column here, expected {known}.")
        which = CONLLU.index(which)
    if not -len(fields) <= which < len(fields):
        raise DataError(f"{place}: {len(fields)} columns, but column {which} is asked for.")
    return fields[which]


def _slashed(lines: Sequence[Line], *, tags: bool) -> Iterator[Tagged]:
    """`word/tag word/tag`, a sentence a line; words alone where no `tags` are needed."""
    for line in lines:
        place = f"{line.source}:{line.number}"
        if not tags and not all("/" in entry[1:] for entry in line.text.split()):
            words = line.text.split()
            yield Tagged(words, [], [place] * len(words))
            continue
        parts = [entry.rpartition("/") for entry in line.text.split()]
        wrong = next((entry for entry in parts if not entry[0] or not entry[2]), None)
        if wrong is not None:
            raise DataError(f"{place}: {''.join(wrong)!r:.40}, expected word/tag.")
        if parts:
            yield Tagged([word for word, _, _ in parts], [tag for *_, tag in parts], [place] * len(parts))
