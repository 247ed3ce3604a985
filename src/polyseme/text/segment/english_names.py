"""Find the names of several words in an English text, of persons and places, from the text itself.

    text.segment.english  ->  text.segment.english_names  ->  text.corpus, books

Two to four capitalised words in a row are a name (Elizabeth Bennet, New York, Lady Catherine de Bourgh) if
they belong together (mutual information) and are not nearly always part of one longer name. At the start of
a sentence, where every word has a capital, a word must be a name elsewhere, too. A title belongs to the name
behind it: Mr. Bennet and Mrs. Bennet are two persons.

What must not change: the result depends on the text only; time is linear, memory bounded by `SampledText`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log

from polyseme.text.segment import english
from polyseme.text.segment.discovery import OTHER, PERSON, PLACE, NewWord
from polyseme.text.segment.word_list import NAME_SEPARATOR

MAX_WORDS = 4  # of a name
_MIN_COUNT = 3  # in a text of up to a million words
_WORDS_PER_COUNT = 300_000
_MIN_COHESION = 1.5  # at the weakest split, in nats
_MAX_SMALL = 0.25  # occurrences in small letters, as a share of those inside sentences with a capital
_COVERED = 0.85  # share of occurrences inside one longer name that makes a name a part of it
_MIN_PLACE = 0.35  # share of occurrences behind a preposition of place
_MIN_SPEECH = 0.04  # share of occurrences beside a verb of speech


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


TITLES = _split(
    "Mr. Mrs. Ms. Miss Dr. Sir Lady Lord Captain Colonel Aunt Uncle Madame M. Mme. Mlle. Monsieur "
    "Mademoiselle Mr Mrs Dr Major General Lieutenant Sergeant Professor King Queen Prince Princess Duke "
    "Duchess Count Countess Baron Baroness Father Sister Brother Rev. Saint St. President Judge Doctor "
    "Capt. Col. Gen. Lieut. Master Mistress Squire Dame"
)
SPEECH = _split(
    "said says cried replied asked answered exclaimed thought looked smiled laughed returned whispered "
    "muttered shouted added observed continued remarked nodded sighed told went came took saw turned "
    "stood sat felt knew"
)
AIMS_AT_PERSONS = _split(  # before "at": who is looked at is no place
    "look looks looked looking gaze gazed gazing glance glances glanced glancing stare stared staring smile "
    "smiled smiling laugh laughed laughing glare glared glaring peer peered point pointed pointing shout "
    "shouted nod nodded frown frowned grin grinned wink winked angry astonished surprised wonder wondered "
    "back up down"
)
NO_NAMES = _split(
    "I Oh Ah Well Yes No God Heaven English French German American Chapter Christmas Father Mother "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Easter January February March July August "
    "September October November December"
)
# The last word of an institution or a document, or the one before "of": General Land Office, Bill of Rights.
INSTITUTIONS = _split(
    "Government Department Office Board Staff Assembly Commission Committee Council Congress Senate "
    "Parliament Court Bank Bureau Agency Act Bill Rights Treaty Constitution Convention Union Republic "
    "Empire Army Navy Company Corporation Association Society Service Treasury Ministry Party Justice"
)
OFFICES = _split("Speaker President Vice Chairman Secretary General")  # Mr. Speaker is no name
_PERSON_TITLES = ("Mr.", "Mrs.", "Miss", "Dr.", "Sir", "Lady", "Lord", "Captain", "Colonel", "Mr", "Mrs")
_GIVEN_NAMES = _split(
    "John William George Charles James Henry Thomas Robert Edward Joseph Richard David Arthur Frank "
    "Fred Walter Harry Albert Samuel Daniel Peter Paul Philip Francis Michael Andrew Stephen Martin "
    "Hugh Ralph Roger Simon Tom Tim Jack Dick Ned Sam Ben Bill Bob Will Jim Joe Mary Anne Ann Anna Jane "
    "Elizabeth Margaret Catherine Katherine Kate Emma Emily Charlotte Alice Sarah Ellen Helen Lucy "
    "Maria Sophia Louisa Harriet Caroline Fanny Julia Rose Grace Ruth Martha Agnes Clara Edith Ethel "
    "Florence Irene Laura Nora Eliza Lydia Kitty Susan Rachel Rebecca Esther Dorothy"
)
_PLACE_KINDS = _split(
    "Street Avenue Road Square Park House Hall Lodge Farm Valley Hill Bridge Lane Court River Lake "
    "Island Islands County Castle Abbey Church Inn Station Place Gardens Terrace City Town Bay Sea "
    "Ocean Mountains Creek Harbour Cathedral Crescent Cottage Manor Grange Heath Forest Wood Isle "
    "Territory"
)
_PLACE_BEGINNINGS = _split(
    "New San Santa Cape Mount Lake Port Fort North South East West Upper Lower Los Las"
)
_PLACE_PREPOSITIONS = _split("in at from to near through towards toward into round around leave left")
_CONNECTORS = _split("of de du des la le van von der den di da del della y ter")
_NOT_IN_NAMES = _split(
    "I Chapter CHAPTER Volume Book Part Oh Ah Well Yes No Monday Tuesday Wednesday Thursday Friday "
    "Saturday Sunday January February March April May June July August September October November "
    "December The A An And But My His Her Your Our Their"
)
_OPENERS = frozenset(['"', "“", "‘", "'", "``", "(", "—", "--", ":", "_", "*"])


@dataclass
class _RunCounts:
    """What is counted in the text; names are tuples of words."""

    words: int = 0
    inside: Counter[str] = field(default_factory=Counter)  # capitalised, not at the start of a sentence
    small: Counter[str] = field(default_factory=Counter)  # in small letters, by the capitalised form
    single: Counter[str] = field(default_factory=Counter)
    runs: Counter[tuple[str, ...]] = field(default_factory=Counter)
    speaks: Counter[tuple[str, ...]] = field(default_factory=Counter)
    located: Counter[tuple[str, ...]] = field(default_factory=Counter)


def discover_names(blocks: Iterable[str]) -> list[NewWord]:
    """Find the names of several words in an English text.

    Args:
        blocks: The text, or evenly taken parts of it (`SampledText`).

    Returns:
        Names by falling count, their words joined by `_`; tagged as persons, places or others.

    Example:
        >>> [found.word for found in discover_names([novel])][:3]
        ['Mr._Darcy', 'Mrs._Bennet', 'Lady_Catherine']

    """
    sentences = [sentence for block in blocks for sentence in english.split_sentences(block)]
    counts = _RunCounts()
    for sentence in sentences:
        _count_words(sentence, counts)
    for sentence in sentences:
        _count_runs(sentence, counts)
    least = max(_MIN_COUNT, counts.words // _WORDS_PER_COUNT)
    cohesive = {
        name: cohesion
        for name, count in counts.runs.items()
        if count >= least and (cohesion := _measure_cohesion(name, counts)) >= _MIN_COHESION
    }
    kept = [name for name in cohesive if not _is_part(name, cohesive, counts)]
    names = [
        NewWord(NAME_SEPARATOR.join(name), counts.runs[name], _classify(name, counts), cohesive[name])
        for name in kept
    ]
    return sorted(names, key=lambda new: (-new.count, new.word))


def _is_capitalised(word: str) -> bool:
    """Whether a word begins with a capital and is no word in capitals; initials count (J.)."""
    return word[0].isupper() and (len(word) == 1 or not word.isupper() or word.endswith("."))


def _starts_anew(sentence: Sequence[str], position: int) -> bool:
    """Whether a capital is due to the start of a sentence or quotation."""
    before = sentence[position - 1] if position else ""
    return not before or before in _OPENERS or (before[-1] in ".!?" and before not in TITLES)


def _count_words(sentence: Sequence[str], counts: _RunCounts) -> None:
    for position, word in enumerate(sentence):
        if not word[0].isalpha():
            continue
        counts.words += 1
        counts.single[word] += 1
        if word[0].islower():
            counts.small[word.capitalize()] += 1
        elif not _starts_anew(sentence, position):
            counts.inside[word] += 1


def _count_runs(sentence: Sequence[str], counts: _RunCounts) -> None:
    for start, stop in _list_runs(sentence, counts):
        before = sentence[start - 1] if start else ""
        for first in range(start, stop):
            for last in range(first + 2, min(first + MAX_WORDS, stop) + 1):
                name = tuple(sentence[first:last])
                if name[0] in _CONNECTORS or name[-1] in _CONNECTORS or name[-1] in TITLES:
                    continue
                counts.runs[name] += 1
                if last == stop:
                    near = {*sentence[last : last + 2], before if first == start else ""}
                    counts.speaks[name] += not near.isdisjoint(SPEECH)
                if first == start:
                    counts.located[name] += before in _PLACE_PREPOSITIONS


def _list_runs(sentence: Sequence[str], counts: _RunCounts) -> Iterator[tuple[int, int]]:
    """Start and stop of runs of name words, with connectors between them."""
    position = 0
    while position < len(sentence):
        if not _is_member(sentence, position, counts):
            position += 1
            continue
        stop = position + 1
        while stop < len(sentence):
            if _is_member(sentence, stop, counts):
                stop += 1
            elif (
                sentence[stop] in _CONNECTORS
                and stop + 1 < len(sentence)
                and _is_member(sentence, stop + 1, counts)
            ):
                stop += 2
            else:
                break
        if stop > position + 1:
            yield position, stop
        position = stop


def _is_member(sentence: Sequence[str], position: int, counts: _RunCounts) -> bool:
    """Whether a word may be part of a name; at the start of a sentence, it must be one elsewhere, too."""
    word = sentence[position]
    if word in TITLES:
        return True
    if not word[0].isalpha() or not _is_capitalised(word) or word in _NOT_IN_NAMES:
        return False
    if not _starts_anew(sentence, position):
        return True
    return counts.inside[word] >= 2 and counts.small[word] <= _MAX_SMALL * counts.inside[word]


def _measure_cohesion(name: tuple[str, ...], counts: _RunCounts) -> float:
    """Mutual information at the weakest split."""
    total = log(counts.runs[name]) + log(counts.words)
    splits = range(1, len(name))
    return min(
        total - log(_count(name[:split], counts)) - log(_count(name[split:], counts)) for split in splits
    )


def _count(part: tuple[str, ...], counts: _RunCounts) -> int:
    """How often a part of a name occurs; one that begins or ends with a connector was not counted."""
    if len(part) == 1:
        return counts.single[part[0]]
    return counts.runs[part] or min(counts.single[word] for word in part)


def _is_part(name: tuple[str, ...], names: Iterable[tuple[str, ...]], counts: _RunCounts) -> bool:
    """Whether a name nearly always stands in one longer name."""
    return any(
        len(longer) > len(name)
        and counts.runs[longer] >= _COVERED * counts.runs[name]
        and any(longer[start : start + len(name)] == name for start in range(len(longer) - len(name) + 1))
        for longer in names
    )


def _classify(name: tuple[str, ...], counts: _RunCounts) -> str:
    """The tag of a name: a person, a place or something else."""
    count = counts.runs[name]
    if name[0] in TITLES and name[0] not in ("St.", "Saint"):
        return PERSON
    if name[-1] in _PLACE_KINDS or name[0] in _PLACE_BEGINNINGS:
        return PLACE
    if name[0] in _GIVEN_NAMES or any(counts.runs[title, name[-1]] for title in _PERSON_TITLES):
        return PERSON
    if counts.located[name] >= _MIN_PLACE * count:
        return PLACE
    return PERSON if counts.speaks[name] >= _MIN_SPEECH * count else OTHER
