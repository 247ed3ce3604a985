"""Tagged sentences: CoNLL's columns, CoNLL-U, word/tag lines, and records in memory.

    text.reading, tasks.data.sources  ->  tasks.data.columns  ->  tasks.tagging

Input: the lines of a file (a blank line ends a sentence), or records. Output: `TaggedSentence`s, with the
location of each token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import DataError, UsageError
from polyseme.tasks.data.sources import Records
from polyseme.text.conllu import COLUMNS as CONLLU
from polyseme.text.conllu import read_conllu
from polyseme.text.reading import Line, expand_path
from polyseme.text.validate import is_missing

DOCUMENT = "-DOCSTART-"
NUMBER = re.compile(r"-?[0-9]+")


class TaggedSentence(NamedTuple):
    """Tokens, their tags (none if the file has no such column), and the location of each."""

    tokens: list[str]
    tags: list[str]
    locations: list[str]


def find_tagged_format(path: str | Path, lines: Sequence[Line], chosen: str) -> str:
    """The format of a file: `chosen`, unless that is "auto"; then by its name and its first line."""
    if chosen != "auto":
        return chosen
    if Path(expand_path(path)).name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".conllu"):
        return "conllu"
    first = next((line.text for line in lines if line.text.strip()), "")
    words = first.split()
    slashed = len(words) > 1 and "\t" not in first and all("/" in word[1:] for word in words)
    return "slashed" if slashed else "columns"


def count_columns(lines: Sequence[Line], kind: str) -> int:
    """The number of columns of a tagged file, by its first line; 0 for word/tag lines."""
    if kind == "slashed":
        return 0
    rows = (line for line in lines if line.text.strip() and not line.text.startswith((DOCUMENT, "#")))
    return next((len(CONLLU) if kind == "conllu" else len(_split_fields(line)) for line in rows), 0)


def check_columns(path: str | Path, width: int, known: int | None) -> None:
    """Raise `DataError` unless a file has the columns of training, these without the tag, or words alone."""
    if known and width not in (1, known - 1, known):
        raise DataError(
            f"{path}: {width} columns, the training file had {known} (the tag may be missing). "
            "If it is plain text, pass `plain_text=True`."
        )


def read_tagged(
    lines: Sequence[Line], kind: str, word: str | int, tag: str | int, *, tags: bool = True
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file; with `tags=False` tags may be missing."""
    if kind == "slashed":
        yield from _read_slashed(lines, tags=tags)
        return
    if kind == "conllu":
        for sentence in read_conllu(lines):
            yield _make_sentence(sentence.words, kind, word, tag, tags=tags)
        return
    if kind != "columns":
        raise UsageError(
            f"{kind} is not a format of tagged files: set data.format to columns, conllu or slashed."
        )
    rows: list[tuple[str, list[str]]] = []
    width = 0
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith(DOCUMENT):
            if rows:
                yield _make_sentence(rows, kind, word, tag, tags=tags)
            rows = []
        else:
            fields = _split_fields(line)
            width = width or len(fields)
            if len(fields) != width:
                raise DataError(
                    f"{line.location}: {len(fields)} columns, expected {width} as before. "
                    "Is a column empty, or a blank line between two sentences missing?"
                )
            rows.append((line.location, fields))
    if rows:
        yield _make_sentence(rows, kind, word, tag, tags=tags)


def _split_fields(line: Line) -> list[str]:
    """The columns of a line: separated by tabs if it has any, else by white space."""
    text = line.text.rstrip("\r")
    return text.split("\t") if "\t" in text else text.split()


def _make_sentence(
    rows: Sequence[tuple[str, list[str]]], kind: str, word: str | int, tag: str | int, *, tags: bool
) -> TaggedSentence:
    sentence = TaggedSentence([], [], [])
    word = "form" if kind == "conllu" and word == 0 else word
    tag = "upos" if kind == "conllu" and tag == -1 else tag
    for location, fields in rows:
        text = _get_column(fields, word, kind, location).strip()
        if not text:
            raise DataError(f"{location}: the word is empty.")
        sentence.tokens.append("_".join(text.split()))  # CoNLL-U allows spaces within a word
        sentence.locations.append(location)
        if tags:
            if len(fields) == 1:
                raise DataError(f"{location}: 1 column, expected a word and its tag.")
            sentence.tags.append(_get_column(fields, tag, kind, location).strip())
            if not sentence.tags[-1]:
                raise DataError(f"{location}: the tag is empty. Write O for tokens without one.")
    return sentence


def _get_column(fields: list[str], column: str | int, kind: str, location: str) -> str:
    if isinstance(column, str) and NUMBER.fullmatch(column):
        column = int(column)
    if isinstance(column, str):
        if kind != "conllu" or column not in CONLLU:
            known = f"a name of CoNLL-U ({', '.join(CONLLU)})" if kind == "conllu" else "a number"
            raise UsageError(f"data.word and data.tag: {column!r} is not a column here, expected {known}.")
        column = CONLLU.index(column)
    if not -len(fields) <= column < len(fields):
        raise DataError(f"{location}: {len(fields)} columns, there is no column {column}.")
    return fields[column]


def _read_slashed(lines: Sequence[Line], *, tags: bool) -> Iterator[TaggedSentence]:
    """`word/tag word/tag`, one sentence per line; with `tags=False` also words alone."""
    for line in lines:
        location = line.location
        if not tags and not all("/" in entry[1:] for entry in line.text.split()):
            words = line.text.split()
            yield TaggedSentence(words, [], [location] * len(words))
            continue
        parts = [entry.rpartition("/") for entry in line.text.split()]
        wrong = next((entry for entry in parts if not entry[0] or not entry[2]), None)
        if wrong is not None:
            raise DataError(f"{location}: {''.join(wrong)!r:.40}, expected word/tag.")
        if parts:
            yield TaggedSentence(
                [word for word, _, _ in parts], [tag for *_, tag in parts], [location] * len(parts)
            )


def read_tagged_records(
    source: Records, word: str | int, tag: str | int, *, tags: bool = True
) -> Iterator[TaggedSentence]:
    """Yield the sentences of records: (tokens, tags), or dicts with the columns `word` and `tag`."""
    for number, record in enumerate(source.rows, start=1):
        location = f"{source.name}:{number}"
        tokens, labels = _read_tagged_values(record, word, tag, location, tags=tags)
        if tags and len(labels) != len(tokens):
            raise DataError(
                f"{location}: {len(tokens)} tokens and {len(labels)} tags, expected one tag per token."
            )
        yield TaggedSentence(tokens, labels, [location] * max(1, len(tokens)))


def _read_tagged_values(
    record: Any, word: str | int, tag: str | int, location: str, *, tags: bool
) -> tuple[list[str], list[str]]:
    """The tokens and the tags of a record."""
    values = record
    if isinstance(record, Mapping):
        names = list(record)
        try:
            values = tuple(
                record[names[column] if isinstance(column, int) else column]
                for column in ((word, tag) if tags else (word,))
            )
        except (KeyError, IndexError):
            known = ", ".join(map(str, names)) or "none"
            raise DataError(
                f"{location}: no columns {word!r} and {tag!r}; there are {known}. "
                "Name them with data.word and data.tag."
            ) from None
    lists = [_as_list(value) for value in values] if isinstance(values, tuple | list) else [None]
    if any(value is None for value in lists) or len(lists) not in ((2,) if tags else (1, 2)):
        raise DataError(f"{location}: {record!r:.60}, expected a tuple (tokens, tags) of two lists.")
    tokens, *labels = (value for value in lists if value is not None)
    for position, label in enumerate(labels[0] if labels else (), start=1):
        if is_missing(label):
            raise DataError(
                f"{location}: the tag of token {position} is missing. Write O for tokens without one."
            )
    return tokens, [str(label) for label in labels[0]] if labels else []


def _as_list(value: Any) -> list[str] | None:
    """A list or tuple as a list; None for anything else."""
    return list(value) if isinstance(value, list | tuple) else None
