"""The vectors of a frozen ELMo, computed once for all epochs.

    elmo  ->  tasks.vector_store (a memory-mapped file)  ->  tasks.nn.featurizer

Vectors are stored as float16; a sentence that occurs often is stored once. T tokens, L layers, H values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import CHUNK, Elmo
from polyseme.formats.vectors.flat import FlatReader
from polyseme.formats.vectors.writers import open_writer
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.model.output import resolve_output
from polyseme.tasks.examples import Tokens
from polyseme.text.fingerprint import digest
from polyseme.text.length_batches import chunk_sentences


class VectorStore:
    """Layers of sentences: (L, T, H) each, with L = 1 if only one is used."""

    def __init__(self, elmo: Elmo, layer: str | int) -> None:
        self._elmo = elmo
        self._spec = resolve_output(layer, None, "both", elmo.config.layers)
        self._files: list[FlatReader] = []
        self._numbers: dict[Tokens, tuple[int, int]] = {}  # file, and sentence in it
        self._layer = layer
        self.count = elmo.config.layers if layer == "all" else 1

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: no files, whose vectors another process computes if it needs them."""
        return {"elmo": self._elmo, "layer": self._layer}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["elmo"], state["layer"])  # type: ignore[misc]

    def add(self, sentences: Iterable[Tokens], folder: Path, progress: OnProgress = ignore_progress) -> None:
        """Compute the vectors of all new sentences, unless their file is already in `folder`."""
        new = [tokens for tokens in dict.fromkeys(sentences) if tokens not in self._numbers]
        if not new:
            return
        path = folder / f"{digest([f'{self._elmo.model.fingerprint()} {self._layer}', new])}.safetensors"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._write(new, path, progress)
        file = FlatReader(path)
        self._numbers |= {tokens: (len(self._files), number) for number, tokens in enumerate(new)}
        self._files.append(file)

    def _write(self, sentences: list[Tokens], path: Path, progress: OnProgress) -> None:
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
                progress(ProgressEvent("vectors", done, total))

    def rows(self, sentences: Sequence[Tokens]) -> list[NDArray[Any]]:
        """The vectors of each sentence (T, L, H), float16; new ones are computed."""
        new = [tokens for tokens in dict.fromkeys(sentences) if tokens not in self._numbers]
        with self._elmo.track_counts() as counts:
            fresh = (
                self._elmo.embed_tokens([list(tokens) for tokens in new], self._spec, counts) if new else []
            )
        computed = dict(zip(new, fresh, strict=True))
        return [_as_rows(computed[t] if t in computed else self._read(t)) for t in sentences]

    def _read(self, tokens: Tokens) -> NDArray[Any]:
        file, number = self._numbers[tokens]
        return self._files[file].vectors(number)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files, self._numbers = [], {}


def _as_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """(T, L, H) of (L, T, H) or (T, H), as float16, so that computed vectors equal stored ones."""
    layers = vectors.astype(np.float16, copy=False)
    return layers[:, None] if layers.ndim == 2 else layers.swapaxes(0, 1)
