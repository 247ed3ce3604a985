"""The text of an index in its order: sentences, what stands before and after a usage, and passages.

    search.index (blocks of sentences)  ->  search.corpus_text  ->  search.concordance, api, server

An index stores its sentences, so that the text can be read without the files it came from. It does not
store the white space between them: a space, or nothing between Chinese characters. An index of selected
words has no sentences without one of these words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.errors import UsageError
from polyseme.search.index import Index, Usage
from polyseme.search.usage_store import StoredSentence

MAX_WORD = 20  # characters of a word that a cut may divide
PARAGRAPH_SEGMENTATIONS = ("en", "auto")  # a paragraph has several lines, and a blank line ends it
LINE_CHARACTERS = 60  # of a line of such a paragraph, at least, if it is not the last


class CorpusText:
    """The sentences of an index, numbered from 0 in the order of the text.

    Args:
        index: The index, or a part of one; sentences are those of the whole index.

    """

    def __init__(self, index: Index) -> None:
        self.index = index.whole
        self._starts = np.cumsum([0, *(block.sentence_count for block in self.index.blocks)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def is_complete(self) -> bool:
        """Whether the index holds every sentence and word of its corpus."""
        filters = self.index.head.get("filters") or {}
        is_counted = filters.get("min_count", 1) > 1 or filters.get("max_count") is not None
        return not (is_counted or filters.get("stop") or filters.get("only"))

    def find_sentence(self, usage: int) -> int:
        """Return the number of the sentence of a usage.

        Args:
            usage: The number of the usage.

        """
        starts = self.index.block_starts
        block = int(np.searchsorted(starts, usage, side="right")) - 1
        row = np.array([usage - int(starts[block])])
        return int(self._starts[block]) + int(self.index.blocks[block].sentence_numbers(row)[0])

    def read(self, number: int) -> StoredSentence:
        """Return a sentence: its text, the position of its document in `Index.listed_documents`, its line.

        Args:
            number: The number of the sentence.

        """
        block = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self.index.blocks[block].read_sentence(number - int(self._starts[block]))

    def read_before(self, number: int) -> Iterator[StoredSentence]:
        """Read the sentences of the same document before a sentence, the nearest first.

        Args:
            number: The number of the sentence.

        """
        document = self.read(number).document
        for before in range(number - 1, -1, -1):
            sentence = self.read(before)
            if sentence.document != document:
                return
            yield sentence

    def read_after(self, number: int) -> Iterator[StoredSentence]:
        """Read the sentences of the same document after a sentence, the nearest first.

        Args:
            number: The number of the sentence.

        """
        document = self.read(number).document
        for after in range(number + 1, len(self)):
            sentence = self.read(after)
            if sentence.document != document:
                return
            yield sentence

    def read_around(self, usage: Usage, width: int) -> tuple[str, str]:
        """Return the text of the same document on the left and on the right of a usage.

        Args:
            usage: The usage.
            width: How many characters on each side; words are not divided.

        """
        number, line = self.find_sentence(usage.number), usage.line
        left, right = usage.sentence[: usage.start], usage.sentence[usage.stop :]
        word = usage.sentence[usage.start : usage.stop]
        for sentence in self.read_before(number) if len(left) < width else ():
            space = " " if sentence.line < line else ""
            left = f"{sentence.text}{_find_space(sentence.text, left or word, space)}{left}"
            line = sentence.line
            if len(left) >= width:
                break
        line = usage.line
        for sentence in self.read_after(number) if len(right) < width else ():
            space = " " if sentence.line > line else ""
            right = f"{right}{_find_space(right or word, sentence.text, space)}{sentence.text}"
            line = sentence.line
            if len(right) >= width:
                break
        return _cut_left(left, width), _cut_right(right, width)


def join_texts(first: str, second: str) -> str:
    """Join two pieces of text: with a space, but not beside Chinese characters.

    Example:
        >>> join_texts("He went.", "She came."), join_texts("操大怒。", "欲斩之。")
        ('He went. She came.', '操大怒。欲斩之。')

    """
    return f"{first}{_find_space(first, second)}{second}" if first and second else first + second


def _find_space(first: str, second: str, between_wide: str = "") -> str:
    """The space between two pieces of text; `between_wide` beside Chinese characters."""
    if first[-1].isspace() or second[0].isspace():
        return ""
    return between_wide if _ends_wide(first[::-1]) or _ends_wide(second) else " "


def _ends_wide(text: str) -> bool:
    """Whether a text begins with Chinese or Japanese, after quotes, which English has, too."""
    return any(map(_is_wide, text.lstrip("“”‘’—…")[:1]))


def _is_wide(character: str) -> bool:
    """Whether no space stands beside a character: Chinese and Japanese, and their punctuation."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\uff60"


def _cut_left(text: str, width: int) -> str:
    """The last `width` characters of a text, without a part of a word."""
    if len(text) <= width:
        return text
    kept = text[-width:] if width else ""
    if _divides_word(text, len(text) - width):
        _, space, rest = kept[:MAX_WORD].partition(" ")
        kept = rest + kept[MAX_WORD:] if space else kept
    return kept.lstrip()


def _cut_right(text: str, width: int) -> str:
    """The first `width` characters of a text, without a part of a word."""
    kept = text[:width]
    if len(text) > width and _divides_word(text, width):
        first, space, _ = kept[-MAX_WORD:].rpartition(" ")
        kept = kept[:-MAX_WORD] + first if space else kept
    return kept


def _divides_word(text: str, position: int) -> bool:
    """Whether a position is inside a word of letters."""
    around = text[position - 1 : position + 1] if position else ""
    return len(around) == 2 and all(map(str.isalnum, around)) and not any(map(_is_wide, around))


@dataclass(frozen=True)
class TextPassage:
    """The text around a usage.

    Attributes:
        usage: The usage.
        paragraphs: The paragraphs: the line each begins at, and its text.
        paragraph: Which of them has the usage, from 0.
        start: Offset of the word in that paragraph.
        stop: Offset of the end of the word.
        before: Whether the document has text before the first paragraph.
        after: Whether it has text after the last.
        complete: Whether the index holds every sentence; one of selected words (`min_count`) does not.

    """

    usage: Usage
    paragraphs: list[tuple[int, str]]
    paragraph: int
    start: int
    stop: int
    before: bool
    after: bool
    complete: bool

    def marked(self, left: str = "[", right: str = "]") -> str:
        """Return the text with the word between `left` and `right`, a line for each paragraph."""
        lines = [text for _, text in self.paragraphs]
        text = lines[self.paragraph]
        lines[self.paragraph] = (
            f"{text[: self.start]}{left}{text[self.start : self.stop]}{right}{text[self.stop :]}"
        )
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "number": self.usage.number,
            "word": self.usage.word,
            "document": self.usage.document,
            "title": self.usage.title,
            "line": self.usage.line,
            "paragraphs": [{"line": line, "text": text} for line, text in self.paragraphs],
            "paragraph": self.paragraph,
            "start": self.start,
            "stop": self.stop,
            "before": self.before,
            "after": self.after,
            "complete": self.complete,
        }


def read_passage(index: Index, number: int, sentences: int = 15) -> TextPassage:
    """Read the text around a usage.

    Args:
        index: The index.
        number: The number of the usage.
        sentences: How many sentences to read before and after its sentence, at most: a passage stays in its
            document.

    Raises:
        UsageError: There is no usage of that number, or `sentences` is negative.

    """
    whole = index.whole
    if not 0 <= number < len(whole):
        raise UsageError(f"There is no usage {number}: the index has usages 0 to {len(whole) - 1:,}.")
    if sentences < 0:
        raise UsageError(f"sentences is {sentences}, expected 0 or more.")
    text, usage = CorpusText(index), whole.usage(number)
    position = text.find_sentence(number)
    before = _take(text.read_before(position), sentences)
    after = _take(text.read_after(position), sentences)
    has_more = len(before) > sentences, len(after) > sentences
    around = [*before[:sentences][::-1], text.read(position), *after[:sentences]]
    join_lines = whole.head["segment"] in PARAGRAPH_SEGMENTATIONS
    paragraphs: list[tuple[int, str]] = []
    paragraph = offset = 0
    previous: StoredSentence | None = None
    for row, sentence in enumerate(around):
        if previous is None or not _continues(previous, sentence, join_lines=join_lines):
            paragraphs.append((sentence.line, ""))
        line, joined = paragraphs[-1]
        paragraphs[-1] = line, join_texts(joined, sentence.text)
        if row == len(before[:sentences]):
            paragraph, offset = len(paragraphs) - 1, len(paragraphs[-1][1]) - len(sentence.text)
        previous = sentence
    return TextPassage(
        usage,
        paragraphs,
        paragraph,
        offset + usage.start,
        offset + usage.stop,
        *has_more,
        text.is_complete,
    )


def _take(sentences: Iterator[StoredSentence], count: int) -> list[StoredSentence]:
    """`count` sentences, and one more if there is one."""
    return [sentence for _, sentence in zip(range(count + 1), sentences, strict=False)]


def _continues(previous: StoredSentence, sentence: StoredSentence, *, join_lines: bool) -> bool:
    """Whether a sentence stands in the paragraph of the one before it.

    A line is a paragraph; if lines are joined, a blank line ends it. Blank lines are not stored, but a
    sentence of several lines is longer than a line: the next begins at the latest below its last.
    """
    lines = len(previous.text) // LINE_CHARACTERS + 1 if join_lines else 0
    return sentence.line <= previous.line + lines
