"""Cache the vector of each word before any context: a table in front of the token encoder.

    formats.models.pretrained  ->  token_cache  ->  elmo

The least recently used words are evicted when the cache is full. Exact: it returns what the encoder computed.
Thread-safe. Cleared when the model's weights change.

B sentences, T tokens incl. <S> and </S>, U distinct words, D one direction.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.errors import DataError, UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.vectors.token_file import read_token_file, write_token_file
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter, ignore_progress
from polyseme.model.fast.weight_versions import WeightSnapshot
from polyseme.text.vocab import Vocab

BYTES = 256 << 20
FIRST_ROWS = 1024  # initial size of the table; it grows with the words
BLOCK = 4096  # words that are encoded together, for a whole vocabulary
TOLERANCE = 1e-3  # largest difference between a file's rows and the model's; published files are float32
ROUGH_TOLERANCE = 0.1  # the same relative to the largest value, for models loaded in bf16 or int8
CHECKED_ROWS = 16  # rows of a file that are compared with the model's
_caches: WeakSet[TokenCache] = WeakSet()  # to be reset in a forked child


class NumberedBatch(NamedTuple):
    """A batch of sentences as numbers of its distinct tokens; 0 is <S>, 1 is </S>."""

    tokens: list[str]  # the distinct tokens, numbered from 2
    positions: Tensor  # (B, T) token numbers, each sentence in <S> … </S>, zeros behind it
    lengths: Tensor  # (B,) with <S> and </S>


def number_tokens(sentences: Sequence[Sequence[str]], *, frame_empty: bool = False) -> NumberedBatch:
    """Number the distinct tokens of a batch; a sentence without tokens has length 0 unless `frame_empty`."""
    numbers: defaultdict[str, int] = defaultdict(count(2).__next__)
    rows = [list(map(numbers.__getitem__, tokens)) for tokens in sentences]
    framed = [[0, *row, 1] if row or frame_empty else [] for row in rows]
    lengths = torch.tensor([len(row) for row in framed], dtype=torch.long, device="cpu")
    width = max(map(len, framed), default=0)
    positions = torch.zeros(len(rows), width, dtype=torch.long, device="cpu")
    numbered = torch.tensor([*chain(*framed)], dtype=torch.long, device="cpu")
    positions[torch.arange(width, device="cpu") < lengths[:, None]] = numbered
    return NumberedBatch(list(numbers), positions, lengths)


@dataclass
class CacheHits:
    """How many words were found in the cache, and how many were encoded."""

    hits: int = 0
    misses: int = 0


class TokenCache:
    """Vectors of words by their spelling, within `max_bytes`; 0 stores nothing."""

    def __init__(self, model: Pretrained, max_bytes: int = BYTES) -> None:
        if max_bytes < 0:
            raise UsageError(f"cache_bytes is {max_bytes}, expected 0 or more.")
        self.counts = CacheHits()
        self.max_bytes = max_bytes
        self._model = model
        self._size = model.config.recurrent.outputs
        self._max_rows = max_bytes // (4 * self._size)
        self._lock = threading.Lock()
        self._ends: Tensor | None = None  # <S> and </S>
        self._clear()
        _caches.add(self)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """Memory of the stored vectors."""
        return self._table.numel() * self._table.element_size()

    def reset_in_child(self) -> None:
        """Replace the lock in a forked child; a cache that another thread was changing starts empty."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._clear()

    @torch.inference_mode()
    def vectors(self, words: Sequence[str]) -> Tensor:
        """Vectors (U + 2, D) of <S>, </S> and the distinct `words`, on the device of the model."""
        with self._lock:
            self._check_weights()
            rows = [self._touch_row(word) for word in words]
            ends, known = self._ends, [number for number, row in enumerate(rows) if row >= 0]
            self.counts.hits += len(known)
            self.counts.misses += len(words) - len(known)
            if ends is not None and len(known) == len(words):
                return self._join_ends(ends, rows)
            cached = self._table[[row for row in rows if row >= 0]]
        missing = [number for number, row in enumerate(rows) if row < 0]
        new_ends = ends is None
        encoded = self._encode([words[number] for number in missing], ends=new_ends)
        if ends is None:
            ends, encoded = encoded[:2], encoded[2:]
        vectors = encoded.new_empty(len(words) + 2, self._size)
        vectors[:2] = ends
        vectors[[number + 2 for number in known]] = cached.to(vectors)
        vectors[[number + 2 for number in missing]] = encoded
        with self._lock:
            self._ends = ends if new_ends else self._ends
            self._store([words[number] for number in missing], encoded)
        return vectors

    def _join_ends(self, ends: Tensor, rows: list[int]) -> Tensor:
        """Vectors (U + 2, D) of <S>, </S> and rows of the table."""
        if ends.device.type != "cpu":
            return torch.cat([ends, self._table[rows]])
        vectors = ends.new_empty(len(rows) + 2, self._size)
        vectors[:2] = ends
        if rows:  # numpy copies in this thread: torch's hand-off to others would take longer
            np.take(self._table.numpy(), rows, axis=0, out=vectors.numpy()[2:], mode="clip")
        return vectors

    def clear(self) -> None:
        """Remove all words; the counts stay."""
        with self._lock:
            self._clear()

    def fill(self, words: Sequence[str]) -> None:
        """Encode all `words` now, as far as they fit."""
        for start in range(0, len(words), BLOCK):
            self.vectors(list(dict.fromkeys(words[start : start + BLOCK])))

    def write(
        self, path: Path, vocab: Vocab, *, force: bool = False, on_progress: OnProgress = ignore_progress
    ) -> None:
        """Write the vectors of a vocabulary in bilm-tf's format, one row per word.

        Args:
            path: The .hdf5 file to write.
            vocab: The words, in the order of the rows.
            force: Overwrite an existing file.
            on_progress: Receives the progress.

        """
        write_token_file(path, self._encode_blocks(vocab, on_progress), self._size, force=force)

    def _encode_blocks(self, vocab: Vocab, on_progress: OnProgress) -> Iterator[NDArray[np.float32]]:
        ends, meter = {vocab.begin: 0, vocab.end: 1}, RateMeter("words")
        for start in range(0, len(vocab), BLOCK):
            words = vocab.words[start : start + BLOCK]
            rows = [ends.get(word, number + 2) for number, word in enumerate(words)]
            yield self._encode(words).float().cpu().numpy()[rows]
            detail = meter.add(len(words))
            on_progress(ProgressEvent("encoding", meter.count, len(vocab), detail))

    @torch.inference_mode()
    def read(self, path: Path, vocab: Vocab) -> None:
        """Load the vectors of a vocabulary from a file in bilm-tf's format.

        Args:
            path: An .hdf5 file, as `write` or bilm-tf writes it.
            vocab: The words, in the order of the rows.

        Raises:
            DataError: If the file does not fit the vocabulary, or some of its rows differ from the model's.

        """
        vectors = torch.from_numpy(read_token_file(path))
        if vectors.shape != (len(vocab), self._size):
            rows, size = vectors.shape
            raise DataError(
                f"{path}: {rows:,} rows of {size} values, but the vocabulary has {len(vocab):,} words and "
                f"the model {self._size} values. Is it of another model or vocabulary?"
            )
        numbers = [number for number, word in enumerate(vocab.words) if word not in (vocab.begin, vocab.end)]
        checked = numbers[:: max(1, len(numbers) // CHECKED_ROWS)]
        computed = self._encode([vocab.words[number] for number in checked], ends=False).float().cpu()
        differences = computed - vectors[checked]
        difference, largest = (float(d.abs().max()) if checked else 0.0 for d in (differences, computed))
        exact = self._model.network.precision == "fp32"
        if difference > (TOLERANCE if exact else ROUGH_TOLERANCE * largest):
            raise DataError(
                f"{path}: its vectors differ from the model's by up to {difference:.2g}. It was made with "
                "another model or for another vocabulary."
            )
        with self._lock:
            self._check_weights()
            self._store([vocab.words[number] for number in numbers], vectors[numbers])

    def _encode(self, words: Sequence[str], *, ends: bool = True) -> Tensor:
        """Run <S>, </S> and `words`, or `words` alone, through the token encoder."""
        network, first = self._model.network, 0 if ends else 2
        with torch.inference_mode():
            network.pack()  # the weights of a loaded model are final
            ids = (None if rows is None else rows[first:] for rows in self._model.token_ids(words))
            return network.tokens(*ids)  # type: ignore[no-any-return]

    def _check_weights(self) -> None:
        if self._precision != self._model.network.precision or not self._snapshot.matches(
            self._list_weights()
        ):
            self._clear()

    def _list_weights(self) -> list[Tensor]:
        """The parameters of the token encoder, listed faster than `parameters` does."""
        return [
            weight for module in self._modules for weight in module._parameters.values() if weight is not None
        ]

    def _clear(self) -> None:
        self._modules = list(self._model.network.tokens.modules())
        weights = self._list_weights()
        self._snapshot, self._precision = WeightSnapshot(weights), self._model.network.precision
        self._rows: OrderedDict[str, int] = OrderedDict()  # least recently used first
        self._table = weights[0].new_empty(0, self._size).detach()
        self._ends = None

    def _touch_row(self, word: str) -> int:
        """The row of a word, which is now the most recently used, or -1."""
        row = self._rows.get(word, -1)
        if row >= 0:
            self._rows.move_to_end(word)
        return row

    def _store(self, words: Sequence[str], vectors: Tensor) -> None:
        """Write words to the table, over the least recently used ones if it is full."""
        new = [number for number, word in enumerate(words) if word not in self._rows][: self._max_rows]
        self._grow(len(self._rows) + len(new))
        rows = []
        for number in new:
            full = len(self._rows) >= self._max_rows
            row = self._rows.popitem(last=False)[1] if full else len(self._rows)
            self._rows[words[number]] = row
            rows.append(row)
        self._table[rows] = vectors[new].to(self._table)

    def _grow(self, rows: int) -> None:
        """Allocate at least `rows` rows, up to the limit."""
        wanted = min(self._max_rows, max(rows, FIRST_ROWS))
        if wanted > len(self._table):
            size = min(self._max_rows, max(wanted, 2 * len(self._table)))
            larger = self._table.new_empty(size, self._size)
            larger[: len(self._table)] = self._table
            self._table = larger


def _reset_in_child() -> None:
    for cache in _caches:
        cache.reset_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_reset_in_child)
