"""The persons of an index: who they are, where they occur, with whom, and who is spoken of alike.

    search.index (sentences in order), books.characters, books.mentions, books.network  ->  books.cast
        ->  api.books, server

What `book` finds in a text is found here in the sentences that an index stores, so that an index is enough.
A paragraph is a line of a file, or, where sentences go on in the next line, lines without a blank one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from polyseme.books.characters import Character, detect_language, find_characters
from polyseme.books.mentions import BookMentions, Paragraph, count_mentions
from polyseme.books.network import find_groups, list_companions
from polyseme.errors import UsageError
from polyseme.io.html import Cell
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.search.index import Index
from polyseme.search.space import normalize
from polyseme.search.usage_store import StoredSentence
from polyseme.text.segment import WordList, split_token_texts
from polyseme.text.segment.discovery import SampledText, discover_words
from polyseme.text.segment.english_names import discover_names
from polyseme.text.segment.word_list import NAME_SEPARATOR, ListedWord
from polyseme.text.simplified import simplify
from polyseme.word_vectors import Neighbour

COMPANIONS, NEAREST, PASSAGES = 12, 8, 3  # of a person
SHARED_LINES = 0.4  # of sentences that begin on the line of the one before: paragraphs are not wrapped
WRAPPED = 72  # characters of a line of a wrapped paragraph
PASSAGE = 400  # characters; a longer paragraph is cut after a sentence


class Passage(NamedTuple):
    """A part of a paragraph in which a person is mentioned.

    Attributes:
        text: Its sentences.
        document: The title of its document, or the name of its file.
        line: The line of the file.

    """

    text: str
    document: str
    line: int


@dataclass(frozen=True)
class Person:
    """A person of a cast.

    Attributes:
        name: The name that is shown.
        aliases: Other names, of an alias file.
        count: How often the names occur.
        group: The group of persons who often occur together, from 0.
        documents: How often in each document, by its position in `Cast.documents`.
        companions: Who occurs in the same paragraphs, with the number of these paragraphs.
        nearest: Whose names are used most alike, by the mean contextual vectors of the index.
        passages: Where the person is mentioned most.

    """

    name: str
    aliases: tuple[str, ...]
    count: int
    group: int
    documents: dict[int, int]
    companions: list[tuple[str, int]]
    nearest: list[Neighbour]
    passages: list[Passage]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "aliases": list(self.aliases),
            "count": self.count,
            "group": self.group,
            "documents": [[document, count] for document, count in self.documents.items()],
            "companions": [{"name": name, "paragraphs": count} for name, count in self.companions],
            "nearest": [{"name": name, "cosine": cosine} for name, cosine in self.nearest],
            "passages": [passage._asdict() for passage in self.passages],
        }

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "name": self.name,
            "mentions": self.count,
            "documents": len(self.documents),
            "with": ", ".join(f"{name} {count}" for name, count in self.companions[:5]),
            "used alike": ", ".join(name for name, _ in self.nearest[:5]),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Cast:
    """The persons of a corpus, the most frequent first.

    Attributes:
        language: "zh" or "en".
        documents: The names of the documents, in the order of the text.
        persons: The persons.
        pairs: Who occurs with whom: positions of two persons, paragraphs and sentences that have both.

    """

    language: str
    documents: list[str]
    persons: ResultList[Person]
    pairs: list[tuple[int, int, int, int]]

    def find(self, name: str) -> Person:
        """Return the person of a name or an alias.

        Raises:
            UsageError: No person of the cast has this name.

        """
        for person in self.persons:
            if name == person.name or name in person.aliases:
                return person
        count = len(self.persons)
        raise UsageError(f"{name!r:.60} is none of the {count} persons. Raise `k`, or see `persons`.")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "language": self.language,
            "documents": self.documents,
            "persons": [person.as_dict() for person in self.persons],
            "pairs": [list(pair) for pair in self.pairs],
        }

    def __repr__(self) -> str:
        return repr(self.persons)

    def _repr_html_(self) -> str:
        return self.persons._repr_html_()


class _StoredParagraph(NamedTuple):
    """A paragraph as an index stores it: the indexed words of its sentences beside their text."""

    document: int  # position among the documents that are read
    line: int
    words: list[list[str]]
    texts: list[str]


def find_cast(
    index: Index,
    word_list: WordList | None = None,
    listed: Sequence[Character] = (),
    k: int = 40,
    on_progress: OnProgress = ignore_progress,
) -> Cast:
    """Find the persons of an index.

    Args:
        index: An index, or a part of it.
        word_list: The word list of its model, which knows names of the text.
        listed: Characters of an alias file, which come first.
        k: The largest number of persons, unless more are listed.
        on_progress: Receives the progress.

    Raises:
        UsageError: `k` is less than 1.

    """
    if k < 1:
        raise UsageError(f"k is {k}, expected 1 or more.")
    on_progress(ProgressEvent("reading"))
    documents = np.flatnonzero(index.document_sizes())
    names = [index.listed_documents[number].name for number in documents.tolist()]
    stored = list(_read_paragraphs(index, {number: n for n, number in enumerate(documents.tolist())}))
    sentences = [words for paragraph in stored for words in paragraph.words]
    language = detect_language(sentences)
    on_progress(ProgressEvent("finding names"))
    if word_list is None:
        # The index was segmented without these names: verbs are glued to some (玄德曰), others are in parts.
        word_list = _discover_names(stored, language)
        if word_list is not None:
            sentences = list(_segment_again(stored, language, word_list))
    characters = find_characters(sentences, language, word_list, listed, k)
    paragraphs = [
        Paragraph(paragraph.document, [simplify(text) for text in paragraph.texts]) for paragraph in stored
    ]
    on_progress(ProgressEvent("counting"))
    mentions = count_mentions(paragraphs, names, characters)
    order = sorted(
        (n for n in range(len(characters)) if mentions.counts[n]), key=lambda n: (-mentions.counts[n], n)
    )
    position = {number: n for n, number in enumerate(order)}
    groups = find_groups(mentions, len(characters))
    nearest = _find_nearest(index, [characters[n] for n in order])
    documents_of: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for (number, document), count in sorted(mentions.by_chapter.items()):
        documents_of[number][document] = count
    persons = [
        Person(
            characters[n].name,
            characters[n].aliases,
            mentions.counts[n],
            groups[n],
            documents_of[n],
            [(characters[c.character].name, c.paragraphs) for c in list_companions(mentions, n, COMPANIONS)],
            nearest[row],
            _choose_passages(mentions, n, stored, names, language),
        )
        for row, n in enumerate(order)
    ]
    pairs = [
        (
            min(position[a], position[b]),
            max(position[a], position[b]),
            count,
            mentions.in_sentence[a, b],
        )
        for (a, b), count in mentions.in_paragraph.items()
    ]
    return Cast(language, names, ResultList(persons, f"{len(persons)} persons"), sorted(pairs))


def _discover_names(stored: Sequence[_StoredParagraph], language: str) -> WordList | None:
    """The names of a text that the model was not trained on; None if none are found."""
    sample = SampledText()
    for paragraph in stored:
        sample.add(("" if language == "zh" else " ").join(paragraph.texts) + "\n")
    found = discover_words(sample.blocks) if language == "zh" else discover_names(sample.blocks)
    return WordList(tuple(ListedWord(new.word, new.count, new.tag) for new in found)) if found else None


def _segment_again(
    stored: Sequence[_StoredParagraph], language: str, word_list: WordList
) -> Iterator[list[str]]:
    """The sentences as tokens, with the names of a word list."""
    for paragraph in stored:
        for text in paragraph.texts:
            if language == "zh":
                yield word_list.cut(simplify(text))
            else:
                yield from split_token_texts(text, "en", word_list)


def _read_paragraphs(index: Index, positions: dict[int, int]) -> Iterator[_StoredParagraph]:
    """The paragraphs of the documents that are read, in the order of the text."""
    sentences = [
        sentence
        for block in index.blocks
        for sentence in block.read_sentences()
        if sentence.document in positions
    ]
    width = _measure_width(sentences) if index.head["segment"] in ("en", "auto") else None
    members: list[StoredSentence] = []
    for sentence in [*sentences, None]:
        if members and (sentence is None or not _goes_on(members[-1], sentence, width)):
            first = members[0]
            yield _StoredParagraph(
                positions[first.document],
                first.line,
                [item.words for item in members],
                [item.text for item in members],
            )
            members = []
        if sentence is not None:
            members.append(sentence)


def _measure_width(sentences: Sequence[StoredSentence]) -> int:
    """Characters of a line that paragraphs are wrapped at; 0 if a paragraph is one line."""
    shared = sum(a.line == b.line for a, b in pairwise(sentences))
    return 0 if shared > len(sentences) * SHARED_LINES else WRAPPED


def _goes_on(before: StoredSentence, after: StoredSentence, width: int | None) -> bool:
    """Whether a sentence is in the paragraph of the one before it: no blank line is between them.

    An index knows the line that a sentence begins on. Without `width`, paragraphs are lines.
    """
    distance = after.line - before.line
    most = 0 if width is None else 1 + (len(before.text) // width if width else 0)
    return before.document == after.document and 0 <= distance <= most


def _find_nearest(index: Index, characters: Sequence[Character]) -> list[list[Neighbour]]:
    """For each character the others whose names have the nearest mean vectors."""
    words = index.words
    sums = np.zeros((len(characters), index.head["size"]), np.float32)
    known = np.zeros(len(characters), np.bool_)
    for number, character in enumerate(characters):
        for name in (NAME_SEPARATOR.join(name.split()) for name in character.names):
            if name in words:
                sums[number] += words.count(name) * words.direction(name)
                known[number] = True
    directions = normalize(sums)
    cosines = np.where(known[:, None] & known[None], directions @ directions.T, -np.inf)
    np.fill_diagonal(cosines, -np.inf)
    return [
        [
            Neighbour(characters[other].name, float(row[other]))
            for other in np.argsort(-row, kind="stable")[:NEAREST].tolist()
            if row[other] > -np.inf
        ]
        for row in cosines
    ]


def _choose_passages(
    mentions: BookMentions, number: int, stored: Sequence[_StoredParagraph], names: list[str], language: str
) -> list[Passage]:
    """The paragraphs that mention a character most, cut if they are long; in the order of the text."""
    best = sorted(mentions.paragraphs[number], key=lambda item: (-item.mentions, item.paragraph))[:PASSAGES]
    passages = []
    for paragraph, first, _ in sorted(best):
        texts = stored[paragraph].texts[first:]
        kept = [texts[0]]
        for text in texts[1:]:
            if sum(map(len, kept)) + len(text) > PASSAGE:
                break
            kept.append(text)
        joined = ("" if language == "zh" else " ").join(kept)
        passages.append(Passage(joined, names[stored[paragraph].document], stored[paragraph].line))
    return passages
