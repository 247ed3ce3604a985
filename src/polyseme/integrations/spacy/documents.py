"""Documents of spaCy as sentences for ELMo, and ELMo's vectors as one row per token of spaCy.

    integrations.spacy.vectors, integrations.spacy.tok2vec, integrations.spacy.task_component  ->  here

ELMo reads words, and a token of spaCy may be none or several: white space is no word, and a token
that `doc.retokenize` merged ("New York") has two. ELMo does not see white space, whose vector is zero; a
token of several words gets the mean of their vectors.

T tokens of a document, W words of it, H values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from polyseme.errors import PolysemeError

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ReadDoc:
    """A document as ELMo reads it.

    Attributes:
        sentences: The words of each sentence; none is empty.
        tokens: (W,) the token that each word belongs to.
        length: T.

    """

    sentences: list[list[str]]
    tokens: NDArray[np.int64]
    length: int

    def align(self, vectors: Sequence[NDArray[np.floating]], size: int) -> Floats:
        """One row per token.

        Args:
            vectors: (words, H) of each sentence.
            size: H.

        Returns:
            (T, H): zeros for white space, the mean of its words for other tokens.

        """
        if not vectors:
            return np.zeros((self.length, size), np.float32)
        rows = np.concatenate(vectors).astype(np.float32, copy=False)  # (W, H)
        counts = np.bincount(self.tokens, minlength=self.length)  # (T,)
        if (counts == 1).all():
            return rows
        aligned = np.zeros((self.length, rows.shape[1]), np.float32)
        np.add.at(aligned, self.tokens, rows)
        aligned /= np.maximum(counts, 1)[:, None]
        return aligned


def read_doc(doc: Doc) -> ReadDoc:
    """Read a document sentence by sentence.

    Its sentence boundaries are used if an earlier component set them. Otherwise spaCy's `Sentencizer` finds
    them by punctuation; the document is not changed.

    Args:
        doc: The document.

    Returns:
        Its sentences, and the token of each word.

    """
    sentences: list[list[str]] = []
    tokens: list[int] = []
    for start, stop in find_sentences(doc):
        sentence: list[str] = []
        for position in range(start, stop):
            words = doc[position].text.split()
            sentence += words
            tokens += [position] * len(words)
        if sentence:
            sentences.append(sentence)
    return ReadDoc(sentences, np.array(tokens, np.int64), len(doc))


def find_sentences(doc: Doc) -> list[tuple[int, int]]:
    """Start and stop of each sentence, in tokens."""
    if len(doc) < 2:
        return [(0, len(doc))] if len(doc) else []
    if doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    flags = _make_sentencizer().predict([doc])[0]
    starts = [0, *(position for position in range(1, len(doc)) if flags[position])]
    return list(zip(starts, [*starts[1:], len(doc)], strict=True))


@cache
def _make_sentencizer() -> Sentencizer:
    """Rules of spaCy for punctuation; making them takes longer than reading a short document."""
    return Sentencizer()


@contextmanager
def raise_value_errors() -> Iterator[None]:
    """Raise what Polyseme refuses as spaCy does: as a `ValueError`, with the same message."""
    try:
        yield
    except ValueError:
        raise
    except PolysemeError as problem:
        raise ValueError(str(problem)) from None
