"""Tags that spell spans: IOB1, IOB2, BIOES, BILOU, BMES; which follow which, and what they say.

    tasks.data.columns  ->  tasks.data.tag_schemes  ->  tasks.tagging, tasks.metrics

A tag is O, or a letter, a hyphen and a type: B-PER. IOB1: I, and B where two spans of a type touch (but
CoNLL-2003 has B in two other places, so it may stand anywhere).
IOB2: every span begins with B. BIOES: E ends, S stands alone; BILOU: L and U do. BMES: M is inside.
Inside, everything is BIOES; spans are (type, first, last + 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LETTERS = {"iob1": "IBO", "iob2": "IBO", "bioes": "BIESLUO", "bilou": "BILUESO", "bmes": "BMESO"}
MOST = 0.8  # of the tags but O must spell spans, else they are no spans
SAME = {"L": "E", "U": "S", "M": "I"}  # other letters of the same meaning


class Span(NamedTuple):
    """Words from `start` to `stop`, the last one not included."""

    label: str
    start: int
    stop: int


def split_tag(tag: str) -> tuple[str, str]:
    """The letter and the type: B-PER, or B_PER in Chinese corpora; O has no type."""
    if tag == "O":
        return "O", ""
    return (tag[:1], tag[2:]) if tag[1:2] in ("-", "_") else (tag, "")


def guess_scheme(sentences: Sequence[Sequence[str]]) -> str:
    """The scheme that most of these tags follow, or "none" where tags are no spans.

    The few that break it are for `fault` to find.
    """
    counts = Counter(tag for tags in sentences for tag in tags if tag != "O")
    letters: Counter[str] = Counter()
    for tag, count in counts.items():
        letter, kind = split_tag(tag)
        letters[letter if kind and letter in "BIESLUM" else "other"] += count
    if not counts or letters["other"] > (1 - MOST) * counts.total():
        return "none"
    spans = sum(len(spans_of(tags)) for tags in sentences)
    if 2 * sum(letters[letter] for letter in "ESLU") > spans:  # an end for each span
        if letters["L"] + letters["U"] > letters["E"] + letters["S"]:
            return "bilou"
        return "bmes" if letters["M"] > letters["I"] else "bioes"
    starts = Counter(letter for tags in sentences for letter in _free_starts(tags))
    return "iob1" if starts["I"] >= starts["B"] else "iob2"


def _free_starts(tags: Sequence[str]) -> Iterator[str]:
    """The first letters of the spans that touch no other one of their type: B in IOB2, I in IOB1."""
    kind_before = ""
    for tag in tags:
        letter, kind = split_tag(tag)
        if kind and kind != kind_before:
            yield letter
        kind_before = kind


def fault(tags: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """The first place where `tags` break the scheme, and how; each but O must have a type."""
    before, kind_before = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        letter, kind = split_tag(tag)
        if letter not in set(LETTERS[scheme]) or (not kind and letter != "O"):
            return place, f"{tag} is no tag"
        if not _follows(before, kind_before, letter, kind, scheme):
            seen = tags[place - 1] if place else "the begin"
            return place, f"{tag if place < len(tags) else 'the end'} cannot follow {seen}"
        before, kind_before = letter, kind
    return None


def _follows(before: str, kind_before: str, letter: str, kind: str, scheme: str) -> bool:
    """Whether a tag may stand behind another one."""
    if scheme == "iob1":
        return True
    if scheme == "iob2":
        return letter != "I" or (before in "BI" and kind_before == kind)
    return allowed(_plain(before), kind_before, _plain(letter), kind)


def _plain(letter: str) -> str:
    return SAME.get(letter, letter)


def allowed(before: str, kind_before: str, letter: str, kind: str) -> bool:
    """Whether BIOES lets a tag stand behind another one; O also stands for the begin and the end."""
    if before in "BI":
        return letter in "IE" and kind == kind_before
    return letter in "OBS"


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans that tags of any scheme spell, read as conlleval reads them: nothing is refused."""
    spans: list[Span] = []
    start: int | None = None
    before, kind_before = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        letter, kind = split_tag(tag)
        letter = _plain(letter)
        ends = start is not None and (letter in "OBS" or before in "ES" or kind != kind_before)
        if ends and start is not None:
            spans.append(Span(kind_before, start, place))
            start = None
        if start is None and letter != "O":
            start = place
        before, kind_before = letter, kind
    return spans


def write_spans(spans: Sequence[Span], length: int, scheme: str) -> list[str]:
    """The tags of a sentence of `length` words in a scheme."""
    tags = ["O"] * length
    for number, (label, start, stop) in enumerate(spans):
        letters = _letters(stop - start, scheme)
        touches = number > 0 and spans[number - 1].stop == start and spans[number - 1].label == label
        if scheme == "iob1" and touches:
            letters = "B" + letters[1:]
        tags[start:stop] = [f"{letter}-{label}" for letter in letters]
    return tags


def _letters(length: int, scheme: str) -> str:
    if scheme == "iob1":
        return "I" * length
    if scheme == "iob2":
        return "B" + "I" * (length - 1)
    inside = "M" if scheme == "bmes" else "I"
    alone, last = "UL" if scheme == "bilou" else "SE"
    return alone if length == 1 else "B" + inside * (length - 2) + last
