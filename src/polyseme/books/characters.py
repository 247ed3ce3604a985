"""Who the characters of a book are: names of persons found in the text, and aliases that a user merges.

    words.txt of a model, sentences, an alias file  ->  books.characters  ->  books.mentions

Chinese names are persons of the model's word list (see text.segment.discovery). English names are those of
the word list (Mr. Darcy, Elizabeth Bennet; see text.segment.english_names), capitalised words behind a title,
and those that speak. Both are guesses: a user merges and corrects them with an alias file, one character per
line: name, tab, aliases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.errors import DataError
from polyseme.text.reading import read_lines
from polyseme.text.segment import WordList
from polyseme.text.segment.discovery import PERSON, plain_jieba
from polyseme.text.segment.english_names import AIMS_AT_PERSONS, NO_NAMES
from polyseme.text.segment.english_names import SPEECH as ENGLISH_SPEECH
from polyseme.text.segment.english_names import TITLES as ENGLISH_TITLES
from polyseme.text.segment.name_characters import (
    AMBIGUOUS_SURNAMES,
    COMPOUND_SURNAMES,
    NEVER_FIRST,
    SPEECH,
    SURNAMES,
    TITLES,
)
from polyseme.text.segment.word_list import NAME_SEPARATOR

_MIN_SPEECH = 0.04  # share of mentions before a verb of speech, of a name without a surname
_MIN_COUNT = 5
# Shares of an English name's mentions behind such words, from which on it is a place, or a kind of person.
_LOCATIVE = frozenset(("in", "at", "from", "near", "through", "into", "towards", "toward", "around"))
_INDEFINITE = frozenset(("a", "an", "some", "any", "every", "each", "no", "many", "these", "those", "other"))
_MAX_LOCATED, _MAX_INDEFINITE, _MAX_PLURALS = 0.25, 0.08, 0.2


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


def _list_persons(word_list: WordList | None) -> set[str]:
    """The persons of a word list."""
    if word_list is None:
        return set()
    return {entry.word for entry in word_list.entries if entry.tag == PERSON and entry.count}


def _find_chinese(sentences: Iterable[Sequence[str]], word_list: WordList | None) -> list[str]:
    """Persons of the word list, most frequent first."""
    persons = _list_persons(word_list)
    counts, speech = Counter[str](), Counter[str]()
    for sentence in sentences:
        for position, token in enumerate(sentence):
            if token in persons:
                counts[token] += 1
                after = sentence[position + 1] if position + 1 < len(sentence) else ""
                speech[token] += after[:1] in SPEECH
    return [
        name
        for name, count in counts.most_common()
        if count >= _MIN_COUNT
        and name not in TITLES
        and name[0] not in NEVER_FIRST
        and _may_be_person(name)
        and (_has_surname(name) or speech[name] >= _MIN_SPEECH * count)
        and speech[name] >= 0.01 * count
    ]


def _may_be_person(name: str) -> bool:
    """Whether a string is no troop (魏兵), place (徐州), number (左右), pronoun (汝等) or verb (分付)."""
    if name[-1] in "兵军等诗":
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
        if count >= _MIN_COUNT and not counts.is_place_or_kind(name, count)
    }
    return sorted(names, key=lambda name: (-names[name], name))


@dataclass
class _EnglishCounts:
    """What is counted of the capitalised words of an English text."""

    capital: Counter[str] = field(default_factory=Counter)  # not at the start of a sentence
    small: Counter[str] = field(default_factory=Counter)  # in small letters, by the capitalised form
    acts: Counter[str] = field(default_factory=Counter)  # beside a verb of speech
    listed: Counter[str] = field(default_factory=Counter)  # names of the word list, and with a title
    located: Counter[str] = field(default_factory=Counter)  # in London, through the Weald
    indefinite: Counter[str] = field(default_factory=Counter)  # a Nantucketer, every Sperm Whale

    def add_neighbour(self, name: str, sentence: Sequence[str], position: int) -> None:
        """Count the word before a name, or before its article."""
        before = sentence[position - 1].lower() if position else ""
        if sentence[position + 1 : position + 2] in (["'s"], ["’s"]):
            return  # at Sam Clark's
        self.indefinite[name] += before in _INDEFINITE
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
        )
