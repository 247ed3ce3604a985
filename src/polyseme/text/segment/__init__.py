"""Segment raw text in any script: sentences, and tokens with character offsets.

    text.segment.english, chinese, letters  ->  text.segment  ->  corpus, elmo, tasks, search, server

    split     text that is tokenised already: split at white space; a line is a sentence
    en        rules for European languages, runs of letters in other scripts; a blank line ends a sentence,
              a line break does not
    zh        jieba's words; a line break ends a sentence
    zh-char   sentences as zh, one token per Han character
    letters   one token per character; a line is a sentence
    auto      zh for lines in which Han characters outnumber other words, en for the rest

`auto` decides line by line, because Chinese text has one paragraph per line, and then reads adjacent `en`
lines together, because English books are wrapped. A line without letters follows the rule of the line before
it.

The rules return the texts of tokens. All they leave out is white space, so offsets are found afterwards.
A word list may join the words of an English name to one token, with `_` between them.

What must not change: `text[token.start:token.end] == token.text`, but for white space, which is `_` in a
joined name; no token is empty or contains white space, and only white space is between tokens; the tokens of
`split_sentences`, chained, are those of `tokenize`; time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain, islice

from polyseme.errors import UsageError
from polyseme.segmentations import SEGMENTATIONS
from polyseme.text.segment import chinese, english
from polyseme.text.segment.letters import split_letters
from polyseme.text.segment.token import HAN, Token
from polyseme.text.segment.word_list import WordList

__all__ = [
    "Token",
    "WordList",
    "locate",
    "split_blocks",
    "split_sentences",
    "split_token_texts",
    "token_texts",
    "tokenize",
]

_HAN_RUN = re.compile(f"[{HAN}]++")
_OTHER_WORD = re.compile(rf"[^\W\d_{HAN}]++")


def tokenize(text: str, segment: str, word_list: WordList | None = None) -> list[Token]:
    """Split text into tokens, as one sentence.

    Args:
        text: Text of any length.
        segment: A segmentation: split, en, zh, zh-char, letters or auto.
        word_list: Words that `zh` must know in addition to jieba's dictionary, and names that `en` must join.

    Returns:
        The tokens with their offsets.

    Raises:
        UsageError: There is no such segmentation.

    Example:
        >>> tokenize("It's late.", "en")[1]
        Token(text="'s", start=2, end=4)

    """
    words = token_texts(text, segment, word_list)
    return [Token(word, *span) for word, span in zip(words, locate(text, words, word_list), strict=True)]


def split_sentences(text: str, segment: str, word_list: WordList | None = None) -> list[list[Token]]:
    """Split text into sentences of tokens; arguments as in `tokenize`. No sentence is empty."""
    sentences = split_token_texts(text, segment, word_list)
    spans = locate(text, chain.from_iterable(sentences), word_list)
    return [
        [Token(word, *span) for word, span in zip(sentence, islice(spans, len(sentence)), strict=True)]
        for sentence in sentences
    ]


def token_texts(text: str, segment: str, word_list: WordList | None = None) -> list[str]:
    """Split text into tokens as plain strings, as one sentence; faster than `tokenize`."""
    _check(segment)
    if segment == "split":
        return text.split()
    if segment == "letters":
        return split_letters(text)
    if segment == "en" and (word_list is None or not word_list.joined):
        return english.split_words(text)
    return list(chain.from_iterable(split_token_texts(text, segment, word_list)))


def split_token_texts(text: str, segment: str, word_list: WordList | None = None) -> list[list[str]]:
    """Split text into sentences of plain strings; faster than `split_sentences`. No sentence is empty."""
    _check(segment)
    if segment == "auto":
        blocks = split_blocks(text)
        return [sentence for block, rule in blocks for sentence in _apply_rule(block, rule, word_list)]
    return list(_apply_rule(text, segment, word_list))


def locate(
    text: str, words: Iterable[str], word_list: WordList | None = None, end: int = 0
) -> Iterator[tuple[int, int]]:
    """Find the offsets of words, which are in the order of the text, from `end` on."""
    names = word_list.joined if word_list is not None else {}
    for word in words:
        match = names[word].search(text, end) if word in names else None
        if match is None:
            start = text.index(word, end)
            end = start + len(word)
        else:
            start, end = match.span()
        yield start, end


def _check(segment: str) -> None:
    """Refuse a segmentation that does not exist."""
    if segment not in SEGMENTATIONS:
        close = get_close_matches(segment, SEGMENTATIONS, n=1, cutoff=0.3)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(
            f"{segment!r} is not a segmentation. Choose one of {', '.join(SEGMENTATIONS)}.{guess}"
        )


def _apply_rule(text: str, rule: str, word_list: WordList | None) -> Iterable[list[str]]:
    """Split text into sentences by one rule, not auto."""
    if rule == "en":
        sentences = english.split_sentences(text)
        return sentences if word_list is None else map(word_list.join_names, sentences)
    if rule in ("split", "letters"):
        split = str.split if rule == "split" else split_letters
        return filter(None, map(split, text.split("\n")))
    if rule == "zh":
        known = word_list if word_list is not None and word_list.has_chinese else None
        return filter(None, chinese.split_sentence_words(text, known))
    return filter(None, map(chinese.split_characters, chinese.split_sentences(text)))


def split_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (block, rule) for runs of lines under one rule; the blocks cover the text."""
    if text.isascii() or not _HAN_RUN.search(text):
        yield text, "en"
        return
    block: list[str] = []
    rule = ""
    for line in text.split("\n"):
        line_rule = _detect_rule(line) or rule
        if rule and line_rule != rule:
            yield "\n".join(block), rule
            block = []
        block.append(line)
        rule = line_rule
    yield "\n".join(block), rule or "en"


def _detect_rule(line: str) -> str:
    """The rule for one line; empty if the line has no letters."""
    han = sum(map(len, _HAN_RUN.findall(line)))
    if not han:
        return "en" if _OTHER_WORD.search(line) else ""
    return "zh" if han > len(_OTHER_WORD.findall(line)) else "en"
