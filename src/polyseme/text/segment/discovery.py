"""Find the new words of a Chinese text, persons' names above all, from the text itself.

    text.segment.ngrams, text.segment.name_characters, rjieba  ->  text.segment.discovery  ->  text.corpus

jieba knows the words of its dictionary and guesses the rest: it glues verbs to names (郭芙道, 杨过笑).
A string becomes a word of the text if its characters belong together (mutual information) and both sides are
free (branching entropy). A surname, a title or verbs of speech behind it lower the threshold; what stands
behind many names is no part of one. Entries of jieba's dictionary that are a name of this text and a verb
(玄德曰) are listed with count 0, which makes them no words.

What must not change: the result depends on the text only; time is linear, memory bounded by `SampledText`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polyseme.text.segment.name_characters import (
    AFTER_NAMES,
    AMBIGUOUS_SURNAMES,
    BEFORE_NAMES,
    COMPOUND_SURNAMES,
    FAMILIAR,
    KINDS,
    NEVER_FIRST,
    NEVER_LAST,
    SPEECH,
    SURNAMES,
    TITLES,
)
from polyseme.text.segment.ngrams import NgramTable, count_ngrams, is_han
from polyseme.text.simplified import simplify

if TYPE_CHECKING:
    import rjieba

MAX_CHARACTERS = 8_000_000  # of a text; of a longer one, blocks are taken evenly
BLOCK_CHARACTERS = 1 << 14
PERSON, PLACE, OTHER, NO_WORD = "nr", "ns", "nz", "x"  # jieba's tags

_MIN_COUNT = 5  # in a text of up to a million characters
_CHARACTERS_PER_COUNT = 200_000
_MIN_OTHER_COUNT = 10  # of a word that is no name
_FREE = 1.0  # least entropy of each side
_TIGHT = 6.0  # cohesion at which two words are one after all
_FULL_NAME = 3  # characters of a surname with a given name
_MOSTLY = 0.5  # share of occurrences
_FEW = 0.1  # share of occurrences
_LOOSE = 2.0  # cohesion of a name with its neighbours
_TOGETHER = 0.2  # product of the shares of two parts that stand together
_MIN_NAME_EVIDENCE = 18.0  # of a surname with a given name that is a word of the dictionary


@dataclass(frozen=True, slots=True)
class NewWord:
    """A word that was found in a text.

    Attributes:
        word: The string.
        count: How often the string occurs in the text that was read; 0: not a word, although jieba thinks so.
        tag: `nr` for a person, `ns` for a place, `nz` for another word, `x` for what is no word.
        score: Cohesion at its weakest split, in nats; 0 for what is no word.

    """

    word: str
    count: int
    tag: str
    score: float


@dataclass
class SampledText:
    """Blocks of a text of any size, taken evenly, at most `max_characters` in all.

    When the blocks are too many, every second one is dropped and from then on only every second is kept.
    """

    max_characters: int = MAX_CHARACTERS
    blocks: list[str] = field(default_factory=list)
    _step: int = 1
    _seen: int = 0
    _size: int = 0

    def add(self, text: str) -> None:
        """Add a part of the text."""
        for start in range(0, len(text), BLOCK_CHARACTERS):
            if self._seen % self._step == 0:
                self.blocks.append(text[start : start + BLOCK_CHARACTERS])
                self._size += len(self.blocks[-1])
            self._seen += 1
            if self._size > self.max_characters and len(self.blocks) > 1:
                self.blocks = self.blocks[::2]
                self._size = sum(map(len, self.blocks))
                self._step *= 2


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A frequent string with what was measured."""

    word: str
    count: int
    cohesion: tuple[float, ...]  # at each split
    opens: float
    closes: float
    speech: float  # share of occurrences before a verb of speech
    ends: float  # share of occurrences before a mark or a character that stands behind many names

    @property
    def weakest(self) -> float:
        return min(self.cohesion)


def discover_words(blocks: Iterable[str]) -> list[NewWord]:
    """Find the new words of a Chinese text.

    Args:
        blocks: The text, or evenly taken parts of it (`SampledText`).

    Returns:
        Words by falling count, then what are no words; in simplified characters.

    Example:
        >>> [found.word for found in discover_words([novel])][:3]
        ['杨过', '小龙女', '郭靖']

    """
    text = simplify("\n".join(blocks))
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)
    if not is_han(codes).any():
        return []
    min_count = max(_MIN_COUNT, len(codes) // _CHARACTERS_PER_COUNT)
    search = _Search(text, codes, count_ngrams(codes, min_count), min_count)
    return search.run()


class _Search:
    """The steps from frequent strings to words, shorter strings first."""

    def __init__(
        self,
        text: str,
        codes: np.ndarray[tuple[int], np.dtype[np.uint32]],
        tables: list[NgramTable],
        min_count: int,
    ) -> None:
        self._text, self._codes, self._tables, self._min_count = text, codes, tables, min_count
        self._after, self._before = set(AFTER_NAMES), set(BEFORE_NAMES)
        self._found: dict[str, NewWord] = {}
        self._n_han = int(is_han(codes).sum())
        self._jieba = plain_jieba()
        self._glued: set[str] = set()  # entries of jieba's dictionary that are a name and a neighbour

    def run(self) -> list[NewWord]:
        self._learn_neighbours([c for table in self._tables[:2] for c in self._list_free(table)])
        candidates = [candidate for table in self._tables for candidate in self._list_free(table)]
        for candidate in candidates:
            tag = self._classify(candidate)
            if tag:
                word = candidate.word
                self._found[word] = NewWord(word, candidate.count, tag, candidate.weakest)
        self._drop_beginnings()
        words = self._drop_known(sorted(self._found.values(), key=lambda new: (-new.count, new.word)))
        return [*words, *self._list_glued()]

    def _list_free(self, table: NgramTable) -> list[_Candidate]:
        """Strings whose both sides are free; a title behind a full name (安子文同志) counts as free."""
        needed = np.minimum(_FREE, 0.5 * np.log(table.counts))
        speech = table.share_before(self._find_characters(SPEECH))
        ends = table.share_before(self._find_characters(self._after) | ~is_han(self._codes))
        left, right = table.left >= needed, table.right >= needed
        if table.length == _FULL_NAME:
            named = self._find_characters(SURNAMES | AMBIGUOUS_SURNAMES)[table.starts]
            right |= named & (table.share_before(self._find_titles()) >= _MOSTLY)
        free = left & right & (table.cohesion.min(axis=1, initial=99) > 1)
        return [
            _Candidate(
                self._text[start : start + table.length],
                int(table.counts[row]),
                tuple(map(float, table.cohesion[row])),
                float(table.opens[row]),
                float(table.closes[row]),
                float(speech[row]),
                float(ends[row]),
            )
            for row in np.flatnonzero(free)
            for start in (int(table.starts[row]),)
        ]

    def _find_characters(self, wanted: Iterable[str]) -> NDArray[np.bool_]:
        """Where one of these characters stands."""
        return np.isin(self._codes, [ord(character) for character in sorted(wanted)])

    def _find_titles(self) -> NDArray[np.bool_]:
        """Where a title begins."""
        begins = np.zeros(len(self._codes), bool)
        begins[[match.start() for match in re.finditer("|".join(sorted(TITLES)), self._text)]] = True
        return begins

    def _learn_neighbours(self, candidates: list[_Candidate]) -> None:
        """Learn from names that are beyond doubt which characters stand behind and before any name."""
        sure = {c.word for c in candidates if _has_surname(c.word) and c.weakest >= 4 and c.speech >= 0.02}
        for table in self._tables[:2]:
            words = [self._text[s : s + table.length] for s in table.starts.tolist()]
            rows = np.array([word in sure for word in words], bool)
            needed = max(4, 0.1 * rows.sum())
            for step, learned in ((1, self._after), (-1, self._before)):
                counts = table.count_neighbours(rows, self._codes, step)
                frequent = np.flatnonzero(counts >= needed).astype(np.uint32)
                learned.update(map(chr, frequent[is_han(frequent)].tolist()))

    def _classify(self, candidate: _Candidate) -> str:
        """The tag of a word, or nothing if the candidate is none."""
        word, weakest = candidate.word, candidate.weakest
        if self._jieba.has_word(word):
            return self._classify_known(candidate)
        if self._is_glued(candidate) or self._is_phrase(candidate):
            return ""
        if self._is_named(candidate):
            return PERSON
        is_speaker = self._speaks(candidate) and candidate.count >= self._min_count + 2
        if is_speaker and weakest >= (3.3 if len(word) == 2 else 4.5):
            return PERSON
        if self._is_inseparable_speaker(candidate):
            return PERSON
        if len(word) > 2 and word[-1] not in KINDS and max(map(len, self._jieba.cut(word, False))) > 1:
            return ""
        is_plain = word[0] not in NEVER_FIRST and word[-1] not in NEVER_LAST
        is_frequent = candidate.count >= max(_MIN_OTHER_COUNT, self._min_count)
        is_used_alone = candidate.opens >= 0.05 and candidate.ends >= 0.2
        is_tight = weakest >= (5.0 if len(word) == 2 else 5.5)
        return OTHER if is_plain and is_frequent and is_used_alone and is_tight else ""

    def _classify_known(self, candidate: _Candidate) -> str:
        """The tag of a word of jieba's dictionary that is a name of the text, or holds one."""
        word, weakest = candidate.word, candidate.weakest
        tag = self._jieba.tag(word)[0][1]
        if self._holds_name(word):
            if self._is_chance(candidate):
                self._glued.add(word)
                return ""
            if self._is_glue_around(word):
                return ""
            return PERSON if tag.startswith("nr") else OTHER
        if self._is_glued(candidate):
            return ""
        needed = 99.0
        if candidate.speech >= 0.02 and tag.startswith("n") and (_has_surname(word) or tag == "nr"):
            needed = {"nr": 2.8, "n": 3.5, "nz": 3.5}.get(tag, 4.5)
        return PERSON if weakest >= needed or (self._speaks(candidate) and weakest >= 3.3) else ""

    def _speaks(self, candidate: _Candidate) -> bool:
        """Whether verbs of speech follow a string so often that it is a person."""
        word = candidate.word
        if word[-1] in NEVER_LAST:
            return False
        if word[0] in NEVER_FIRST:
            return candidate.speech >= 0.3 and candidate.opens >= 0.4 and candidate.weakest >= 3.5
        return candidate.speech >= 0.1 and candidate.opens >= 0.25

    def _is_inseparable(self, candidate: _Candidate, split: int) -> bool:
        """Whether both parts of a string hardly ever stand without the other (魂 and 天帝 of a 魂天帝)."""
        together = candidate.count / self._n_han  # exp(cohesion) times it: the product of the shares of both
        return candidate.cohesion[split - 1] + log(together) >= log(_TOGETHER)

    def _is_inseparable_speaker(self, candidate: _Candidate) -> bool:
        """Whether a string of three or four characters is a person that speaks now and then (萧十一郎)."""
        word = candidate.word
        return (
            len(word) > 2
            and word[0] not in NEVER_FIRST
            and word[-1] not in NEVER_LAST
            and candidate.count >= self._min_count + 2
            and candidate.speech >= 0.03
            and candidate.opens >= 0.25
            and candidate.ends >= 0.3
            and all(self._is_inseparable(candidate, split) for split in range(1, len(word)))
        )

    def _holds_name(self, word: str) -> bool:
        """Whether a person of the text is a proper part at the start or the end of a word."""
        parts = [word[:stop] for stop in range(2, len(word))] + [
            word[start:] for start in range(1, len(word) - 1)
        ]
        return any(part in self._found and self._found[part].tag == PERSON for part in parts)

    def _is_glue_around(self, word: str) -> bool:
        """Whether a word is a person of the text and one character that stands at many names."""
        return (word[:-1] in self._found and word[-1] in self._after) or (
            word[1:] in self._found and word[0] in self._before
        )

    def _is_chance(self, candidate: _Candidate) -> bool:
        """Whether a word is a person of the text and a neighbour of a few mentions (郭襄转)."""
        person = self._found.get(candidate.word[:-1])
        return (
            person is not None
            and person.tag == PERSON
            and candidate.cohesion[-1] < _LOOSE
            and candidate.count < _FEW * person.count
        )

    def _is_named(self, candidate: _Candidate) -> bool:
        """Whether a string that jieba does not know is a surname with a name or a title."""
        word, weakest = candidate.word, candidate.weakest
        if word[:2] in COMPOUND_SURNAMES and len(word) > 2:
            is_longer = len(word) == 4 and self._jieba.has_word(word[:-1])
            if is_longer and word[-1] in NEVER_LAST and candidate.cohesion[-1] < _TIGHT:
                return False  # 公孙止的
            is_plain = len(word) == 3 or not self._jieba.has_word(word[2:])
            return weakest >= 2.8 and (is_plain or self._has_name_evidence(candidate, 2))
        if len(word) == 2 and word[0] in FAMILIAR and (word[1] in SURNAMES or word[0] == "阿"):
            return weakest >= 3.3 and candidate.speech >= 0.02
        if len(word) > 3 or not (word[0] in SURNAMES or word[0] in AMBIGUOUS_SURNAMES):
            return False
        needed = 2.8
        if word[0] not in SURNAMES:
            needed = 3.8 if candidate.speech >= 0.04 else 5.0
        if len(word) == 2 and candidate.ends < 0.3:
            return False  # the beginning of several names: 刘振 of 刘振华 and 刘振元
        if len(word) == 2 and word[1] in NEVER_LAST:
            needed = max(needed, 4.2)
        if len(word) == 3 and self._jieba.has_word(word[1:]):
            if word[1:] not in TITLES:
                return self._has_name_evidence(candidate, 1)
            needed = max(needed, 3.0)
        is_loose = len(word) == 3 and (candidate.cohesion[1] < _TIGHT or word[2] in NEVER_LAST)
        if is_loose and self._jieba.has_word(word[:2]):
            return False
        if candidate.speech < 0.01:
            needed += 1.0
        return weakest >= needed

    def _has_name_evidence(self, candidate: _Candidate, surname: int) -> bool:
        """Whether a surname and a word of the dictionary (霍云中) are a name rather than neighbours (于城中).

        A name is cohesive on both sides of its middle, more frequent than chance neighbours are, stands after
        marks, and speaks. The weights are those of a logistic regression on 水浒传, 红楼梦 and half of the
        People's Daily with invented names (benchmarks/invented_names.py), rounded.
        """
        word = candidate.word
        evidence = candidate.cohesion[surname - 1] + max(candidate.cohesion[surname:], default=0.0)
        evidence += 1.8 * log(candidate.count / self._min_count)
        evidence += 50 * min(candidate.opens, 0.1) + 35 * min(candidate.speech, 0.05)
        evidence += 2.3 * (word[0] in SURNAMES or surname == 2) - 2.2 * (word[-1] in NEVER_LAST)
        return evidence >= _MIN_NAME_EVIDENCE

    def _is_glued(self, candidate: _Candidate) -> bool:
        """Whether a name of the text stands inside, with a character before or behind it."""
        word = candidate.word
        if word[-1] in SPEECH and (candidate.closes > 0.8 or (len(word) == 2 and candidate.weakest < 5)):
            return True
        if len(word) == 2:
            return False
        if self._is_whole_name(candidate):
            return False
        if word[:-1] in self._found:
            return candidate.cohesion[-1] < (_TIGHT if word[-1] in self._after else 5.0)
        if word[1:] in self._found:
            is_full_name = word[0] in SURNAMES and len(word) == 3 and self._found[word[1:]].tag == PERSON
            return candidate.cohesion[0] < (2.0 if is_full_name else 5.0)
        if len(word) == 4 and (word[:2] in self._found or word[2:] in self._found):
            return candidate.cohesion[1] < _TIGHT
        return False

    def _is_whole_name(self, candidate: _Candidate) -> bool:
        """Whether a surname and a word are a name, of which a part that was found before is mostly a part."""
        word = candidate.word
        if len(word) != _FULL_NAME or not (word[0] in SURNAMES or word[0] in AMBIGUOUS_SURNAMES):
            return False
        parts = [self._found[part].count for part in (word[:2], word[1:]) if part in self._found]
        return (
            self._jieba.has_word(word[1:])
            and candidate.count >= _MOSTLY * max(parts, default=0)
            and self._has_name_evidence(candidate, 1)
        )

    def _is_phrase(self, candidate: _Candidate) -> bool:
        """Whether a string of three or more characters is words that are often neighbours."""
        word = candidate.word
        is_compound = word[:2] in COMPOUND_SURNAMES
        if len(word) == 2 or ((len(word) == 3 or is_compound) and self._is_named(candidate)):
            return False
        speaks = self._speaks(candidate)
        for split in range(1, len(word)):
            parts = word[:split], word[split:]
            if not all(len(part) == 1 or part in self._found or self._jieba.has_word(part) for part in parts):
                continue
            if self._is_inseparable(candidate, split):
                continue
            has_kind = len(parts[1]) == 1 and parts[1] in KINDS and parts[0][0] not in NEVER_FIRST
            if not (speaks or has_kind) or candidate.cohesion[split - 1] < _TIGHT + 0.5:
                return True
        return False

    def _drop_beginnings(self) -> None:
        """Drop a surname with half a name (王振) if most occurrences are of longer names (王振昌, 王振华)."""
        covered: dict[str, int] = {}
        for word, new in self._found.items():
            if len(word) == 3:
                covered[word[:2]] = covered.get(word[:2], 0) + new.count
        for word, count in covered.items():
            if word in self._found and count >= 0.5 * self._found[word].count:
                del self._found[word]

    def _drop_known(self, words: list[NewWord]) -> list[NewWord]:
        """Leave out words that jieba segments right everywhere."""
        plain: dict[str, int] = {}
        for line in self._text.split("\n"):
            for token in self._jieba.cut(line):
                if token in self._found:
                    plain[token] = plain.get(token, 0) + 1
        return [
            new
            for new in words
            if not self._jieba.has_word(new.word)
            or plain.get(new.word, 0) < 0.995 * new.count
            or (new.tag == PERSON and _has_surname(new.word))
        ]

    def _list_glued(self) -> list[NewWord]:
        """Entries of jieba's dictionary that are a name of the text and a character that follows any name."""
        names = sorted((w for w, new in self._found.items() if new.tag == PERSON), key=len, reverse=True)
        if not names:
            return []
        glued = set(self._glued)
        for match in re.finditer("|".join(map(re.escape, names)), self._text):
            start, stop = match.span()
            before, after = self._text[start - 1 : start], self._text[stop : stop + 1]
            if after in self._after:
                glued.add(match[0] + after)
            if before in self._before:
                glued.add(before + match[0])
        return [
            NewWord(word, 0, NO_WORD, 0.0)
            for word in sorted(glued)
            if word not in self._found and self._jieba.has_word(word)
        ]


def _has_surname(word: str) -> bool:
    return (len(word) <= 3 and word[0] in SURNAMES) or (len(word) > 2 and word[:2] in COMPOUND_SURNAMES)


@cache
def plain_jieba() -> rjieba.Jieba:
    """Jieba with its own dictionary."""
    import rjieba  # here, because it loads a dictionary

    return rjieba.Jieba()
