"""Who the characters of a book are: names of persons found in the text, and aliases that a user merges.

    words.txt of a model, sentences, an alias file  ->  books.characters  ->  books.mentions

Chinese names are persons of the model's word list (see text.segment.discovery), and names of jieba's
dictionary that stand as persons do. English names are those of the word list (Mr. Darcy, Elizabeth Bennet;
see text.segment.english_names), capitalised words behind a title, and those that speak. Both are guesses: a
user merges and corrects them with an alias file, one character per line: name, tab, aliases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from polyseme.errors import DataError
from polyseme.text.reading import read_lines
from polyseme.text.segment import WordList
from polyseme.text.segment.discovery import PERSON, plain_jieba
from polyseme.text.segment.english_names import AIMS_AT_PERSONS, INSTITUTIONS, NO_NAMES, OFFICES
from polyseme.text.segment.english_names import SPEECH as ENGLISH_SPEECH
from polyseme.text.segment.english_names import TITLES as ENGLISH_TITLES
from polyseme.text.segment.name_characters import (
    AMBIGUOUS_SURNAMES,
    COMPOUND_SURNAMES,
    NEVER_FIRST,
    NUMERALS,
    SPEECH,
    SURNAMES,
    TITLES,
)
from polyseme.text.segment.word_list import NAME_SEPARATOR

_MIN_SPEECH = 0.04  # share of mentions before a verb of speech, of a name without a surname
_MIN_NUMBERED_SPEECH = 0.1  # of a name that begins with a numeral
_MIN_SURNAMED_SPEECH = 0.01  # of a name with a surname
_MIN_DICTIONARY_SPEECH = 0.02  # of a name that the text itself did not show to be one (武松)
_MIN_OPENS, _MIN_ENDS = 0.2, 0.05  # shares of mentions at the start and at the end of a clause
_MIN_COUNT = 5
_LANGUAGE_SENTENCES = 10_000  # from which the language is seen
# Shares of an English name's mentions behind such words, from which on it is a place, or a kind of person.
_LOCATIVE = frozenset(("in", "at", "from", "near", "through", "into", "towards", "toward", "around"))
_INDEFINITE = frozenset(("a", "an", "some", "any", "every", "each", "no", "many", "these", "those", "other"))
_MAX_LOCATED, _MAX_INDEFINITE, _MAX_PLURALS = 0.25, 0.08, 0.2
_MAX_DEFINITE = 0.4  # behind "the": a river, a ship, an institution


@dataclass(frozen=True)
class Character:
    """A character with all names that stand for it; the first is shown."""

    name: str
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self.name, *self.aliases


def read_aliases(path: str | Path) -> list[Character]:
    """Read an alias file: name, tab, aliases separated by tabs or commas, one character per line.

    Raises:
        DataError: A line has no name, or a name stands for two characters.

    """
    characters: list[Character] = []
    owners: dict[str, str] = {}
    for line in read_lines(path):
        if not line.text.strip() or line.text.startswith("#"):
            continue
        parts = line.text.replace(",", "\t").replace("，", "\t").replace("、", "\t").split("\t")
        names = list(dict.fromkeys(name.strip() for name in parts if name.strip()))
        if not names:
            raise DataError(f"{line.location}: no name. Write a name, a tab, and its aliases.")
        for name in names:
            if name in owners:
                raise DataError(
                    f"{line.location}: {name!r} is a name of {owners[name]!r} already. Leave one of them out."
                )
            owners[name] = names[0]
        characters.append(Character(names[0], tuple(names[1:])))
    if not characters:
        raise DataError(f"{path}: no characters in it. Write one per line: name, tab, aliases.")
    return characters


def find_characters(
    sentences: Iterable[Sequence[str]],
    language: str,
    word_list: WordList | None,
    listed: Sequence[Character] = (),
    limit: int = 40,
) -> list[Character]:
    """Find the characters of a book: those of an alias file, then the most frequent persons of the text.

    Args:
        sentences: The sentences of the book as tokens.
        language: `zh` or `en`.
        word_list: The word list of the model.
        listed: Characters of an alias file.
        limit: The maximum number of characters.

    Returns:
        The characters; without aliases, except those of `listed`.

    """
    known = {name for character in listed for name in character.names}
    finder = _find_chinese if language == "zh" else _find_english
    names = [name for name in finder(sentences, word_list) if name not in known]
    return [*listed, *map(Character, names)][: max(limit, len(listed))]


def detect_language(sentences: Iterable[Sequence[str]]) -> str:
    """Chinese (zh) if most tokens of letters are, else English (en); by the beginning of a long text."""
    han = latin = 0
    for sentence in islice(sentences, _LANGUAGE_SENTENCES):
        for token in sentence:
            han += "\u4e00" <= token[:1] <= "\u9fff"
            latin += token[:1].isascii() and token[:1].isalpha()
    return "zh" if han > latin else "en"


def _list_persons(word_list: WordList | None) -> set[str]:
    """The persons of a word list."""
    if word_list is None:
        return set()
    return {entry.word for entry in word_list.entries if entry.tag == PERSON and entry.count}


@dataclass
class _ChineseCounts:
    """What is counted of the words that may be names in a Chinese text."""

    all: Counter[str] = field(default_factory=Counter)
    speaks: Counter[str] = field(default_factory=Counter)  # before a verb of speech
    opens: Counter[str] = field(default_factory=Counter)  # at the start of a clause
    ends: Counter[str] = field(default_factory=Counter)  # at the end of one

    def add(self, sentence: Sequence[str], position: int) -> None:
        """Count a token with its neighbours."""
        token = sentence[position]
        before = sentence[position - 1] if position else ""
        after = sentence[position + 1] if position + 1 < len(sentence) else ""
        self.all[token] += 1
        self.speaks[token] += after[:1] in SPEECH
        self.opens[token] += not before[-1:].isalnum()
        self.ends[token] += not after[:1].isalnum()

    def stands_as_person(self, name: str, speech: float) -> bool:
        """Whether a word speaks, opens clauses and ends clauses: adverbs and verbs do not do all of it."""
        count = self.all[name]
        return (
            self.speaks[name] >= speech * count
            and self.opens[name] >= _MIN_OPENS * count
            and self.ends[name] >= _MIN_ENDS * count
        )


def _find_chinese(sentences: Iterable[Sequence[str]], word_list: WordList | None) -> list[str]:
    """Persons of the word list and of jieba's dictionary, most frequent first."""
    persons, counts = _list_persons(word_list), _ChineseCounts()
    is_candidate: dict[str, bool] = {}
    for sentence in sentences:
        for position, token in enumerate(sentence):
            if token not in is_candidate:
                is_candidate[token] = token in persons or _is_name_in_dictionary(token)
            if is_candidate[token]:
                counts.add(sentence, position)
    names = [
        name
        for name, count in counts.all.most_common()
        if count >= _MIN_COUNT and name not in TITLES and _is_person(name, name in persons, counts)
    ]
    most = counts.all[names[0]] if names else 0
    # A title more frequent than any name is the name of one character: 行者.
    titles = [
        name
        for name, count in counts.all.most_common()
        if name in TITLES and count > most and counts.speaks[name] >= _MIN_SPEECH * count
    ]
    return titles + names


def _is_person(name: str, is_listed: bool, counts: _ChineseCounts) -> bool:
    """Whether a frequent word is a person, by its form and by what stands around it."""
    if not _may_be_person(name):
        return False
    if not is_listed:
        return counts.stands_as_person(name, _MIN_DICTIONARY_SPEECH)
    share = counts.speaks[name] / counts.all[name]
    if name[0] in NUMERALS:  # 八戒, but 一日, too
        return share >= _MIN_NUMBERED_SPEECH
    if name[0] in NEVER_FIRST and name[0] != "张":  # 方腊, but 方欲, too
        is_used_alone = counts.ends[name] >= _MIN_ENDS * counts.all[name]
        return _has_surname(name) and share >= _MIN_SPEECH and is_used_alone
    if not _has_surname(name):  # 玄德, but 闻言, too, which stands behind names
        opens_clauses = counts.opens[name] >= _MIN_OPENS * counts.all[name]
        return share >= _MIN_SPEECH and opens_clauses
    return share >= _MIN_SURNAMED_SPEECH


def _is_name_in_dictionary(word: str) -> bool:
    """Whether jieba's dictionary has a word as a name of a person, with a surname."""
    if len(word) < 2 or not _has_surname(word):
        return False
    jieba = plain_jieba()
    return jieba.has_word(word) and jieba.tag(word)[0][1] in ("nr", "nrt", "nrfg")


def _may_be_person(name: str) -> bool:
    """Whether a string is no troop (魏兵), place (徐州), number (左右), pronoun (汝等) or verb (分付)."""
    if name[-1] in "兵军等诗" or (name[0] == "诸" and name[:2] not in COMPOUND_SURNAMES):  # 诸侯
        return False
    jieba = plain_jieba()
    tag = jieba.tag(name)[0][1] if jieba.has_word(name) else ""
    return tag[:1] not in ("m", "v", "r", "f", "d") and not (tag == "ns" and name[-1] in "州都城郡县")


def _has_surname(name: str) -> bool:
    return name[0] in SURNAMES or name[0] in AMBIGUOUS_SURNAMES or name[:2] in COMPOUND_SURNAMES


def _find_english(sentences: Iterable[Sequence[str]], word_list: WordList | None) -> list[str]:
    """Persons of the word list and capitalised words that speak, most frequent first."""
    persons = _list_persons(word_list)
    counts = _EnglishCounts()
    for sentence in sentences:
        for position, token in enumerate(sentence):
            if token in persons:
                counts.listed[token] += 1
                counts.add_neighbour(token, sentence, position)
                continue
            if not token[:1].isupper() or not token.isalpha() or len(token) < 2:
                counts.small[token.capitalize()] += 1
                continue
            if token.isupper():
                continue
            before = sentence[position - 1] if position else ""
            if before in ENGLISH_TITLES:
                counts.listed[f"{before} {token}"] += 1
                continue
            near = {*sentence[position + 1 : position + 3], before}
            counts.capital[token] += position > 0 and before not in {".", "“", '"', "‘", "—", "”"}
            counts.acts[token] += not near.isdisjoint(ENGLISH_SPEECH)
            counts.add_neighbour(token, sentence, position)
    names = {
        name: count
        for name, count in counts.capital.items()
        if count >= _MIN_COUNT
        and name not in NO_NAMES
        and name not in ENGLISH_TITLES
        and counts.small[name] < 0.2 * count
        and counts.acts[name] >= max(2, 0.03 * count)
        and not counts.is_place_or_kind(name, count)
    }
    names |= {
        name.replace(NAME_SEPARATOR, " "): count
        for name, count in counts.listed.items()
        if count >= _MIN_COUNT and not _is_institution(name) and not counts.is_place_or_kind(name, count)
    }
    return sorted(names, key=lambda name: (-names[name], name))


def _is_institution(name: str) -> bool:
    """Whether a name is that of an institution or a document, or an office without a name."""
    words = name.replace(NAME_SEPARATOR, " ").split()
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    return head in INSTITUTIONS or (words[0] in ENGLISH_TITLES and head in OFFICES)


@dataclass
class _EnglishCounts:
    """What is counted of the capitalised words of an English text."""

    capital: Counter[str] = field(default_factory=Counter)  # not at the start of a sentence
    small: Counter[str] = field(default_factory=Counter)  # in small letters, by the capitalised form
    acts: Counter[str] = field(default_factory=Counter)  # beside a verb of speech
    listed: Counter[str] = field(default_factory=Counter)  # names of the word list, and with a title
    located: Counter[str] = field(default_factory=Counter)  # in London, through the Weald
    indefinite: Counter[str] = field(default_factory=Counter)  # a Nantucketer, every Sperm Whale
    definite: Counter[str] = field(default_factory=Counter)  # the Missouri, the Pequod

    def add_neighbour(self, name: str, sentence: Sequence[str], position: int) -> None:
        """Count the word before a name, or before its article."""
        before = sentence[position - 1].lower() if position else ""
        if sentence[position + 1 : position + 2] in (["'s"], ["’s"]):
            return  # at Sam Clark's
        self.indefinite[name] += before in _INDEFINITE
        self.definite[name] += before == "the"
        if before == "the" and position > 1:
            position -= 1
            before = sentence[position - 1].lower()
        is_looked_at = before == "at" and position > 1 and sentence[position - 2].lower() in AIMS_AT_PERSONS
        self.located[name] += before in _LOCATIVE and not is_looked_at

    def is_place_or_kind(self, name: str, count: int) -> bool:
        """Whether a name stands behind prepositions of place or articles too often for a person.

        A kind has a plural (Sperm Whales, Italians), more often than a family beside one person's name. A
        title leaves no doubt.
        """
        if name.replace(NAME_SEPARATOR, " ").split()[0] in ENGLISH_TITLES:
            return False
        plurals = self.capital[f"{name}s"] + self.listed[f"{name}s"]
        return (
            self.located[name] >= _MAX_LOCATED * count
            or self.indefinite[name] >= _MAX_INDEFINITE * count
            or plurals >= _MAX_PLURALS * count
            or self.definite[name] >= _MAX_DEFINITE * count
        )
