"""Start the word table of a new model from static vectors: word2vec, GloVe or fastText.

    model.words.static, text.static_vectors  ->  training.static_words  ->  training.pretrain

A word without a vector, also in lower case, gets a random one of the same scale, drawn by the seed.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from polyseme.config import WordsSettings
from polyseme.errors import ConfigError, DataError
from polyseme.model.tokens import fill_word_table
from polyseme.text.static_vectors import read_dim, read_vectors
from polyseme.text.vocab import Vocab

logger = logging.getLogger(__name__)


class StaticCoverage(NamedTuple):
    """How many words of a vocabulary have a static vector.

    Attributes:
        path: The file of vectors.
        known: Words with a vector.
        words: Words of the vocabulary, without the marks and the unknown word.

    """

    path: str
    known: int
    words: int

    def __str__(self) -> str:
        return f"{self.path}: {self.known:,} of {self.words:,} words ({self.known / self.words:.1%})"


def check_static_words(words: WordsSettings | None) -> None:
    """Refuse settings of a word table that cannot work, before the text is prepared.

    Raises:
        ConfigError: A table is frozen without static vectors, or their size is not `model.words.dim`.

    """
    if words is None:
        return
    if words.static is None:
        if not words.trained:
            raise ConfigError(
                "model.words.trained=false needs model.words.static: a random table would be frozen. "
                "Name a file of vectors (word2vec, GloVe, fastText), or leave model.words.trained out."
            )
        return
    dim = read_dim(words.static)
    if dim != words.dim:
        raise ConfigError(
            f"{words.static}: vectors of {dim} values, but model.words.dim is {words.dim}. "
            f"Set model.words.dim={dim}."
        )


def fill_word_table_from_file(table: nn.Embedding, vocab: Vocab, path: str, seed: int) -> StaticCoverage:
    """Fill a word table with static vectors, in place.

    Args:
        table: The word table, (V + 1, D); row 0 is padding.
        vocab: The words of its other rows.
        path: A file of vectors.
        seed: Draws the vectors of the words that the file lacks.

    Returns:
        How many words have a vector.

    Raises:
        DataError: The file has a vector for none of the words.

    """
    forms = {form for word in vocab.words for form in (word, word.lower())}
    vectors = read_vectors(path, only=forms)
    rows = [vectors.words.get(word, vectors.words.get(word.lower(), -1)) for word in vocab.words]
    known = np.array(rows) >= 0  # (V,)
    marks = {vocab.begin, vocab.end, vocab.unknown}
    words = [has_vector for word, has_vector in zip(vocab.words, known, strict=True) if word not in marks]
    coverage = StaticCoverage(path, int(sum(words)), len(words))
    if not coverage.known:
        raise DataError(f"{path}: no word of the vocabulary has a vector. Is it of another language?")
    scale = float(np.sqrt(np.mean(np.square(vectors.matrix, dtype=np.float64))))
    values = np.random.default_rng(seed).normal(0.0, scale, (len(vocab), vectors.dim)).astype(np.float32)
    values[known] = vectors.matrix[np.array(rows)[known]]
    fill_word_table(table, torch.arange(len(vocab) + 1), torch.from_numpy(np.pad(values, ((1, 0), (0, 0)))))
    logger.info("static vectors: %s", coverage)
    return coverage
