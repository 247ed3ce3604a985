"""The tokenizer `polyseme.Tokenizer.v1`: spaCy tokens as Polyseme segments text.

    text.segment  ->  here  ->  spaCy, by an entry point

For Chinese, whose words spaCy alone does not find: `spacy.blank("zh")` makes a token of each character, while
the bundled `zh` was trained on words. As spaCy requires, the text of the document is the text that was given:
a single space belongs to the token before it, other white space is a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from polyseme.integrations.spacy.documents import raise_value_errors
from polyseme.text.segment import tokenize


def make_tokenizer(segment: str = "auto") -> Callable[[Language], SegmentTokenizer]:
    """What spaCy calls for `@tokenizers = "polyseme.Tokenizer.v1"`.

    Args:
        segment: As in `Elmo.embed`: "zh", "zh-char", "en", "split" or "auto".

    Returns:
        A function that makes the tokenizer of a pipeline.

    Raises:
        ValueError: If there is no such segmentation.

    """
    with raise_value_errors():
        tokenize("", segment)

    def make(nlp: Language) -> SegmentTokenizer:
        return SegmentTokenizer(nlp.vocab, segment)

    return make


class SegmentTokenizer:
    """Makes documents with the tokens of a segmentation."""

    def __init__(self, vocab: Vocab, segment: str) -> None:
        self.vocab, self.segment = vocab, segment

    def __call__(self, text: str) -> Doc:
        """Tokenize a text."""
        words: list[str] = []
        spaces: list[bool] = []
        position = 0
        for token in tokenize(text, self.segment):
            _add_gap(text[position : token.start], words, spaces)
            words.append(token.text)
            spaces.append(False)
            position = token.end
        _add_gap(text[position:], words, spaces)
        return Doc(self.vocab, words=words, spaces=spaces)

    def to_disk(self, path: str | Path, **options: Any) -> None:
        """Nothing to write: the config of the pipeline holds the segmentation."""

    def from_disk(self, path: str | Path, **options: Any) -> SegmentTokenizer:
        """Nothing to read."""
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Nothing to write."""
        return b""

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> SegmentTokenizer:
        """Nothing to read."""
        return self


def _add_gap(gap: str, words: list[str], spaces: list[bool]) -> None:
    """Add the white space between two tokens."""
    if gap.startswith(" ") and words:
        spaces[-1] = True
        gap = gap[1:]
    if gap:
        words.append(gap)
        spaces.append(False)
