"""Split Chinese text into sentences, and these into words (jieba's, by rjieba) or characters.

    text.segment.token, text.segment.word_list  ->  text.segment.chinese  ->  text.segment

Words contain all characters of the text, in order, except white space. A line break ends a
sentence, and so do 。！？；… and, after Han text, !?;． with the closing quotes and brackets that
follow. A piece without any word, such as …… at the start of a line, begins the next sentence.

Traditional characters are segmented as simplified ones, which jieba's dictionary knows better.

What must not change: without a word list, words of simplified text are those of jieba's default mode. rjieba
keeps every character, but cannot read lone surrogates and splits emoji: both are kept away from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, islice, pairwise

from polyseme.text.segment.token import EMOJI, HAN, marks
from polyseme.text.segment.word_list import WordList
from polyseme.text.simplified import simplify

_END = "。！？；…｡．"
_CLOSERS = "」』”’）】》〉〕］｝)\\]}"
# A comma after the closing quote continues the sentence: “走！”，他说。
_SENTENCE_END = re.compile(
    rf"[{_END}!?;](?:(?<=[{_END[:-1]}])|(?<=[{HAN}{_CLOSERS}].))[{_END}!?;{_CLOSERS}]*+(\"[{_END}!?;{_CLOSERS}]*+)?+(?![，、,])"
)
_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s")
_GROUP = 64  # sentences that are segmented at once
_SEPARATOR = "\0"  # between them: never part of a word
_MAYBE_UNSPLIT = re.compile(
    "[\u20e3\u2300-\u2bff\ud800-\udfff\U0001f000-\U0001faff]"
)  # a fast check before `_unsplit`


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of `text`, including the white space around them."""
    for line in text.split("\n"):
        for begin, end in _spans_of_line(line):
            yield line[begin:end]


def _spans_of_line(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and stop of the sentences of a line."""
    begin = searched = 0  # start of the sentence; of what was not yet searched for a word
    seen, quotes = 0, 0  # number of quotes before `seen`: after an odd number a straight quote closes
    for match in _SENTENCE_END.finditer(text):
        stop = match.end()
        if match[1] is not None:
            quote = match.start(1)
            quotes += sum(text.count(mark, seen, quote) for mark in '"“”')
            seen = quote
            if quotes % 2 == 0:
                stop = quote
        if _WORD.search(text, searched, stop):
            yield begin, stop
            begin = stop
        searched = stop
    if begin < len(text):
        yield begin, len(text)


def split_sentence_words(text: str, word_list: WordList | None = None) -> Iterator[list[str]]:
    """Yield the words of each sentence, as `split_words` does; a sentence of white space has none.

    jieba segments many sentences at once, which is faster.
    """
    sentences = split_sentences(text)
    while group := list(islice(sentences, _GROUP)):
        joined = _SEPARATOR.join(group)
        plain = group
        if _MAYBE_UNSPLIT.search(joined) or joined.count(_SEPARATOR) >= len(group):
            plain = [sentence for sentence in group if not _needs_care(sentence)]
            joined = _SEPARATOR.join(plain)
        simplified = simplify(joined)
        cut = _cut_joined(simplified, len(plain), word_list)
        for sentence in group:
            if plain is not group and _needs_care(sentence):
                yield split_words(sentence, word_list)
                continue
            parts = next(cut)
            words = parts if simplified == joined else _restore(sentence, parts)
            yield [word for word in words if not word.isspace()] if _SPACE.search(sentence) else words


def _needs_care(sentence: str) -> bool:
    """Whether a sentence cannot be segmented together with others: emoji, surrogates, the separator."""
    return _SEPARATOR in sentence or _MAYBE_UNSPLIT.search(sentence) is not None


def _cut_joined(joined: str, number: int, word_list: WordList | None) -> Iterator[list[str]]:
    import rjieba  # here, because it loads a dictionary

    if word_list is None:
        return _split_at_separators(rjieba.cut(joined), number)
    plain, listed = (_split_at_separators(words, number) for words in word_list.cut_twice(joined))
    return map(word_list.merge, plain, listed)


def _restore(text: str, words: list[str]) -> list[str]:
    """The words of the text itself, from the words of its simplified form, of the same lengths."""
    return [text[start:end] for start, end in pairwise([0, *accumulate(map(len, words))])]


def _split_at_separators(words: list[str], number: int) -> Iterator[list[str]]:
    start = 0
    for _ in range(number - 1):
        stop = words.index(_SEPARATOR, start)
        yield words[start:stop]
        start = stop + 1
    yield words[start:]


def split_words(text: str, word_list: WordList | None = None) -> list[str]:
    """Split text into jieba's words and those of the list, without white space."""
    import rjieba  # here, because it loads a dictionary

    cut = rjieba.cut if word_list is None else word_list.cut
    words: list[str] = []
    for number, part in enumerate(_unsplit().split(text) if _MAYBE_UNSPLIT.search(text) else [text]):
        unsplit = number % 2 == 1  # text for jieba and what must not be split alternate
        if unsplit:
            words.append(part)
            continue
        simplified = simplify(part)
        parts = cut(simplified)
        if simplified != part:
            parts = _restore(part, parts)
        words += [word for word in parts if not word.isspace()]
    return words


def split_characters(text: str) -> list[str]:
    """Split text into single Han characters; Latin words and numbers are not split."""
    return _characters().findall(text)


@cache
def _unsplit() -> re.Pattern[str]:
    return re.compile(f"({EMOJI}|[\ud800-\udfff])")


@cache
def _characters() -> re.Pattern[str]:
    mark = marks()
    letters = rf"[^\W\d_{HAN}]++(?:[{mark}]++[^\W_{HAN}]*+)*+"
    run = rf"(?:\d++(?:[.,]\d++)*+(?:{letters})?+|{letters}[^\W_{HAN}]*+)"
    quick = f"[{HAN}](?=[{HAN}，。、：；！？“”])"  # fast path for most characters: no combining mark follows
    return re.compile(rf"{quick}|{EMOJI}|{run}|\S[{mark}]*+")
