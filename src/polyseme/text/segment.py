"""Raw text to sentences to tokens with their places, in any script.

    text.token, text.english, text.chinese  ->  text.segment  ->  corpus, embedder, tasks, server

Comes in: a string of any length and any number of lines. Goes out: tokens, or a list of tokens a sentence.

    split     tokenised already: tokens are what str.split() gives, a line is a sentence
    en        European rules, word runs for other scripts; a blank line ends a sentence, a line break does not
    zh        jieba's words; a line break ends a sentence
    zh-char   sentences as zh, one token a Han character
    auto      zh for lines in which Han characters outnumber other words, en for the rest

`auto` decides line by line, because Chinese text has a paragraph a line, and then reads neighbouring `en`
lines together, because English books are wrapped. A line without any letter goes with the line before it.

What must not change: `text[token.start:token.end] == token.text`; no token is empty or holds whitespace; the
tokens of `sentences`, chained, are those of `tokenize`; time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Literal, get_args

from polyseme.errors import UsageError
from polyseme.text import chinese, english
from polyseme.text.token import HAN, Token

__all__ = ["SEGMENTATIONS", "Segmentation", "Token", "sentences", "tokenize"]

Segmentation = Literal["split", "en", "zh", "zh-char", "auto"]
SEGMENTATIONS: tuple[str, ...] = get_args(Segmentation)

_NOT_SPACE = re.compile(r"\S+")
_ANY_HAN = re.compile(f"[{HAN}]")
_OTHER_WORD = re.compile(rf"[^\W\d_{HAN}]++")


def tokenize(text: str, how: str) -> list[Token]:
    """Cut the whole text into tokens, as one sentence."""
    _check(how)
    if how in ("split", "en"):
        return _tokens(text, 0, len(text), how)
    return list(chain.from_iterable(sentences(text, how)))


def sentences(text: str, how: str) -> list[list[Token]]:
    """Cut raw text into sentences of tokens; no sentence is empty."""
    _check(how)
    if how == "auto":
        blocks = _blocks(text)
        return [found for begin, end, rule in blocks for found in _sentences(text, begin, end, rule)]
    return _sentences(text, 0, len(text), how)


def _check(how: str) -> None:
    if how not in SEGMENTATIONS:
        near = get_close_matches(how, SEGMENTATIONS, n=1, cutoff=0.3)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"{how!r} is not a way to segment text. Choose one of {', '.join(SEGMENTATIONS)}.{guess}"
        )


def _sentences(text: str, start: int, end: int, how: str) -> list[list[Token]]:
    if how == "en":
        return english.cut_sentences(text, start, end)
    spans = _lines(text, start, end) if how == "split" else chinese.sentence_spans(text, start, end)
    found = (_tokens(text, begin, stop, how) for begin, stop in spans)
    return [tokens for tokens in found if tokens]


def _tokens(text: str, start: int, end: int, how: str) -> list[Token]:
    if how == "split":
        return [Token(match[0], *match.span()) for match in _NOT_SPACE.finditer(text, start, end)]
    if how == "en":
        return english.cut_words(text, start, end)
    if how == "zh":
        return chinese.cut_words(text, start, end)
    return chinese.cut_characters(text, start, end)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places of the lines, each with its line break, so that they cover the text."""
    while start < end:
        newline = text.find("\n", start, end)
        stop = end if newline < 0 else newline + 1
        yield start, stop
        start = stop


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (begin, end, rule) for stretches of lines under one rule; they cover the text."""
    if not _ANY_HAN.search(text):
        yield 0, len(text), "en"
        return
    begin, rule = 0, ""
    for start, end in _lines(text, 0, len(text)):
        found = _rule(text[start:end]) or rule
        if rule and found != rule:
            yield begin, start, rule
            begin = start
        rule = found
    yield begin, len(text), rule or "en"


def _rule(line: str) -> str:
    """Return the rule for one line, or nothing when the line holds no letter."""
    han = len(_ANY_HAN.findall(line))
    others = sum(1 for _ in _OTHER_WORD.finditer(line))
    if not han and not others:
        return ""
    return "zh" if han > others else "en"
