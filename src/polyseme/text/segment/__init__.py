"""Raw text to sentences to tokens with their places, in any script.

    text.segment.token, text.segment.english, text.segment.chinese  ->  text.segment
        ->  corpus, embedder, tasks, server

Comes in: a string of any length and any number of lines. Goes out: its words, as one sentence (`words`) or
sentence by sentence (`sentence_words`); or the same words as tokens with their places (`tokenize`,
`sentences`). The rules cut words alone: all that they leave out is white space, so places are found after.

    split     tokenised already: tokens are what str.split() gives, a line is a sentence
    en        European rules, word runs for other scripts; a blank line ends a sentence, a line break does not
    zh        jieba's words; a line break ends a sentence
    zh-char   sentences as zh, one token a Han character
    auto      zh for lines in which Han characters outnumber other words, en for the rest

`auto` decides line by line, because Chinese text has a paragraph a line, and then reads neighbouring `en`
lines together, because English books are wrapped. A line without any letter goes with the line before it.

What must not change: `text[token.start:token.end] == token.text`; no token is empty or holds whitespace, and
between two tokens there is nothing else; the tokens of `sentences`, chained, are those of `tokenize`; time is
linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain, islice

from polyseme.errors import UsageError
from polyseme.segmentations import SEGMENTATIONS
from polyseme.text.segment import chinese, english
from polyseme.text.segment.token import HAN, Token

__all__ = ["Token", "sentence_words", "sentences", "tokenize", "words"]

_HAN_RUN = re.compile(f"[{HAN}]++")
_OTHER_WORD = re.compile(rf"[^\W\d_{HAN}]++")


def tokenize(text: str, how: str) -> list[Token]:
    """Cut the whole text into tokens, as one sentence."""
    return list(_placed(text, words(text, how)))


def sentences(text: str, how: str) -> list[list[Token]]:
    """Cut raw text into sentences of tokens; no sentence is empty."""
    found = sentence_words(text, how)
    tokens = _placed(text, chain.from_iterable(found))
    return [list(islice(tokens, len(sentence))) for sentence in found]


def words(text: str, how: str) -> list[str]:
    """Cut the whole text into words, as one sentence."""
    _check(how)
    if how in ("split", "en"):
        return text.split() if how == "split" else english.cut_words(text)
    return list(chain.from_iterable(sentence_words(text, how)))


def sentence_words(text: str, how: str) -> list[list[str]]:
    """Cut raw text into sentences of words; no sentence is empty."""
    _check(how)
    if how == "auto":
        return [sentence for block, rule in _blocks(text) for sentence in _sentences(block, rule)]
    return list(_sentences(text, how))


def _placed(text: str, found: Iterable[str]) -> Iterator[Token]:
    """Words in the order of the text as tokens: each stands behind the one before and white space."""
    end = 0
    for word in found:
        start = text.index(word, end)
        end = start + len(word)
        yield Token(word, start, end)


def _check(how: str) -> None:
    if how not in SEGMENTATIONS:
        near = get_close_matches(how, SEGMENTATIONS, n=1, cutoff=0.3)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"{how!r} is not a way to segment text. Choose one of {', '.join(SEGMENTATIONS)}.{guess}"
        )


def _sentences(text: str, how: str) -> Iterable[list[str]]:
    if how == "en":
        return english.cut_sentences(text)
    if how == "split":
        return filter(None, map(str.split, text.split("\n")))
    cut = chinese.cut_words if how == "zh" else chinese.cut_characters
    return filter(None, map(cut, chinese.cut_sentences(text)))


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (block, rule) for stretches of lines under one rule; they cover the text."""
    if text.isascii() or not _HAN_RUN.search(text):
        yield text, "en"
        return
    block: list[str] = []
    rule = ""
    for line in text.split("\n"):
        found = _rule(line) or rule
        if rule and found != rule:
            yield "\n".join(block), rule
            block = []
        block.append(line)
        rule = found
    yield "\n".join(block), rule or "en"


def _rule(line: str) -> str:
    """Return the rule for one line, or nothing when the line holds no letter."""
    han = sum(map(len, _HAN_RUN.findall(line)))
    if not han:
        return "en" if _OTHER_WORD.search(line) else ""
    return "zh" if han > len(_OTHER_WORD.findall(line)) else "en"
