"""What decides the content of a prepared corpus, beside its files.

    training.settings ([corpus])  ->  text.corpus.settings  ->  text.corpus.build, text.corpus.prepared

`CorpusSettings` is the [corpus] section of a configuration; `CorpusSpec` adds what other sections decide: the
segmentation and the characters of the model, and the seed of the training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from polyseme.choices import CharacterEncoding
from polyseme.config import Settings
from polyseme.segmentations import Segmentation
from polyseme.text.corpus.headings import check_documents
from polyseme.text.encodings import AUTO, check_encoding
from polyseme.text.fingerprint import digest
from polyseme.text.segment import WordList

Documents = Annotated[str, AfterValidator(check_documents)]
TextEncoding = Annotated[str, AfterValidator(check_encoding)]


class CorpusSettings(Settings):
    """How files become documents, a vocabulary and a held-out part."""

    documents: Documents = (
        "file"  # of plain text: file, line, block, chapters-zh, chapters-en, auto, a pattern
    )
    encoding: TextEncoding = "auto"  # of the files: detected, or a name such as gb18030
    field: str = "text"  # the field of JSON lines with the text
    min_count: PositiveInt = 2  # words that occur less often are unknown words
    max_words: Annotated[int, Field(ge=2)] = 200_000  # largest vocabulary, without <S>, </S> and <UNK>
    valid_share: Annotated[float, Field(ge=0, le=0.5)] = 0.01  # share of the words held out; 0: none
    valid_tokens: NonNegativeInt = 2_000  # hold out at least this many words, but at most a fifth of the text
    valid_every: Annotated[int, Field(ge=2)] | None = None  # hold out every n-th sentence, not documents
    new_words: bool = True  # find names and new words of Chinese text (segmentations zh and auto)
    names: bool = False  # find names of several words in English text and join them (en and auto)


_DEFAULTS = CorpusSettings()


@dataclass(frozen=True)
class CorpusSpec:
    """All that decides the content of a prepared corpus, beside its files.

    Attributes:
        settings: The [corpus] section.
        segment: How text is segmented.
        encoding: What characters are; None: the model reads no characters.
        max_chars: Characters of a word, with its begin and end mark.
        seed: Chooses the documents to hold out.
        max_types: Distinct words counted at the same time; beyond that rare ones are dropped.
        word_list: Words that the segmentation must know; None: those of its dictionary.

    """

    settings: CorpusSettings = _DEFAULTS
    segment: Segmentation = "auto"
    encoding: CharacterEncoding | None = "bytes"
    max_chars: int = 50
    seed: int = 0
    max_types: int = 2_000_000
    word_list: WordList | None = None

    @property
    def finds_words(self) -> bool:
        """Whether new words are searched for: in text that jieba may segment."""
        return self.settings.new_words and self.segment in ("zh", "auto")

    @property
    def joins_names(self) -> bool:
        """Whether names of several words are searched for: in text that is segmented as English."""
        return self.settings.names and self.segment in ("en", "auto")

    def as_dict(self) -> dict[str, Any]:
        """Flat values, as meta.json and the fingerprint of a corpus hold them; must not change.

        What has no effect on the text is left out, so that a corpus of an earlier version stays valid.
        """
        values: dict[str, Any] = {
            "segment": self.segment,
            **self.settings.model_dump(exclude={"encoding", "new_words", "names"}),
            **({} if self.settings.encoding == AUTO else {"text_encoding": self.settings.encoding}),
            "encoding": self.encoding,
            "max_chars": self.max_chars,
            "max_types": self.max_types,
            "seed": self.seed,
        }
        if self.finds_words:
            values["new_words"] = True
        if self.joins_names:
            values["names"] = True
        if self.word_list is not None:
            values["word_list"] = digest(self.word_list.lines())
        return values
