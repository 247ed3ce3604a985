"""Tags that spell spans: IOB1, IOB2, BIOES, BILOU, BMES; which may follow which, and which spans they spell.

    tasks.data.columns  ->  tasks.data.tag_schemes  ->  tasks.tagging, tasks.metrics

A tag is O, or a letter, a hyphen and a type: B-PER. IOB1: I, and B where two spans of a type touch (but
CoNLL-2003 has B elsewhere, twice, so it is allowed anywhere).
IOB2: every span begins with B. BIOES: E ends a span, S is a span of one token; BILOU has L and U instead.
BMES: M is inside. Networks use BIOES.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LETTERS = {"iob1": "IBO", "iob2": "IBO", "bioes": "BIESLUO", "bilou": "BILUESO", "bmes": "BMESO"}
SPAN_SHARE = 0.8  # of the tags other than O that must spell spans, else they are not spans
SAME = {"L": "E", "U": "S", "M": "I"}  # letters of BILOU and BMES as those of BIOES


class Span(NamedTuple):
    """Tokens from `start` to `stop`, which is not included."""

    label: str
    start: int
    stop: int


def split_tag(tag: str) -> tuple[str, str]:
    """The letter and the type: B-PER, or B_PER in Chinese corpora; O has no type."""
    if tag == "O":
        return "O", ""
    return (tag[:1], tag[2:]) if tag[1:2] in ("-", "_") else (tag, "")


def guess_scheme(sentences: Sequence[Sequence[str]]) -> str:
    """The scheme that most of these tags follow, or "none" if they are not spans.

    `find_fault` reports the few that break it.
    """
    counts = Counter(tag for tags in sentences for tag in tags if tag != "O")
    letters: Counter[str] = Counter()
    for tag, count in counts.items():
        letter, kind = split_tag(tag)
        letters[letter if kind and letter in "BIESLUM" else "other"] += count
    if not counts or letters["other"] > (1 - SPAN_SHARE) * counts.total():
        return "none"
    spans = sum(len(read_spans(tags)) for tags in sentences)
    if 2 * sum(letters[letter] for letter in "ESLU") > spans:  # an end for each span
        if letters["L"] + letters["U"] > letters["E"] + letters["S"]:
            return "bilou"
        return "bmes" if letters["M"] > letters["I"] else "bioes"
    starts = Counter(letter for tags in sentences for letter in _free_starts(tags))
    return "iob1" if starts["I"] >= starts["B"] else "iob2"


def _free_starts(tags: Sequence[str]) -> Iterator[str]:
    """The first letters of spans that touch no other span of their type: B in IOB2, I in IOB1."""
    kind_before = ""
    for tag in tags:
        letter, kind = split_tag(tag)
        if kind and kind != kind_before:
            yield letter
        kind_before = kind


def find_fault(tags: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """The first position where `tags` break the scheme, and how; None if they follow it."""
    before, kind_before = "O", ""
    for position, tag in enumerate([*tags, "O"]):
        letter, kind = split_tag(tag)
        if letter not in set(LETTERS[scheme]) or (not kind and letter != "O"):
            return position, f"{tag} is no tag"
        if not _is_allowed(before, kind_before, letter, kind, scheme):
            previous = tags[position - 1] if position else "the begin"
            return position, f"{tag if position < len(tags) else 'the end'} cannot follow {previous}"
        before, kind_before = letter, kind
    return None


def _is_allowed(before: str, kind_before: str, letter: str, kind: str, scheme: str) -> bool:
    """Whether a scheme allows a tag after another."""
    if scheme == "iob1":
        return True
    if scheme == "iob2":
        return letter != "I" or (before in "BI" and kind_before == kind)
    return may_follow(_to_bioes_letter(before), kind_before, _to_bioes_letter(letter), kind)


def _to_bioes_letter(letter: str) -> str:
    return SAME.get(letter, letter)


def may_follow(before: str, kind_before: str, letter: str, kind: str) -> bool:
    """Whether BIOES allows a tag after another; O also stands for the begin and the end."""
    if before in "BI":
        return letter in "IE" and kind == kind_before
    return letter in "OBS"


def read_spans(tags: Sequence[str]) -> list[Span]:
    """The spans that tags of any scheme spell, as conlleval reads them: nothing is refused."""
    spans: list[Span] = []
    start: int | None = None
    before, kind_before = "O", ""
    for position, tag in enumerate([*tags, "O"]):
        letter, kind = split_tag(tag)
        letter = _to_bioes_letter(letter)
        ends = start is not None and (letter in "OBS" or before in "ES" or kind != kind_before)
        if ends and start is not None:
            spans.append(Span(kind_before, start, position))
            start = None
        if start is None and letter != "O":
            start = position
        before, kind_before = letter, kind
    return spans


def mend_tags(tags: Sequence[str], scheme: str) -> list[str]:
    """The nearest legal tags of a scheme: its spans as conlleval reads them; what is no tag becomes O."""
    letters = set(LETTERS[scheme])
    known = [tag if split_tag(tag)[0] in letters and split_tag(tag)[1] else "O" for tag in tags]
    return write_spans(read_spans(known), len(known), scheme)


def write_spans(spans: Sequence[Span], length: int, scheme: str) -> list[str]:
    """The tags of a sentence of `length` tokens in a scheme."""
    tags = ["O"] * length
    for number, (label, start, stop) in enumerate(spans):
        letters = _list_letters(stop - start, scheme)
        touches = number > 0 and spans[number - 1].stop == start and spans[number - 1].label == label
        if scheme == "iob1" and touches:
            letters = "B" + letters[1:]
        tags[start:stop] = [f"{letter}-{label}" for letter in letters]
    return tags


def _list_letters(length: int, scheme: str) -> str:
    if scheme == "iob1":
        return "I" * length
    if scheme == "iob2":
        return "B" + "I" * (length - 1)
    inside = "M" if scheme == "bmes" else "I"
    alone, last = "UL" if scheme == "bilou" else "SE"
    return alone if length == 1 else "B" + inside * (length - 2) + last
