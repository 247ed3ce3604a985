"""Find the names and new words of a corpus before it is segmented, and keep them in its folder.

    text.corpus.documents, text.segment (discovery, english_names)  ->  text.corpus.new_words
        ->  text.corpus.prepared

words.txt is the word list that the corpus is segmented with: the user's words, then what was found.
new_words.json has what was found with its score, for the report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from pydantic import FiniteFloat, NonNegativeInt, TypeAdapter

from polyseme.errors import FormatError
from polyseme.io.checked import read_json
from polyseme.io.progress import OnProgress, ProgressEvent
from polyseme.text.corpus.documents import read_pieces
from polyseme.text.corpus.settings import CorpusSpec
from polyseme.text.segment import WordList, split_blocks
from polyseme.text.segment.discovery import NewWord, SampledText, discover_words
from polyseme.text.segment.english_names import discover_names
from polyseme.text.segment.word_list import ListedWord

WORD_LIST, NEW_WORDS = "words.txt", "new_words.json"
_AGAIN = "Prepare the corpus again from the text."


def find_new_words(files: Sequence[Path], spec: CorpusSpec, on_progress: OnProgress) -> list[NewWord]:
    """Find the new words of Chinese text and the names of English text, as the settings ask for."""
    if not (spec.finds_words or spec.joins_names):
        return []
    sample, size = SampledText(), 0
    settings = spec.settings
    pieces = read_pieces(files, settings.documents, spec.segment, settings.field, encoding=settings.encoding)
    for piece in pieces:
        if not piece.tokenised:
            sample.add(piece.text)
        size += piece.size
    words = discover_words(sample.blocks) if spec.finds_words else []
    if spec.joins_names:
        words += discover_names(_list_english(sample.blocks, spec.segment))
    if words:
        count = sum(1 for new in words if new.count)
        on_progress(ProgressEvent("finding words", size, size, f"{count:,} names and new words"))
    return words


def _list_english(blocks: Sequence[str], segment: str) -> list[str]:
    """The English parts of a text."""
    if segment == "en":
        return list(blocks)
    return [part for block in blocks for part, rule in split_blocks(block) if rule == "en"]


def write_word_list(folder: Path, listed: WordList | None, discovered: Sequence[NewWord]) -> WordList | None:
    """Write what the segmentation must know: the user's words, then what was found; None if nothing is."""
    entries = [ListedWord(new.word, new.count, new.tag) for new in discovered]
    if discovered:
        rows = json.dumps([astuple(new) for new in discovered], ensure_ascii=False)
        (folder / NEW_WORDS).write_text(rows + "\n", encoding="utf-8")
    if listed is None and not entries:
        return None
    word_list = WordList(tuple(entries)) if listed is None else listed.extend(entries)
    word_list.write(folder / WORD_LIST)
    return word_list


_ROWS = TypeAdapter(list[tuple[str, NonNegativeInt, str, FiniteFloat]])


def read_new_words(path: Path) -> tuple[NewWord, ...]:
    """Read what `write_word_list` wrote.

    Raises:
        FormatError: It is damaged.

    """
    rows = read_json(path, "the new words of a corpus", _AGAIN)
    try:
        return tuple(NewWord(*row) for row in _ROWS.validate_python(rows))
    except ValueError:
        raise FormatError(f"{path}: not the new words of a corpus. {_AGAIN}") from None
