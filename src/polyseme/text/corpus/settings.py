"""What decides the content of a prepared corpus, beside its files.

    training.settings ([corpus])  ->  text.corpus.settings  ->  text.corpus.build, text.corpus.prepared

`CorpusSettings` is the [corpus] section of a configuration; `CorpusSpec` adds what other sections decide: the
segmentation and the characters of the model, and the seed of the training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from polyseme.config import Settings
from polyseme.segmentations import Segmentation
from polyseme.text.corpus.headings import check_documents
from polyseme.text.encodings import AUTO, check_encoding

Documents = Annotated[str, AfterValidator(check_documents)]
TextEncoding = Annotated[str, AfterValidator(check_encoding)]
Encoding = Literal["bytes", "codepoints"]


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

    """

    settings: CorpusSettings = _DEFAULTS
    segment: Segmentation = "auto"
    encoding: Encoding | None = "bytes"
    max_chars: int = 50
    seed: int = 0
    max_types: int = 2_000_000

    def as_dict(self) -> dict[str, Any]:
        """Flat values, as meta.json and the fingerprint of a corpus hold them; must not change."""
        return {
            "segment": self.segment,
            **self.settings.model_dump(exclude={"encoding"}),
            **({} if self.settings.encoding == AUTO else {"text_encoding": self.settings.encoding}),
            "encoding": self.encoding,
            "max_chars": self.max_chars,
            "max_types": self.max_types,
            "seed": self.seed,
        }
