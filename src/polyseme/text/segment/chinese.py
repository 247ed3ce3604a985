"""Chinese text to sentences and words (jieba's, by rjieba) or characters.

    text.segment.token  ->  text.segment.chinese  ->  text.segment

Comes in: a string. Goes out: its words; all its characters are in them, in order, but white space.
A line break ends a sentence, and so do 。！？；… and, after Han text, !?;． with the closing quotes and
brackets that follow. A piece without any word, such as …… at the start of a line, opens the next sentence.

What must not change: words are those of jieba's default mode. rjieba keeps every character. It cannot take
lone surrogates and would tear emoji apart: both are cut around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from polyseme.text.segment.token import EMOJI, HAN, marks

_END = "。！？；…｡．"
_CLOSERS = "」』”’）】》〉〕］｝)\\]}"
# A comma after the closing quote carries the sentence on: “走！”，他说。
_SENTENCE_END = re.compile(
    rf"[{_END}!?;](?:(?<=[{_END[:-1]}])|(?<=[{HAN}{_CLOSERS}].))[{_END}!?;{_CLOSERS}]*+(\"[{_END}!?;{_CLOSERS}]*+)?+(?![，、,])"
)
_WORD = re.compile(r"\w")
_MAYBE_WHOLE = re.compile(
    "[\u20e3\u2300-\u2bff\ud800-\udfff\U0001f000-\U0001faff]"
)  # a quick look, for `_whole`


def cut_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of `text`, white space around them included."""
    for line in text.split("\n"):
        for begin, end in _spans_of_line(line):
            yield line[begin:end]


def _spans_of_line(text: str) -> Iterator[tuple[int, int]]:
    begin = looked = 0  # of the sentence; of what was not yet searched for a word
    seen, quotes = 0, 0  # the quotes before `seen`: after an odd number, a straight one closes
    for match in _SENTENCE_END.finditer(text):
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
    if begin < len(text):
        yield begin, len(text)


def cut_words(text: str) -> list[str]:
    """Return jieba's words of `text`, without the whitespace."""
    import rjieba  # here, because it loads a dictionary

    words: list[str] = []
    for number, part in enumerate(_whole().split(text) if _MAYBE_WHOLE.search(text) else [text]):
        whole = number % 2 == 1  # stretches for jieba, and between them what must stay whole
        words += [part] if whole else [word for word in rjieba.cut(part) if not word.isspace()]
    return words


def cut_characters(text: str) -> list[str]:
    """Return one word a Han character; Latin words and numbers stay whole."""
    return _characters().findall(text)


@cache
def _whole() -> re.Pattern[str]:
    return re.compile(f"({EMOJI}|[\ud800-\udfff])")


@cache
def _characters() -> re.Pattern[str]:
    mark = marks()
    letters = rf"[^\W\d_{HAN}]++(?:[{mark}]++[^\W_{HAN}]*+)*+"
    run = rf"(?:\d++(?:[.,]\d++)*+(?:{letters})?+|{letters}[^\W_{HAN}]*+)"
    quick = f"[{HAN}](?=[{HAN}，。、：；！？“”])"  # most characters: what follows is no mark that joins them
    return re.compile(rf"{quick}|{EMOJI}|{run}|\S[{mark}]*+")
