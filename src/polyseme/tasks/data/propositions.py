"""Read sentences with predicates and their roles: JSON lines, CoNLL-2012 columns, CoNLL-U Plus.

    text.reading, tasks.data.sources  ->  tasks.data.propositions  ->  tasks.roles

JSON lines and records: {"words": […], "frames": [{"predicate_index": 1, "tags": ["B-ARG0", "B-V"]}]};
`tokens` may stand for `words`, `predicate` for `predicate_index`.
CoNLL-2012: column 4 is the word; the columns from 12 to the last but one are the roles, one column for each
predicate, in brackets: `(ARG0*`, `*`, `*)`, `(V*)`.
CoNLL-U Plus, as Universal PropBank 2.0 has it: `# global.columns` names UP:PRED and UP:ARGSPANS, whose values
are `A0:1-3|A1:5-8`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from polyseme.errors import DataError
from polyseme.json_text import parse_digits
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.data.tables import guess_format, read_json_records
from polyseme.tasks.data.tag_schemes import Span, find_fault, read_spans
from polyseme.text.reading import Line, read_lines

FORMATS = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
    ".conllup": "conllup",
    ".conllu": "conllup",
}
WORD, FIRST_ROLE = 3, 11  # columns of CoNLL-2012, from 0
GLOBAL_COLUMNS = "# global.columns ="
PREDICATE_COLUMNS = ("UP:PRED", "UP:PREDS")
SPANS_COLUMN = "UP:ARGSPANS"
_ROLE = re.compile(r"(?P<opens>(?:\([^()*]+)*)\*(?P<closes>\)*)")
_ARGUMENT = re.compile(r"(?P<label>[^:|]+):(?P<start>[0-9]+)(?:-(?P<stop>[0-9]+))?")


class Proposition(NamedTuple):
    """A predicate and its labelled spans."""

    predicate: int
    spans: tuple[Span, ...]


class PropositionSentence(NamedTuple):
    """A sentence; `propositions` is None if the source does not have any."""

    location: str
    words: list[str]
    propositions: tuple[Proposition, ...] | None


def read_propositions(source: Source, file_format: str, *, labelled: bool) -> Iterator[PropositionSentence]:
    """Read sentences with their predicates and roles.

    Args:
        source: A path, or records.
        file_format: "jsonl", "conll2012", "conllup", or "auto": by the name of the file.
        labelled: Whether the frames must be there.

    Raises:
        DataError: If the source cannot be read as such a file; the message begins with `file:line`.

    """
    if file_format == "auto":
        file_format = guess_format(str(source), FORMATS, "conll2012")
    if isinstance(source, Records) or file_format == "jsonl":
        for location, record in read_json_records(source):
            yield _read_values(location, record, labelled=labelled)
    elif file_format == "conllup":
        yield from _read_conllup(read_lines(source), labelled=labelled)
    else:
        yield from (_read_conll2012(block) for block in _read_blocks(read_lines(source)))


def _read_values(location: str, record: Any, *, labelled: bool) -> PropositionSentence:
    """A sentence from a record of JSON."""
    if not isinstance(record, Mapping):
        raise DataError(f'{location}: {record!r:.60}, expected a record {{"words": […], "frames": […]}}.')
    words = record.get("words", record.get("tokens"))
    if not _is_list_of_words(words):
        raise DataError(f'{location}: "words" is {words!r:.40}, expected a list of words.')
    frames = record.get("frames")
    if frames is None and not labelled:
        return PropositionSentence(location, list(words), None)
    if not isinstance(frames, list | tuple):
        raise DataError(f'{location}: "frames" is {frames!r:.40}, expected a list of records.')
    propositions = tuple(
        _read_frame(location, n, frame, len(words)) for n, frame in enumerate(frames, start=1)
    )
    return PropositionSentence(location, list(words), _check_distinct(location, propositions))


def _is_list_of_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) and word.strip() for word in value)


def _read_frame(location: str, number: int, frame: Any, length: int) -> Proposition:
    if not isinstance(frame, Mapping):
        raise DataError(f"{location}: frame {number} is {frame!r:.40}, expected a record.")
    predicate = frame.get("predicate_index", frame.get("predicate"))
    if not isinstance(predicate, int) or isinstance(predicate, bool) or not 0 <= predicate < length:
        raise DataError(
            f"{location}: the predicate of frame {number} is {predicate!r:.20}, outside the sentence of "
            f"{length} words. Words count from 0."
        )
    tags = frame.get("tags")
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise DataError(f'{location}: "tags" of frame {number} is {tags!r:.40}, expected a list of tags.')
    if len(tags) != length:
        raise DataError(f"{location}: frame {number} has {len(tags)} tags for {length} words.")
    fault = find_fault(tags, "iob2")
    if fault is not None:
        raise DataError(
            f"{location}: frame {number}, word {fault[0] + 1}: {fault[1]} in BIO. Correct the tags."
        )
    return Proposition(predicate, tuple(read_spans(tags)))


def _check_distinct(location: str, propositions: tuple[Proposition, ...]) -> tuple[Proposition, ...]:
    """The propositions by position; two for the same predicate are refused."""
    predicates = [proposition.predicate for proposition in propositions]
    if len(set(predicates)) < len(predicates):
        twice = next(p for p in predicates if predicates.count(p) > 1)
        raise DataError(f"{location}: two frames for the predicate at word {twice + 1}. Keep one of them.")
    return tuple(sorted(propositions))


def _read_blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield the lines of each sentence, without comments such as #begin document."""
    block: list[Line] = []
    for line in lines:
        if line.text.strip() and not line.text.startswith("#"):
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _read_conll2012(block: Sequence[Line]) -> PropositionSentence:
    rows = [line.text.split() for line in block]
    count = len(rows[0])
    for line, row in zip(block, rows, strict=True):
        if len(row) != count or count < FIRST_ROLE + 1:
            wanted = count if count > FIRST_ROLE else FIRST_ROLE + 1
            raise DataError(
                f"{line.location}: {len(row)} columns, expected {wanted}"
                f"{' or more' if count <= FIRST_ROLE else ''}. Is this a file of CoNLL-2012 "
                "(document, part, number, word, …, roles, coreference)?"
            )
    propositions = []
    for column in range(FIRST_ROLE, count - 1):
        spans = _read_brackets(block, [row[column] for row in rows], column)
        predicates = [span.start for span in spans if span.label == "V"]
        if len(predicates) != 1:
            raise DataError(
                f"{block[0].location}: column {column + 1} marks {len(predicates)} predicates (V*), not one."
            )
        propositions.append(Proposition(predicates[0], spans))
    location = block[0].location
    return PropositionSentence(
        location, [row[WORD] for row in rows], _check_distinct(location, tuple(propositions))
    )


def _read_brackets(block: Sequence[Line], values: Sequence[str], column: int) -> tuple[Span, ...]:
    """The spans of a column of brackets. Roles of one predicate do not overlap, so at most one is open."""
    spans: list[Span] = []
    label, start = "", -1
    for position, (line, value) in enumerate(zip(block, values, strict=True)):
        match = _ROLE.fullmatch(value)
        opened = match["opens"].split("(")[1:] if match else []
        if (
            match is None
            or len(opened) + (start >= 0) > 1
            or len(match["closes"]) > len(opened) + (start >= 0)
        ):
            raise DataError(
                f"{line.location}: {value!r:.30} in column {column + 1}; roles are (ARG0*, *, *) and (V*), "
                "and one closes before the next opens."
            )
        if opened:
            label, start = opened[0], position
        if match["closes"]:
            spans.append(Span(label, start, position + 1))
            start = -1
    if start >= 0:
        raise DataError(f"{block[start].location}: ({label}* in column {column + 1} does not close.")
    return tuple(spans)


def _read_conllup(lines: Iterable[Line], *, labelled: bool) -> Iterator[PropositionSentence]:
    columns: list[str] = []
    block: list[Line] = []
    for line in lines:
        if line.text.startswith(GLOBAL_COLUMNS):
            columns = line.text.removeprefix(GLOBAL_COLUMNS).split()
        elif line.text.strip() and not line.text.startswith("#"):
            block.append(line)
        elif block and not line.text.strip():
            yield _read_conllup_sentence(block, columns, labelled=labelled)
            block = []
    if block:
        yield _read_conllup_sentence(block, columns, labelled=labelled)


def _read_conllup_sentence(
    block: Sequence[Line], columns: Sequence[str], *, labelled: bool
) -> PropositionSentence:
    first = block[0].location
    predicate_column = next((columns.index(name) for name in PREDICATE_COLUMNS if name in columns), None)
    spans_column = columns.index(SPANS_COLUMN) if SPANS_COLUMN in columns else None
    has_roles = predicate_column is not None and spans_column is not None
    if "FORM" not in columns or (labelled and not has_roles):
        raise DataError(
            f"{first}: {GLOBAL_COLUMNS} names no FORM, UP:PRED and {SPANS_COLUMN}. Universal PropBank comes "
            "without words: merge it with its UD treebank first."
        )
    rows = []
    for line in block:
        values = line.text.split("\t")
        if len(values) != len(columns):
            raise DataError(
                f"{line.location}: {len(values)} columns, expected {len(columns)}, with tabs between."
            )
        if parse_digits(values[0]) is not None:  # neither a range nor an empty node
            rows.append((line, values))
    positions = {values[0]: number for number, (_, values) in enumerate(rows)}
    propositions = []
    if predicate_column is not None and spans_column is not None:
        for number, (line, values) in enumerate(rows):
            if values[predicate_column] != "_":
                spans = _read_arguments(line, values[spans_column], positions)
                propositions.append(Proposition(number, _add_predicate(spans, number)))
    words = ["_".join(values[columns.index("FORM")].split()) for _, values in rows]
    return PropositionSentence(first, words, tuple(propositions) if has_roles else None)


def _read_arguments(line: Line, value: str, positions: Mapping[str, int]) -> list[Span]:
    """The spans of UP:ARGSPANS; of overlapping ones the first is kept, as roles are a tag per token."""
    spans: list[Span] = []
    for part in value.split("|") if value != "_" else ():
        match = _ARGUMENT.fullmatch(part)
        start = positions.get(match["start"]) if match else None
        stop = positions.get(match["stop"] or match["start"]) if match else None
        if match is None or start is None or stop is None or stop < start:
            raise DataError(
                f"{line.location}: the argument {part!r:.40}, expected LABEL:START-STOP of this sentence."
            )
        if all(stop + 1 <= span.start or span.stop <= start for span in spans):
            spans.append(Span(match["label"], start, stop + 1))
    return spans


def _add_predicate(spans: Sequence[Span], predicate: int) -> tuple[Span, ...]:
    """The spans with the predicate as one of them; an argument around it stops before it."""
    kept = []
    for span in spans:
        if span.start <= predicate < span.stop:
            if span.start < predicate:
                kept.append(Span(span.label, span.start, predicate))
            continue
        kept.append(span)
    return tuple(sorted([*kept, Span("V", predicate, predicate + 1)], key=lambda span: span.start))
