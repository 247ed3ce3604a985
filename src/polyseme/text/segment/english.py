"""Split European text into sentences and Penn-style tokens, other scripts into runs of letters.

    text.segment.token, text.segment.abbreviations  ->  text.segment.english  ->  text.segment

Words contain all characters of the text, in order, except white space. One regular expression splits a chunk,
the text between white space; small functions handle words with apostrophes and words before a dot. Sentence
boundaries are then chosen between words, so sentences and tokens always agree. A blank line (or a form feed)
ends a sentence, a single line break does not.

The expression does not look beyond white space, and most chunks recur: so each chunk is split by itself, and
short ones are cached. Only the dot of No. or J. depends on the neighbouring chunks.

What must not change: characters are not replaced (quotes stay quotes); the expression never backtracks over
more than one token, so time is linear; nothing looks across a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, pairwise

from polyseme.text.segment.abbreviations import BEFORE_NUMBER, MAYBE_LAST, NEVER_LAST, OFTEN_LAST, OPENERS
from polyseme.text.segment.token import EMOJI, HAN, marks

_PARAGRAPH_BREAK = re.compile("\n[^\\S\n]*+\n\\s*+|\f\\s*+|\u2029\\s*+")
_FOLLOWER = re.compile(r"[^\W_]++|,")
_MAX_CACHED = 1 << 16  # chunks in the cache
_MAX_CACHED_LENGTH = 20  # characters: longer chunks seldom recur

_ENDS = frozenset(".?!…‽‼⁇⁈⁉。！？｡؟۔।॥։።")
_NO_SPACE_NEEDED = frozenset("。！？｡؟۔।॥")
_CLOSERS = frozenset([*"\"'”’)]}»›」』）】》“‘«_*", "''"])
_CLOSERS_AFTER_SPACE = frozenset("”)]}»")
_OPENERS = frozenset([*"\"'“‘„‚«‹»([{「『（【《_*¿¡-–—―•", "``", "--"])
_CONTINUES = frozenset(",;:)]}%，、；：/")

_ENGLISH_SUFFIXES = frozenset(("s", "d", "m", "re", "ve", "ll"))
_ELISION = re.compile(
    "(?:[ldjmnstc]|qu|jusqu|lorsqu|puisqu|quoiqu|(?:[dn][ae]|a|su|co)ll|un|quell|quest|bell|sant|gl|degl)['’]",
    re.IGNORECASE,
)
_APOSTROPHE = re.compile("['’]")


@cache
def _expression() -> re.Pattern[str]:
    char, letter = rf"[^\W_{HAN}]", rf"[^\W\d_{HAN}]"
    word = rf"{char}++(?:[{marks()}]++{char}*+)*+"
    digits = r"\d++(?:[.,:/]\d++)*+"
    more = rf"(?:(?:[-‐‑·_&]|\.(?=[a-z0-9]))(?:{digits}(?:{word})?+|{word}))*+"
    number = rf"(?:(?<!\S)[-+−])?+(?:(?<![\w.])\.)?+{digits}"
    link = rf"\s<>\"“”«»{HAN}\u3000-\u303f\uff00-\uffef"
    apart = r"(?=[,;!?\"”)]|\Z)"
    return re.compile(
        "|".join(
            (
                r"[Cc]an(?=not\b)",
                r"CAN(?=NOT\b)",
                rf"[A-Za-z]++{apart}",  # fast path for most words
                rf"{letter}++{apart}",
                rf"(?:[Hh]ttps?|[Ff]tp)://(?=\w)[^{link}]*[^{link}'’.,;:!?)\]}}…]",
                rf"[Ww]ww\.(?=\w)[^{link}]*[^{link}'’.,;:!?)\]}}…]",
                # An e-mail address; its bounds keep the search for the @ short.
                r"\w[\w.+-]{0,63}+@[\w-]{1,63}+(?:\.(?=\w)[\w-]{1,63}+)++",
                # U.S., e.g., U.S.-based, and the few with longer parts.
                rf"(?:(?:{letter}\.){{2,}}+(?![a-z])(?:{letter}(?![\w.]))?+|{letter}\.{letter}(?![\w.])"
                rf"|(?:Ph\.D|D\.Phil|M\.Sc|B\.Sc|Ed\.D)\.)(?:[-‐‑]{word})*+",
                EMOJI,
                # A word before a dot: `_has_dot` decides.
                rf"(?P<dot>{letter}{{1,10}}+)\.(?![.a-z0-9])",
                # Any number or word, with hyphens; if it has apostrophes, `_split_at_apostrophes` splits it.
                rf"(?:{number}(?:%|(?:{word})?+)|{word}){more}(?P<apostrophe>(?:['’]{word}{more})++)?+",
                # Short forms that begin with an apostrophe, after a space or after U.S. and the like.
                r"['’](?:[Ee]m|[Tt]is|[Tt]was|[Tt]were|[Tt]would|[Tt]will|[Tt]il|\d\ds)\b",
                r"(?<=[\w.)])['’](?:[sSdDmM]|ll|re|ve|LL|RE|VE)\b",
                r"\.\.++|…++|--++|[—―]++|``|''",
                r"[@#]\d*+[^\W\d]\w*+",
                # Everything else, one character each.
                rf"\S[{marks()}]*+",
            )
        )
    )


def split_words(text: str) -> list[str]:
    """Split text into words."""
    return list(
        chain.from_iterable(_split_chunks(paragraph.split())[0] for paragraph in _split_paragraphs(text))
    )


def split_sentences(text: str) -> list[list[str]]:
    """Split text into sentences, none of them empty."""
    paragraphs = map(str.split, _split_paragraphs(text))
    return [sentence for chunks in paragraphs for sentence in _split_paragraph(*_split_chunks(chunks))]


def _split_paragraphs(text: str) -> Iterator[str]:
    """Split text at blank lines."""
    start = 0
    for match in _PARAGRAPH_BREAK.finditer(text):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _split_chunks(chunks: list[str]) -> tuple[list[str], set[int]]:
    """The words of a paragraph, and the positions of words after white space."""
    split = list(map(_chunk_cache.__getitem__, chunks))
    for number in [number for number, words in enumerate(split) if not words]:
        before = split[number - 1][-1] if number else ""
        following = chunks[number + 1] if number + 1 < len(chunks) else ""
        split[number] = _split_chunk(chunks[number], (before, following))
    return list(chain.from_iterable(split)), set(accumulate(map(len, split), initial=0))


class _ChunkCache(dict[str, Sequence[str]]):
    """Chunks and their words; empty if the words depend on the neighbours of the chunk."""

    def __init__(self, max_chunks: int = _MAX_CACHED) -> None:
        super().__init__()
        self._max_chunks = max_chunks

    def __missing__(self, chunk: str) -> Sequence[str]:
        words = _split_chunk(chunk, None)
        if len(chunk) <= _MAX_CACHED_LENGTH:
            if len(self) >= self._max_chunks:
                self.clear()
            self[chunk] = tuple(words)
        return words


_chunk_cache = _ChunkCache()


def _split_chunk(chunk: str, neighbours: tuple[str, str] | None) -> list[str]:
    """Split a chunk, given the word before and the chunk after it; empty if they are needed and None."""
    words: list[str] = []
    before, following = neighbours or ("", "")
    for match in _expression().finditer(chunk):
        if match.lastgroup is None:
            words.append(match[0])
        elif match.lastgroup == "apostrophe":
            words.extend(_split_at_apostrophes(match[0]))
        elif neighbours is None and _depends_on_neighbours(match["dot"]):
            return []
        elif _has_dot(match["dot"], chunk[match.end() :] or following, words[-1] if words else before):
            words.append(match[0])
        else:
            words += (match["dot"], ".")
    return words


def _split_at_apostrophes(word: str) -> Iterator[str]:
    """Split do|n't, it|'s, I|'d|'ve, l'|homme; not o'clock and O'Brien."""
    bounds = [0, len(word)]
    stop = len(word)  # suffixes are split off from the right, one by one
    for match in reversed(list(_APOSTROPHE.finditer(word))):
        suffix = word[match.end() : stop].lower()
        if suffix == "t" and match.start() > 1 and word[match.start() - 1] in "nN":
            stop = match.start() - 1
        elif suffix in _ENGLISH_SUFFIXES:
            stop = match.start()
        else:
            break
        bounds.append(stop)
    elided = _ELISION.match(word, 0, stop)
    if elided and elided.end() < stop:
        bounds.append(elided.end())
    bounds.sort()
    return (word[begin:end] for begin, end in pairwise(bounds))


def _depends_on_neighbours(word: str) -> bool:
    """Whether the neighbours decide if the dot after `word` is part of it."""
    return word in BEFORE_NUMBER or (len(word) == 1 and word.isupper())


def _has_dot(word: str, after: str, before: str) -> bool:
    """Whether the dot between `word` and the text `after` it is part of the word."""
    if word in NEVER_LAST or word in MAYBE_LAST or word in OFTEN_LAST:
        return True
    if not _depends_on_neighbours(word):
        return False
    match = _FOLLOWER.match(after)
    if match is None:
        return False
    follower = match[0]
    if word in BEFORE_NUMBER and follower[0].isdigit():
        return True
    if len(word) > 1 or word.islower() or follower in OPENERS:
        return False
    if word == "I" and before[:1].islower():  # "So am I. John stayed."
        return False
    return follower == "," or follower[0].isalpha()


def _split_paragraph(words: list[str], spaces: set[int]) -> Iterator[list[str]]:
    """Split the words of a paragraph into sentences; `spaces`: positions of words after white space."""
    first = stop = 0
    for position in [i for i, word in enumerate(words) if word[-1] in _ENDS]:
        if position < stop:  # inside a run of ends and quotes that was examined already
            continue
        stop = _skip_closers(words, spaces, position + 1)
        if stop < len(words) and _is_sentence_end(words, spaces, first, position, stop):
            yield words[first:stop]
            first = stop
    if first < len(words):
        yield words[first:]


def _skip_closers(words: list[str], spaces: set[int], stop: int) -> int:
    """The first position after further ends, closing quotes and brackets."""
    while stop < len(words):
        word = words[stop]
        is_attached = stop not in spaces
        has_space_after = stop + 1 == len(words) or stop + 1 in spaces
        closes = (is_attached and word in _CLOSERS) or (has_space_after and word in _CLOSERS_AFTER_SPACE)
        if not closes and word[0] not in _ENDS:
            break
        stop += 1
    return stop


def _is_sentence_end(words: list[str], spaces: set[int], first: int, position: int, stop: int) -> bool:
    """Whether a sentence from `first`, with an end mark at `position`, stops before the word at `stop`."""
    end = words[position]
    if words[stop] in _CONTINUES:
        return False
    head = stop  # first word of the text that follows
    while head < len(words) and words[head] in _OPENERS:
        head += 1
    if head == len(words):
        return False
    word = words[head]
    if stop not in spaces and end not in _NO_SPACE_NEEDED:
        return head == stop and word[0].isupper() and end in _ENDS
    if end == "." and position == first + 1 and _is_enumerator(words[first]):
        return False
    if word[0].islower():  # the sentence continues, unless the text has no capitals
        return words[first][0].islower() and end in _ENDS and stop == position + 1
    if end != "." and not end.strip(".…"):  # after an ellipsis "I" is no evidence
        return word != "I"
    if end in _ENDS:
        return True
    bare = end[:-1]
    return bare not in NEVER_LAST and (bare in OFTEN_LAST or word in OPENERS)


def _is_enumerator(text: str) -> bool:
    """Whether `text` numbers a heading or an item: 3 of `3. Results`, IV, b."""
    return (text.isdigit() and len(text) < 4) or len(text) == 1 or not text.strip("IVXLC")
