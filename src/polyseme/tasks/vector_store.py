"""The vectors of a frozen ELMo, computed once: epochs then cost the task's own model only.

    embedder  ->  tasks.vector_store (a file, memory-mapped)  ->  tasks.nn.featurizer

Vectors are kept as float16, a sentence once however often it occurs. T tokens, L layers, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import CHUNK, Elmo
from polyseme.formats.vectors.flat import FlatReader
from polyseme.formats.vectors.writers import open_writer
from polyseme.model.output import resolve_output
from polyseme.tasks.examples import Tokens
from polyseme.text.fingerprint import digest
from polyseme.text.length_batches import chunk_sentences


class VectorStore:
    """Layers of sentences: (L, T, H) each, with L = 1 where one layer is all that is used."""

    def __init__(self, elmo: Elmo, layer: str | int) -> None:
        self._elmo = elmo
        self._spec = resolve_output(layer, None, "both", elmo.config.layers)
        self._files: list[FlatReader] = []
        self._places: dict[Tokens, tuple[int, int]] = {}
        self._of = f"{elmo.model.fingerprint()} {layer}"
        self.count = elmo.config.layers if layer == "all" else 1

    def add(
        self, sentences: Iterable[Tokens], folder: Path, watch: Callable[[float], None] | None = None
    ) -> None:
        """Compute the vectors of all sentences that are not there yet, or find their file in `folder`.

        watch: is told what share is done.
        """
        new = [tokens for tokens in dict.fromkeys(sentences) if tokens not in self._places]
        if not new:
            return
        path = folder / f"{digest([self._of, new])}.safetensors"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._write(new, path, watch)
        file = FlatReader(path)
        self._places |= {tokens: (len(self._files), number) for number, tokens in enumerate(new)}
        self._files.append(file)

    def _write(self, sentences: list[Tokens], path: Path, watch: Callable[[float], None] | None) -> None:
        total, done = max(1, sum(map(len, sentences))), 0
        config = self._elmo.config
        empty = self._spec.empty(config.layers, config.size).numpy().astype(np.float16)
        lists = (list(tokens) for tokens in sentences)
        with open_writer(path, empty, pooled=False) as dump, self._elmo.track_counts() as counts:
            for chunk in chunk_sentences(lists, CHUNK * self._elmo.batch_tokens):
                for tokens, vectors in zip(
                    chunk, self._elmo.embed_tokens(chunk, self._spec, counts), strict=True
                ):
                    dump.add(tokens, vectors.astype(np.float16))
                    done += len(tokens)
                if watch is not None:
                    watch(done / total)

    def rows(self, sentences: Sequence[Tokens]) -> list[NDArray[Any]]:
        """The vectors of each sentence (T, L, H), float16; those that are not stored are computed now."""
        new = [tokens for tokens in dict.fromkeys(sentences) if tokens not in self._places]
        with self._elmo.track_counts() as counts:
            fresh = (
                self._elmo.embed_tokens([list(tokens) for tokens in new], self._spec, counts) if new else []
            )
        found = dict(zip(new, fresh, strict=True))
        return [_as_rows(found[t] if t in found else self._read(t)) for t in sentences]

    def _read(self, tokens: Tokens) -> NDArray[Any]:
        file, number = self._places[tokens]
        return self._files[file].vectors(number)

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            file.close()
        self._files, self._places = [], {}


def _as_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """(T, L, H) of (L, T, H) or (T, H), as float16 like all that is stored: one text has one answer."""
    layers = vectors.astype(np.float16, copy=False)
    return layers[:, None] if layers.ndim == 2 else layers.swapaxes(0, 1)
