"""Files of any size to a memory-mapped stream of type numbers, in constant memory.

    text.documents, text.counting, text.heldout  ->  text.corpus  ->  training

(public names first; being filled)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.text.chars import Alphabet
from polyseme.text.vocab import Vocab

Watch = Callable[[int, int | None, int], None]  # bytes read, bytes in all (None: compressed), tokens so far
Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class CorpusSettings:
    """What decides the content of a prepared corpus, beside its inputs."""

    segment: str = "auto"
    documents: Literal["file", "line", "block"] = "file"
    field: str = "text"  # of JSON lines
    min_count: int = 2
    max_words: int = 200_000  # the three specials not counted
    encoding: Literal["bytes", "codepoints"] | None = "bytes"  # None: no table of characters
    max_chars: int = 50
    valid_share: float = 0.01  # 0: nothing is held out
    valid_tokens: int = 2_000  # the least that is held out
    valid_every: int | None = None  # hold out every n-th sentence instead of documents
    max_types: int = 2_000_000  # live in memory while counting
    seed: int = 0


@dataclass(frozen=True)
class CorpusReport:
    """What the program counted; tokens are words, without the boundaries of sentences."""

    documents: int
    valid_documents: int
    sentences: int
    valid_sentences: int
    tokens: int
    valid_tokens: int
    types: int  # with the three specials
    words: int  # V, with the three specials
    characters: int  # rows of the character embedding, 0 without one
    unknown: float  # share of train tokens outside the vocabulary
    valid_unknown: float
    cut_tokens: int  # train tokens longer than max_chars
    repeated_sentences: int  # sentences that stood in the corpus before, word for word
    repeated_documents: int
    repeats_estimated: bool
    pruned_types: int
    count_error: int  # words outside the vocabulary may have occurred that often; kept counts are exact
    held_out: str  # how the held-out part was chosen


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus, opened: big arrays are memory maps."""

    folder: Path
    vocab: Vocab  # vocab.words[type] for type < V (Vocab.id is type + 1)
    counts: NDArray[np.int64]  # (V,) in train
    n_types: int
    train: Ids  # every sentence is begin w … w end, numbers of types
    valid: Ids
    chars: NDArray[np.uint16] | NDArray[np.uint32] | None  # (n_types, C)
    alphabet: Alphabet | None
    report: CorpusReport
    fingerprint: str

    @property
    def begin(self) -> int:
        """The type of the begin of a sentence: 0, unless a given vocabulary has it elsewhere."""
        raise NotImplementedError

    @property
    def end(self) -> int:
        """The type of the end of a sentence: 1."""
        raise NotImplementedError

    @property
    def unknown(self) -> int:
        """The type of the unknown word: 2."""
        raise NotImplementedError

    def targets(self, types: Ids) -> NDArray[np.int64]:
        """What the softmax predicts: the type itself below V, the unknown word above."""
        raise NotImplementedError


def prepare_corpus(
    inputs: Sequence[str],
    folder: Path,
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008
    *,
    valid: Sequence[str] = (),
    vocab: Vocab | None = None,
    alphabet: Alphabet | None = None,
    workers: int | None = None,
    watch: Watch | None = None,
) -> Corpus:
    """Segment, count and number the inputs into `folder`, or open what an equal run left there."""
    raise NotImplementedError


def open_corpus(folder: Path) -> Corpus:
    """Open a prepared corpus."""
    raise NotImplementedError


def sentence_starts(stream: Ids, begin: int = 0) -> NDArray[np.int64]:
    """Places in the stream where a sentence begins."""
    raise NotImplementedError
