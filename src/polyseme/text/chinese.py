"""Chinese text to sentences and words (jieba's, by rjieba) or characters.

    text.token  ->  text.chinese  ->  text.segment

Comes in: a string and the part of it to read. Goes out: tokens with places in the whole string.
A line break ends a sentence, and so do 。！？；… and, after Han text, !?;． with the closing quotes and
brackets that follow. A piece without any word, such as …… at the start of a line, opens the next sentence.

What must not change: words are those of jieba's default mode. rjieba keeps every character, so places are
running sums. It cannot take lone surrogates and would tear emoji apart: both are cut around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from polyseme.text.token import EMOJI, HAN, Token, marks

_END = "。！？；…｡．"
_CLOSERS = "」』”’）】》〉〕］｝)\\]}"
# A comma after the closing quote carries the sentence on: “走！”，他说。
_SENTENCE_END = re.compile(
    rf"(?:[{_END[:-1]}]|(?<=[{HAN}{_CLOSERS}])[!?;．])[{_END}!?;{_CLOSERS}]*+(\"[{_END}!?;{_CLOSERS}]*+)?+(?![，、,])"
)
_WORD = re.compile(r"\w")


def sentence_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places of the sentences in `text[start:end]`."""
    while start < end:
        newline = text.find("\n", start, end)
        stop = end if newline < 0 else newline
        yield from _spans_of_line(text, start, stop)
        start = stop + 1


def _spans_of_line(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = looked = start  # of the sentence; of what was not yet searched for a word
    seen, quotes = start, 0  # the quotes before `seen`: after an odd number, a straight one closes
    for match in _SENTENCE_END.finditer(text, start, end):
        stop = match.end()
        if match[1] is not None:
            quote = match.start(1)
            quotes += sum(text.count(mark, seen, quote) for mark in '"“”')
            seen = quote
            if quotes % 2 == 0:
                stop = quote
        if _WORD.search(text, looked, stop):
            yield begin, stop
            begin = stop
        looked = stop
    if begin < end:
        yield begin, end


def cut_words(text: str, start: int, end: int) -> list[Token]:
    """Return jieba's words in `text[start:end]`, without the whitespace."""
    import rjieba  # here, because it loads a dictionary

    tokens: list[Token] = []
    for island, begin, stop in _islands(text, start, end):
        for piece in [text[begin:stop]] if island else rjieba.cut(text[begin:stop]):
            place, begin = begin, begin + len(piece)
            if not piece.isspace():
                tokens.append(Token(piece, place, begin))
    return tokens


def _islands(text: str, start: int, end: int) -> Iterator[tuple[bool, int, int]]:
    """Yield (whole, begin, end): stretches for jieba, and between them what must stay whole."""
    for match in _whole().finditer(text, start, end):
        if start < match.start():
            yield False, start, match.start()
        yield True, match.start(), match.end()
        start = match.end()
    if start < end:
        yield False, start, end


def cut_characters(text: str, start: int, end: int) -> list[Token]:
    """Return one token a Han character; Latin words and numbers stay whole."""
    return [Token(match[0], *match.span()) for match in _characters().finditer(text, start, end)]


@cache
def _whole() -> re.Pattern[str]:
    return re.compile(f"{EMOJI}|[\ud800-\udfff]")


@cache
def _characters() -> re.Pattern[str]:
    mark = marks()
    letters = rf"[^\W\d_{HAN}]++(?:[{mark}]++[^\W_{HAN}]*+)*+"
    run = rf"(?:\d++(?:[.,]\d++)*+(?:{letters})?+|{letters}[^\W_{HAN}]*+)"
    return re.compile(rf"{EMOJI}|{run}|\S[{mark}]*+")
