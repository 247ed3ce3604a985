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
        tokens: (W,) the token that each word belongs to; None if every token is one word.
        length: T.

    """

    sentences: list[list[str]]
    tokens: NDArray[np.int64] | None
    length: int

    def number_tokens(self) -> NDArray[np.int64]:
        """(W,) the token that each word belongs to."""
        return np.arange(self.length) if self.tokens is None else self.tokens

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
        joined = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
        rows = joined.astype(np.float32, copy=False)  # (W, H)
        if self.tokens is None:
            return rows
        counts = np.bincount(self.tokens, minlength=self.length)  # (T,)
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
    texts = [token.text for token in doc]
    spans = find_sentences(doc, texts)
    if " ".join(texts).split() == texts:  # the usual document: no white space in or as a token
        return ReadDoc([texts[start:stop] for start, stop in spans], None, len(doc))
    sentences: list[list[str]] = []
    tokens: list[int] = []
    for start, stop in spans:
        sentence: list[str] = []
        for position in range(start, stop):
            words = texts[position].split()
            sentence += words
            tokens += [position] * len(words)
        if sentence:
            sentences.append(sentence)
    return ReadDoc(sentences, np.array(tokens, np.int64), len(doc))


def find_sentences(doc: Doc, texts: Sequence[str]) -> list[tuple[int, int]]:
    """Start and stop of each sentence, in tokens; `texts` are those of the tokens."""
    if len(doc) < 2:
        return [(0, len(doc))] if len(doc) else []
    if doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    if _make_sentencizer().punct_chars.isdisjoint(texts[:-1]):  # nothing ends a sentence before the end
        return [(0, len(doc))]
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
