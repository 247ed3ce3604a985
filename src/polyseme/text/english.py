"""European text to sentences and Penn-style tokens; sensible word runs in every other script.

    text.token, text.abbreviations  ->  text.english  ->  text.segment

Comes in: a string and the part of it to read. Goes out: tokens with places in the whole string.
One regular expression cuts the tokens; it hands words with apostrophes and words before a dot to small
functions. Sentences are then cut between tokens, so both views always agree. A blank line (or a form feed)
ends a sentence, a single line break does not.

What must not change: the surface is kept (quotes stay quotes); the expression never backtracks over more
than one token, so time is linear; nothing looks across a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from polyseme.text.abbreviations import BEFORE_NUMBER, MAYBE_LAST, NEVER_LAST, OFTEN_LAST, OPENERS
from polyseme.text.token import EMOJI, HAN, Token, marks

_PARAGRAPH_BREAK = re.compile("\n[^\\S\n]*+\n\\s*+|[\f\u2029]\\s*+")
_NEXT_WORD = re.compile(r"[^\S\n]*+\n?+[^\S\n]*+([^\W_]++|,)")

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
    apart = r"(?=[\s,;!?\"”)])"
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


def cut_words(text: str, start: int, end: int) -> list[Token]:
    """Return the tokens of `text[start:end]`."""
    tokens: list[Token] = []
    append = tokens.append
    for match in _expression().finditer(text, start, end):
        if match.lastgroup is None:
            append(Token(match[0], match.start(), match.end()))
        elif match.lastgroup == "apostrophe":
            tokens.extend(_around_apostrophes(match[0], match.start()))
        elif _owns_dot(match["dot"], text, match.end(), end, tokens):
            append(Token(match[0], match.start(), match.end()))
        else:
            append(Token(match["dot"], match.start(), match.end() - 1))
            append(Token(".", match.end() - 1, match.end()))
    return tokens


def _around_apostrophes(word: str, start: int) -> Iterator[Token]:
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
    for begin, end in pairwise(cuts):
        yield Token(word[begin:end], start + begin, start + end)


def _owns_dot(word: str, text: str, after: int, end: int, before: list[Token]) -> bool:
    """Say whether the dot between `word` and `text[after]` belongs to the word."""
    if word in NEVER_LAST or word in MAYBE_LAST or word in OFTEN_LAST:
        return True
    numbered = word in BEFORE_NUMBER
    if not numbered and not (len(word) == 1 and word.isupper()):
        return False
    match = _NEXT_WORD.match(text, after, end)
    if match is None:
        return False
    follower = match[1]
    if numbered and follower[0].isdigit():
        return True
    if len(word) > 1 or word.islower() or follower in OPENERS:
        return False
    if word == "I" and before and before[-1].text[0].islower():  # "So am I. John stayed."
        return False
    return follower == "," or follower[0].isalpha()


def cut_sentences(text: str, start: int, end: int) -> list[list[Token]]:
    """Return the sentences of `text[start:end]`, none of them empty."""
    found: list[list[Token]] = []
    for match in _PARAGRAPH_BREAK.finditer(text, start, end):
        found.extend(_cut_paragraph(cut_words(text, start, match.start())))
        start = match.end()
    found.extend(_cut_paragraph(cut_words(text, start, end)))
    return found


def _cut_paragraph(tokens: list[Token]) -> Iterator[list[Token]]:
    first = stop = 0
    for place in [i for i, token in enumerate(tokens) if token.text[-1] in _ENDS]:
        if place < stop:  # inside the run of ends and quotes that was looked at already
            continue
        stop = _after_closers(tokens, place + 1)
        if stop < len(tokens) and _ends(tokens, first, place, stop):
            yield tokens[first:stop]
            first = stop
    if first < len(tokens):
        yield tokens[first:]


def _after_closers(tokens: list[Token], stop: int) -> int:
    """Return the first place after further ends, closing quotes and brackets."""
    while stop < len(tokens):
        token = tokens[stop]
        glued = token.start == tokens[stop - 1].end
        spaced = stop + 1 == len(tokens) or tokens[stop + 1].start > token.end
        closes = (glued and token.text in _CLOSERS) or (spaced and token.text in _CLOSERS_AFTER_SPACE)
        if not closes and token.text[0] not in _ENDS:
            break
        stop += 1
    return stop


def _ends(tokens: list[Token], first: int, place: int, stop: int) -> bool:
    """Say whether a sentence from `first`, with its end at `place`, stops before the token at `stop`."""
    end, following = tokens[place].text, tokens[stop]
    if following.text in _CONTINUES:
        return False
    head = stop  # the first word of what follows
    while head < len(tokens) and tokens[head].text in _OPENERS:
        head += 1
    if head == len(tokens):
        return False
    word = tokens[head].text
    if following.start == tokens[stop - 1].end and end not in _NO_SPACE_NEEDED:
        return head == stop and word[0].isupper() and end in _ENDS
    if end == "." and place == first + 1 and _is_enumerator(tokens[first].text):
        return False
    if word[0].islower():  # it goes on, unless nobody writes capitals here
        return tokens[first].text[0].islower() and end in _ENDS and stop == place + 1
    if end != "." and not end.strip(".…"):  # after an ellipsis, "I" says nothing
        return word != "I"
    if end in _ENDS:
        return True
    bare = end[:-1]
    return bare not in NEVER_LAST and (bare in OFTEN_LAST or word in OPENERS)


def _is_enumerator(text: str) -> bool:
    """Say whether `text` numbers a heading or an item: 3 of `3. Results`, IV, b."""
    return (text.isdigit() and len(text) < 4) or len(text) == 1 or not text.strip("IVXLC")
