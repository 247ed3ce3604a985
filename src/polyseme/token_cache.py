"""The vector of a word before any context, computed once: a cache in front of the token encoder.

    formats.models.pretrained  ->  cache  ->  embedder

Least recently used words go first when the cache is full. Exact: what comes out is what the encoder gave.
Several threads may ask at once. If the model's weights change, the cache begins anew.

U words, D one direction.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.errors import DataError, UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.vectors.token_file import read_token_file, write_token_file
from polyseme.model.fast.weight_versions import WeightSnapshot
from polyseme.text.vocab import Vocab

BYTES = 256 << 20
FIRST_ROWS = 1024  # of the table; it grows as words come
BLOCK = 4096  # words that are encoded together when a vocabulary is
TOLERANCE = 1e-3  # of a file's rows against the model's own; published files are float32
ROUGH = 0.1  # the same in proportion to the largest value, where the model is loaded in bf16 or int8
CHECKED = 16  # rows of a file that are compared with the model's own
_caches: WeakSet[TokenCache] = WeakSet()  # to be reset in a forked child


@dataclass
class CacheHits:
    """How often words were asked for: found in the cache, or encoded."""

    hits: int = 0
    misses: int = 0


class TokenCache:
    """Vectors of words by their spelling, within `max_bytes`; 0 keeps nothing."""

    def __init__(self, model: Pretrained, max_bytes: int = BYTES) -> None:
        if max_bytes < 0:
            raise UsageError(f"cache_bytes is {max_bytes}, expected 0 or more.")
        self.counts = CacheHits()
        self.max_bytes = max_bytes
        self._model = model
        self._size = model.config.recurrent.outputs
        self._most = max_bytes // (4 * self._size)  # rows
        self._lock = threading.Lock()
        self._ends: Tensor | None = None  # <S> and </S>
        self._clear()
        _caches.add(self)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """Memory of the vectors that are kept."""
        return self._table.numel() * self._table.element_size()

    def reset_in_child(self) -> None:
        """Replace the lock in a forked child; a cache that another thread was changing starts empty."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._clear()

    @torch.inference_mode()
    def vectors(self, words: Sequence[str]) -> Tensor:
        """Vectors (U + 2, D) of <S>, </S> and the distinct `words`."""
        with self._lock:
            self._check_weights()
            rows = [self._find(word) for word in words]
            ends, known = self._ends, [place for place, row in enumerate(rows) if row >= 0]
            found = self._table[[row for row in rows if row >= 0]]
            self.counts.hits += len(known)
            self.counts.misses += len(words) - len(known)
        if ends is not None and len(known) == len(words):
            return torch.cat([ends, found])
        missing = [place for place, row in enumerate(rows) if row < 0]
        new_ends = ends is None
        fresh = self._encode([words[place] for place in missing], ends=new_ends)
        if ends is None:
            ends, fresh = fresh[:2], fresh[2:]
        vectors = fresh.new_empty(len(words) + 2, self._size)
        vectors[:2] = ends
        vectors[[place + 2 for place in known]] = found.to(vectors)
        vectors[[place + 2 for place in missing]] = fresh
        with self._lock:
            self._ends = ends if new_ends else self._ends
            self._keep([words[place] for place in missing], fresh)
        return vectors

    def clear(self) -> None:
        """Forget all words; the counts go on."""
        with self._lock:
            self._clear()

    def fill(self, words: Sequence[str]) -> None:
        """Encode all `words` now, as far as they fit."""
        for start in range(0, len(words), BLOCK):
            self.vectors(list(dict.fromkeys(words[start : start + BLOCK])))

    def write(self, path: Path, vocab: Vocab, *, force: bool = False) -> None:
        """Write the vectors of all words of `vocab` as bilm-tf does, a row for each."""
        write_token_file(path, self._blocks(vocab), self._size, force=force)

    def _blocks(self, vocab: Vocab) -> Iterator[NDArray[np.float32]]:
        ends = {vocab.begin: 0, vocab.end: 1}
        for start in range(0, len(vocab), BLOCK):
            words = vocab.words[start : start + BLOCK]
            rows = [ends.get(word, place + 2) for place, word in enumerate(words)]
            yield self._encode(words).float().numpy()[rows]

    @torch.inference_mode()
    def read(self, path: Path, vocab: Vocab) -> None:
        """Take the vectors of `vocab` from a file as bilm-tf writes them, after a look whether they fit."""
        vectors = torch.from_numpy(read_token_file(path))
        if vectors.shape != (len(vocab), self._size):
            rows, size = vectors.shape
            raise DataError(
                f"{path}: {rows:,} rows of {size} values, but the vocabulary has {len(vocab):,} words and "
                f"the model {self._size} values. Is it of another model or vocabulary?"
            )
        places = [place for place, word in enumerate(vocab.words) if word not in (vocab.begin, vocab.end)]
        some = places[:: max(1, len(places) // CHECKED)]
        own = self._encode([vocab.words[place] for place in some], ends=False).float()
        worst, most = (float(d.abs().max()) if some else 0.0 for d in (own - vectors[some], own))
        if worst > (TOLERANCE if self._model.network.precision == "fp32" else ROUGH * most):
            raise DataError(
                f"{path}: its vectors differ from the model's own by up to {worst:.2g}. It was made with "
                "another model or for another vocabulary."
            )
        with self._lock:
            self._check_weights()
            self._keep([vocab.words[place] for place in places], vectors[places])

    def _encode(self, words: Sequence[str], *, ends: bool = True) -> Tensor:
        """<S>, </S> and `words` through the model, or `words` alone."""
        network, first = self._model.network, 0 if ends else 2
        with torch.inference_mode():
            network.pack()  # the weights of a loaded model are final
            ids = (None if rows is None else rows[first:] for rows in self._model.token_ids(words))
            return network.tokens(*ids)  # type: ignore[no-any-return]

    def _check_weights(self) -> None:
        if self._precision != self._model.network.precision or not self._snapshot.matches(self._weights()):
            self._clear()

    def _weights(self) -> list[Tensor]:
        """The parameters of the token encoder, found faster than by its own `parameters`."""
        return [
            weight for module in self._modules for weight in module._parameters.values() if weight is not None
        ]

    def _clear(self) -> None:
        self._modules = list(self._model.network.tokens.modules())
        weights = self._weights()
        self._snapshot, self._precision = WeightSnapshot(weights), self._model.network.precision
        self._rows: OrderedDict[str, int] = OrderedDict()  # least recently used first
        self._table = weights[0].new_empty(0, self._size).detach()
        self._ends = None

    def _find(self, word: str) -> int:
        """The row of a word, which is now the last one used, or -1."""
        row = self._rows.get(word, -1)
        if row >= 0:
            self._rows.move_to_end(word)
        return row

    def _keep(self, words: Sequence[str], vectors: Tensor) -> None:
        """Put words into the table, over the ones used longest ago if need be."""
        new = [place for place, word in enumerate(words) if word not in self._rows][: self._most]
        self._grow(len(self._rows) + len(new))
        rows = []
        for place in new:
            full = len(self._rows) >= self._most
            row = self._rows.popitem(last=False)[1] if full else len(self._rows)
            self._rows[words[place]] = row
            rows.append(row)
        self._table[rows] = vectors[new].to(self._table)

    def _grow(self, rows: int) -> None:
        """Make room for `rows` rows, up to the most that is allowed."""
        wanted = min(self._most, max(rows, FIRST_ROWS))
        if wanted > len(self._table):
            larger = self._table.new_empty(min(self._most, max(wanted, 2 * len(self._table))), self._size)
            larger[: len(self._table)] = self._table
            self._table = larger


def _reset_in_child() -> None:
    for cache in _caches:
        cache.reset_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_reset_in_child)
