"""Find the headings that open documents: chapters of books by a preset or by a pattern of the user.

    corpus.documents  ->  text.corpus.headings  ->  text.corpus.documents

A heading is a short line that the pattern matches from its first character that is not white space. A heading
without text below it, as in a table of contents, opens no document.

Invariant: matching takes bounded time. Lines are short, and a pattern that could take exponential time is
refused; one that is merely slow is stopped with an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import NamedTuple

from polyseme.errors import UsageError
from polyseme.text.reading import Line

MAX_HEADING = 100  # characters of a line that may be a heading
_MAX_PRESET_HEADING = 160  # the same for presets, whose patterns are known to be fast
MAX_SECONDS = 10.0  # of matching, beyond which the time for each line counts
_MAX_SECONDS_PER_LINE = 1e-3
_MAX_WAYS = 1e8  # four times .* in a line of a hundred characters
_REPEAT = re.compile(r"(?:[*+?]|\{(?P<low>\d{0,6})(?:,(?P<high>\d{0,6}))?\})[?+]?")

_HAN_NUMBER = "[〇零一二三四五六七八九十百千万两廿卅０-９0-9]{1,9}"
_CHINESE = (
    rf"(?:正文)?[\s　]?第[\s　]?{_HAN_NUMBER}[\s　]?[章回节節卷部集篇折幕][^。！？；!?;]{{0,60}}$"
    r"|(?:楔子|序章|序幕|引子|引言|前言|序言|自序|尾声|尾聲|后记|後記|终章|終章|番外)(?:[\s　：:].{0,30})?$"
    rf"|卷[\s　]?{_HAN_NUMBER}(?:[\s　].{{0,40}})?$"
)
_ENGLISH_NUMBER = (
    r"(?:\d{1,3}|[ivxlc]{1,9}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[ -]\w{3,5})?"
    r"|the \w{4,9}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,5}teen"
    r"|first|second|third|last)"
)
_ENGLISH = (
    rf"(?:chapter|book|part|volume|act|canto|letter|stave)\s{{1,3}}{_ENGLISH_NUMBER}(?![\w'’,;]).{{0,80}}$"
    rf"|chapter\s{{1,3}}{_ENGLISH_NUMBER}[.:].{{0,140}}$"  # a sentence does not go on behind the stop
    r"|(?:prologue|epilogue|preface|introduction|foreword|afterword|conclusion)[.:]?$"
)


class _Preset(NamedTuple):
    pattern: str
    after_blank: bool  # only after a blank line or a heading: a line of prose may begin with "Part one"


PRESETS: dict[str, tuple[_Preset, ...]] = {
    "chapters-zh": (_Preset(_CHINESE, after_blank=False),),
    "chapters-en": (_Preset(_ENGLISH, after_blank=True),),
    "auto": (_Preset(_CHINESE, after_blank=False), _Preset(_ENGLISH, after_blank=True)),
}
KINDS = ("file", "line", "block", *PRESETS)


def is_pattern(documents: str) -> bool:
    """Whether documents begin at headings, found by a preset or a pattern."""
    return documents not in ("file", "line", "block")


def check_documents(documents: str) -> str:
    """Return `documents` if it is a kind of document, a preset or a pattern.

    Raises:
        UsageError: It is none of them, or a pattern that is invalid or may take too long.

    """
    if documents in KINDS:
        return documents
    if re.fullmatch(r"[a-z-]{1,20}", documents):  # a word: more likely a wrong name than a pattern
        raise UsageError(
            f"{documents!r} is not a kind of document. Choose one of {', '.join(KINDS)}, or give a regular "
            "expression for the first line of a document, such as 'Chapter [0-9]+'."
        )
    _compile(documents)
    return documents


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of a user; refuse what may take exponential time."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as problem:
        raise UsageError(f"documents: {pattern!r} is not a regular expression ({problem}).") from None
    if compiled.match(""):
        raise UsageError(f"documents: {pattern!r} matches an empty line. Name what every heading contains.")
    reason = find_danger(pattern)
    if reason:
        raise UsageError(f"documents: {pattern!r} may take very long: {reason}. Write it without.")
    return compiled


def find_danger(pattern: str) -> str | None:
    """What could make matching take very long, such as a repeat in a repeated group; None if nothing."""
    stripped = re.sub(r"\\.", "x", pattern, flags=re.DOTALL)  # \( is a character
    stripped = re.sub(r"\[\^?\]?[^\]]*\]", "x", stripped)  # so is [(*]
    if re.search(r"\\[1-9]|\(\?P=", pattern.replace("\\\\", "")):
        return "it refers back to a group"
    groups: list[bool] = []  # for every open group: whether it holds a repeat or a choice
    ways = 1.0  # in which the repeats of one alternative can divide a line
    index = 0
    while index < len(stripped):
        character, repeat = stripped[index], _REPEAT.match(stripped, index)
        if character == "(":
            groups.append(False)
            index += 2 if stripped.startswith("(?", index) else 1
            continue
        if character == ")" and groups:
            holds = groups.pop()
            if holds and (after := _REPEAT.match(stripped, index + 1)) and after[0][0] != "?":
                return "a group with a repeat or a choice in it is repeated"
            if holds and groups:
                groups[-1] = True
        elif (repeat or character == "|") and groups:
            groups[-1] = True
        elif character == "|":
            ways = 1.0
        if repeat:
            ways *= _count_ways(repeat)
            if ways > _MAX_WAYS:
                return "it has too many repeats"
        index = repeat.end() if repeat else index + 1
    return None


def _count_ways(repeat: re.Match[str]) -> int:
    """How many lengths a repeat can have in a line."""
    if repeat[0][0] == "?":
        return 2
    low, high = repeat["low"] or "0", repeat["high"]
    if repeat[0][0] != "{" or high == "":
        return MAX_HEADING
    return 1 if high is None else max(1, min(int(high), MAX_HEADING) - int(low) + 1)


class HeadingFinder:
    """Tells whether a line is a heading.

    Args:
        documents: A preset, or a regular expression.

    """

    def __init__(self, documents: str, *, max_seconds: float = MAX_SECONDS) -> None:
        check_documents(documents)
        self._max_seconds = max_seconds
        presets = PRESETS.get(documents)
        self._documents = documents
        self._longest = MAX_HEADING if presets is None else _MAX_PRESET_HEADING
        if presets is None:
            self._rules = [(_compile(documents), False)]
        else:
            self._rules = [
                (re.compile(pattern, re.IGNORECASE), after_blank) for pattern, after_blank in presets
            ]
        self._seconds, self._lines = 0.0, 0

    def find(self, line: Line, *, after_blank: bool) -> str | None:
        """The title that a line is, or None.

        Args:
            line: The line.
            after_blank: Whether it is the first one, or the line before is blank or a heading.

        Raises:
            UsageError: The pattern takes too long.

        """
        text = line.text.strip()
        if not text or len(text) > self._longest:
            return None
        start = perf_counter()
        is_heading = any(
            rule.match(text) is not None
            for rule, needs_blank in self._rules
            if after_blank or not needs_blank
        )
        self._seconds += perf_counter() - start
        self._lines += 1
        if self._seconds > max(self._max_seconds, _MAX_SECONDS_PER_LINE * self._lines):
            raise UsageError(
                f"{line.location}: documents: {self._documents!r} takes too long. Write a simpler pattern."
            )
        return " ".join(text.split()) if is_heading else None


def split_at_headings(lines: Iterable[Line], finder: HeadingFinder) -> Iterator[tuple[int, str, Line]]:
    """Yield the lines of a file with the number and the title of their document.

    The text before the first heading has number 0 and no title.

    """
    number, title = 0, ""
    held: list[Line] = []  # a heading and the blank lines after it, as long as no text follows
    held_title = ""
    after_blank = True
    for line in lines:
        if not line.text or line.text.isspace():
            after_blank = True
            if held:
                held.append(line)
            else:
                yield number, title, line
            continue
        heading = finder.find(line, after_blank=after_blank or bool(held))
        after_blank = False
        if heading is not None:  # the heading before it has no text: a table of contents
            for waiting in held:
                yield number, title, waiting
            held, held_title = [line], heading
            continue
        if held:
            number, title = number + 1, held_title
            for waiting in held:
                yield number, title, waiting
            held = []
        yield number, title, line
    for waiting in held:
        yield number, title, waiting


def split_at_blank_lines(lines: Iterable[Line], documents: str) -> Iterator[tuple[int, str, Line]]:
    """Yield the lines of a file with the number of their document: a line, or a block between blank lines."""
    number, after_blank = 0, True
    for line in lines:
        is_blank = not line.text or line.text.isspace()
        if not is_blank and (after_blank or documents == "line"):
            number += 1
        after_blank = is_blank
        yield number, "", line
