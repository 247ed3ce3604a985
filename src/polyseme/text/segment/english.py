"""European text to sentences and Penn-style tokens; sensible word runs in every other script.

    text.segment.token, text.segment.abbreviations  ->  text.segment.english  ->  text.segment

Comes in: a string. Goes out: its words; all its characters are in them, in order, but white space.
One regular expression cuts a chunk, which is what stands between white space; it hands words with apostrophes
and words before a dot to small functions. Sentences are then cut between words, so both views always agree. A
blank line (or a form feed) ends a sentence, a single line break does not.

White space tells the expression no more than the end of a string does, and most chunks come again and again:
so a chunk is cut by itself, and short ones are remembered. Only the dot of No. or J. asks the neighbours.

What must not change: the surface is kept (quotes stay quotes); the expression never backtracks over more
than one token, so time is linear; nothing looks across a blank line.
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
_MOST = 1 << 16  # chunks that are remembered
_SHORT = 20  # characters that they have at most: longer ones seldom come again

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
                rf"[A-Za-z]++{apart}",  # the quick way for most words
                rf"{letter}++{apart}",
                rf"(?:[Hh]ttps?|[Ff]tp)://(?=\w)[^{link}]*[^{link}'’.,;:!?)\]}}…]",
                rf"[Ww]ww\.(?=\w)[^{link}]*[^{link}'’.,;:!?)\]}}…]",
                # An e-mail address; its bounds keep the search for the @ short.
                r"\w[\w.+-]{0,63}+@[\w-]{1,63}+(?:\.(?=\w)[\w-]{1,63}+)++",
                # U.S., e.g., U.S.-based, and the few with longer parts.
                rf"(?:(?:{letter}\.){{2,}}+(?![a-z])(?:{letter}(?![\w.]))?+|{letter}\.{letter}(?![\w.])"
                rf"|(?:Ph\.D|D\.Phil|M\.Sc|B\.Sc|Ed\.D)\.)(?:[-‐‑]{word})*+",
                EMOJI,
                # A word before a dot: `_owns_dot` decides.
                rf"(?P<dot>{letter}{{1,10}}+)\.(?![.a-z0-9])",
                # Any number or word, with hyphens; if it has apostrophes, `_around_apostrophes` cuts it.
                rf"(?:{number}(?:%|(?:{word})?+)|{word}){more}(?P<apostrophe>(?:['’]{word}{more})++)?+",
                # Short forms that begin with an apostrophe, after a space or after U.S. and the like.
                r"['’](?:[Ee]m|[Tt]is|[Tt]was|[Tt]were|[Tt]would|[Tt]will|[Tt]il|\d\ds)\b",
                r"(?<=[\w.)])['’](?:[sSdDmM]|ll|re|ve|LL|RE|VE)\b",
                r"\.\.++|…++|--++|[—―]++|``|''",
                r"[@#]\d*+[^\W\d]\w*+",
                # Whatever is left, one by one.
                rf"\S[{marks()}]*+",
            )
        )
    )


def cut_words(text: str) -> list[str]:
    """Return the words of `text`."""
    return list(chain.from_iterable(_words(paragraph.split())[0] for paragraph in _paragraphs(text)))


def cut_sentences(text: str) -> list[list[str]]:
    """Return the sentences of `text`, none of them empty."""
    paragraphs = map(str.split, _paragraphs(text))
    return [sentence for chunks in paragraphs for sentence in _cut_paragraph(*_words(chunks))]


def _paragraphs(text: str) -> Iterator[str]:
    start = 0
    for match in _PARAGRAPH_BREAK.finditer(text):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _words(chunks: list[str]) -> tuple[list[str], set[int]]:
    """The words of a paragraph, and before which of them there is white space."""
    cut = list(map(_remembered.__getitem__, chunks))
    for place in [place for place, words in enumerate(cut) if not words]:
        before = cut[place - 1][-1] if place else ""
        following = chunks[place + 1] if place + 1 < len(chunks) else ""
        cut[place] = _cut_chunk(chunks[place], (before, following))
    return list(chain.from_iterable(cut)), set(accumulate(map(len, cut), initial=0))


class _Remembered(dict[str, Sequence[str]]):
    """Chunks and their words; none where the neighbours of a chunk have a say."""

    def __missing__(self, chunk: str) -> Sequence[str]:
        words = _cut_chunk(chunk, None)
        if len(chunk) <= _SHORT:
            if len(self) >= _MOST:
                self.clear()
            self[chunk] = tuple(words)
        return words


_remembered = _Remembered()


def _cut_chunk(chunk: str, neighbours: tuple[str, str] | None) -> list[str]:
    """The words of a chunk between its neighbours, a word and a chunk; none where it must know them."""
    words: list[str] = []
    before, following = neighbours or ("", "")
    for match in _expression().finditer(chunk):
        if match.lastgroup is None:
            words.append(match[0])
        elif match.lastgroup == "apostrophe":
            words.extend(_around_apostrophes(match[0]))
        elif neighbours is None and _asks_neighbours(match["dot"]):
            return []
        elif _owns_dot(match["dot"], chunk[match.end() :] or following, words[-1] if words else before):
            words.append(match[0])
        else:
            words += (match["dot"], ".")
    return words


def _around_apostrophes(word: str) -> Iterator[str]:
    """Cut do|n't, it|'s, I|'d|'ve, l'|homme; leave o'clock and O'Brien whole."""
    cuts = [0, len(word)]
    stop = len(word)  # suffixes come off the right end, one after the other
    for match in reversed(list(_APOSTROPHE.finditer(word))):
        suffix = word[match.end() : stop].lower()
        if suffix == "t" and match.start() > 1 and word[match.start() - 1] in "nN":
            stop = match.start() - 1
        elif suffix in _ENGLISH_SUFFIXES:
            stop = match.start()
        else:
            break
        cuts.append(stop)
    elided = _ELISION.match(word, 0, stop)
    if elided and elided.end() < stop:
        cuts.append(elided.end())
    cuts.sort()
    return (word[begin:end] for begin, end in pairwise(cuts))


def _asks_neighbours(word: str) -> bool:
    """Say whether what stands around it decides if `word` owns the dot behind it."""
    return word in BEFORE_NUMBER or (len(word) == 1 and word.isupper())


def _owns_dot(word: str, after: str, before: str) -> bool:
    """Say whether the dot between `word` and the text `after` it belongs to the word."""
    if word in NEVER_LAST or word in MAYBE_LAST or word in OFTEN_LAST:
        return True
    if not _asks_neighbours(word):
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


def _cut_paragraph(words: list[str], spaces: set[int]) -> Iterator[list[str]]:
    first = stop = 0
    for place in [i for i, word in enumerate(words) if word[-1] in _ENDS]:
        if place < stop:  # inside the run of ends and quotes that was looked at already
            continue
        stop = _after_closers(words, spaces, place + 1)
        if stop < len(words) and _ends(words, spaces, first, place, stop):
            yield words[first:stop]
            first = stop
    if first < len(words):
        yield words[first:]


def _after_closers(words: list[str], spaces: set[int], stop: int) -> int:
    """Return the first place after further ends, closing quotes and brackets."""
    while stop < len(words):
        word = words[stop]
        glued = stop not in spaces
        spaced = stop + 1 == len(words) or stop + 1 in spaces
        closes = (glued and word in _CLOSERS) or (spaced and word in _CLOSERS_AFTER_SPACE)
        if not closes and word[0] not in _ENDS:
            break
        stop += 1
    return stop


def _ends(words: list[str], spaces: set[int], first: int, place: int, stop: int) -> bool:
    """Say whether a sentence from `first`, with its end at `place`, stops before the word at `stop`."""
    end = words[place]
    if words[stop] in _CONTINUES:
        return False
    head = stop  # the first word of what follows
    while head < len(words) and words[head] in _OPENERS:
        head += 1
    if head == len(words):
        return False
    word = words[head]
    if stop not in spaces and end not in _NO_SPACE_NEEDED:
        return head == stop and word[0].isupper() and end in _ENDS
    if end == "." and place == first + 1 and _is_enumerator(words[first]):
        return False
    if word[0].islower():  # it goes on, unless nobody writes capitals here
        return words[first][0].islower() and end in _ENDS and stop == place + 1
    if end != "." and not end.strip(".…"):  # after an ellipsis, "I" says nothing
        return word != "I"
    if end in _ENDS:
        return True
    bare = end[:-1]
    return bare not in NEVER_LAST and (bare in OFTEN_LAST or word in OPENERS)


def _is_enumerator(text: str) -> bool:
    """Say whether `text` numbers a heading or an item: 3 of `3. Results`, IV, b."""
    return (text.isdigit() and len(text) < 4) or len(text) == 1 or not text.strip("IVXLC")
