"""Tokens to one vector each, for a task: ELMo, a trained word embedding, static vectors, characters, joined.

    tasks.vector_store, text  ->  tasks.nn.featurizer  ->  tasks.nn.encoder

`TokenReader` turns tokens into tensors and knows the words of the training text; `Featurizer` is trained.
B sentences, T tokens, C characters, U distinct tokens, L layers, H values of ELMo, D of all parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.elmo import Elmo
from polyseme.model.dropout import Dropout
from polyseme.model.mix import Mix
from polyseme.model.tokens import CharCnn, make_embedding
from polyseme.tasks.examples import Tokens
from polyseme.tasks.settings import InputConfig
from polyseme.tasks.static_vectors import Static
from polyseme.tasks.vector_store import VectorStore
from polyseme.text.chars import CodepointAlphabet
from polyseme.torch_layer import ElmoLayer

CHARACTERS, CHARACTER_DIM, WIDTH = 20, 25, 3  # of the trained character encoder
UNKNOWN = 1  # the id of words outside the embedding; 0 is padding


@dataclass(frozen=True)
class TokenFeatures:
    """Sentences of a batch as tensors, as far as the model reads them."""

    lengths: Tensor  # (B,)
    tokens: list[list[str]]
    words: Tensor | None = None  # (B, T)
    chars: Tensor | None = None  # (U, C)
    places: Tensor | None = None  # (B, T) rows of chars, 0 for padding
    static: Tensor | None = None  # (B, T, S)
    layers: Tensor | None = None  # (L, B, T, H)

    @property
    def mask(self) -> Tensor:
        """Which tokens are real: (B, T)."""
        width = int(self.lengths.max()) if len(self.lengths) else 0
        return torch.arange(width, device=self.lengths.device) < self.lengths[:, None]


class TokenReader:
    """Tokens to tensors: the words and characters of the training text, static vectors, stored layers."""

    def __init__(
        self,
        config: InputConfig,
        words: Sequence[str],
        characters: Sequence[str],
        stored: VectorStore | None,
    ) -> None:
        self.config, self.words, self.characters, self.stored = (
            config,
            tuple(words),
            tuple(characters),
            stored,
        )
        self._ids = {word: number for number, word in enumerate(self.words, start=UNKNOWN + 1)}
        self.alphabet = CodepointAlphabet(self.characters, CHARACTERS) if config.chars else None
        self.static = Static(config.static) if config.static else None

    @classmethod
    def learn(
        cls, config: InputConfig, sentences: Iterable[Tokens], stored: VectorStore | None
    ) -> TokenReader:
        """The words that occur often enough, and all characters, of the training text."""
        counts = Counter(word for tokens in sentences for word in tokens)
        words = [word for word, count in counts.most_common() if count >= config.min_count]
        characters = CodepointAlphabet.from_counts(counts, CHARACTERS).characters if config.chars else ()
        return cls(config, words if config.words else (), characters, stored)

    def need(self, sentences: Iterable[Tokens]) -> None:
        """Read the static vectors of all these at once: a file of them is read from begin to end."""
        if self.static is not None:
            self.static.need(word for tokens in sentences for word in tokens)

    def read(self, sentences: Sequence[Tokens], device: torch.device) -> TokenFeatures:
        """Sentences as a batch."""
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        width = int(lengths.max()) if len(sentences) else 0
        return TokenFeatures(
            lengths=lengths.to(device),
            tokens=[list(tokens) for tokens in sentences],
            words=self._word_ids(sentences, width, device),
            static=self._static(sentences, width, device),
            layers=self._layers(sentences, width, device),
            **self._characters(sentences, width, device),
        )

    def _word_ids(self, sentences: Sequence[Tokens], width: int, device: torch.device) -> Tensor | None:
        if not self.config.words:
            return None
        return padded([[self._ids.get(token, UNKNOWN) for token in s] for s in sentences], width).to(device)

    def _characters(
        self, sentences: Sequence[Tokens], width: int, device: torch.device
    ) -> dict[str, Tensor | None]:
        if self.alphabet is None:
            return {}
        index: dict[str, int] = {}
        places = padded([[index.setdefault(token, len(index) + 1) for token in s] for s in sentences], width)
        chars = torch.from_numpy(self.alphabet.encode(list(index)))
        return {"chars": chars.to(device), "places": places.to(device)}

    def _static(self, sentences: Sequence[Tokens], width: int, device: torch.device) -> Tensor | None:
        if self.static is None:
            return None
        self.need(sentences)
        values = torch.zeros(len(sentences), width, self.static.dim)
        for row, tokens in enumerate(sentences):
            values[row, : len(tokens)] = torch.from_numpy(self.static.rows(tokens))
        return values.to(device)

    def _layers(self, sentences: Sequence[Tokens], width: int, device: torch.device) -> Tensor | None:
        if self.stored is None:
            return None
        found = self.stored.rows(sentences)
        values = np.zeros((len(sentences), width, *found[0].shape[1:]), np.float16)
        for row, vectors in enumerate(found):
            values[row, : len(vectors)] = vectors
        return torch.from_numpy(values).to(device).float().permute(2, 0, 1, 3)


class Featurizer(nn.Module):
    """The trained part: word table, character filters, mixes, and ELMo itself where that is fine-tuned."""

    def __init__(self, reader: TokenReader, elmo: Elmo | None) -> None:
        super().__init__()
        config = reader.config
        self.config = config
        self.words = make_embedding(len(reader.words) + UNKNOWN + 1, config.words) if config.words else None
        self.chars = _character_encoder(reader.alphabet, config.chars) if reader.alphabet else None
        self.layer: ElmoLayer | None = None
        self.mixes = nn.ModuleList()
        count = {"none": 0, "both": 2}.get(config.elmo, 1)
        if elmo is not None and config.tune == "full" and count:
            self.layer = ElmoLayer(elmo, mixes=count, dropout=config.elmo_dropout, fine_tune=True)
        elif count and reader.stored is not None:
            number = 1 if isinstance(config.layers, int) else reader.stored.count
            trained = config.tune == "mix"
            self.mixes.extend(Mix(number, trained=trained, dropout=config.elmo_dropout) for _ in range(count))
        self.dropout = Dropout(config.dropout)
        own = config.words + config.chars + (reader.static.dim if reader.static else 0)
        elmo_size = elmo.config.size if elmo is not None else 0
        self.size = own + (elmo_size if config.elmo in ("input", "both") else 0)
        self.late_size = elmo_size if config.elmo in ("output", "both") else 0
        self.norm = nn.BatchNorm1d(self.size) if config.batch_norm else None

    def forward(self, side: TokenFeatures) -> tuple[Tensor, Tensor | None]:
        """A batch to what the encoder reads (B, T, D), and what is joined to its output (B, T, H), if any."""
        parts = [self.dropout(part) for part in self._own_parts(side)]
        mixed = self._mixed(side)
        if self.config.elmo in ("input", "both"):
            parts.append(mixed[0])
        x = torch.cat(parts, dim=2)
        if self.norm is not None:
            mask = side.mask
            flat = self._normed(x[mask])
            x = x.new_zeros(x.shape).masked_scatter(mask[..., None], flat)
        return x, mixed[-1] if self.late_size else None

    def _normed(self, x: Tensor) -> Tensor:
        """(N, D), normalised; one token alone has no deviation, and takes the statistics seen so far."""
        norm = cast(nn.BatchNorm1d, self.norm)
        if len(x) > 1 or not self.training:
            return norm(x)  # type: ignore[no-any-return]
        return F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)

    def _own_parts(self, side: TokenFeatures) -> Iterable[Tensor]:
        if self.words is not None and side.words is not None:
            yield self.words(side.words)
        if side.static is not None:
            yield side.static
        if self.chars is not None and side.places is not None:
            vectors = self.chars(side.chars)  # (U, F)
            yield nn.functional.embedding(
                side.places, torch.cat([vectors.new_zeros(1, vectors.shape[1]), vectors])
            )

    def _mixed(self, side: TokenFeatures) -> list[Tensor]:
        """ELMo's vectors, a mixture for each place where they enter."""
        if self.layer is not None:
            return self.layer(side.tokens).vectors  # type: ignore[no-any-return]
        if side.layers is None:
            return []
        one = self.config.layers
        layers = side.layers[one : one + 1] if isinstance(one, int) else side.layers
        return [mix(layers) for mix in self.mixes]

    def all_mixes(self) -> list[Mix]:
        """Every mixture, in the order of its place."""
        found = self.layer.mixes if self.layer is not None else self.mixes
        return list(found)  # type: ignore[arg-type]

    def penalty(self) -> Tensor:
        """The L2 term of the mixes."""
        return sum((mix.penalty() for mix in self.all_mixes()), torch.zeros(())) * self.config.mix_l2


def _character_encoder(alphabet: CodepointAlphabet, filters: int) -> CharCnn:
    return CharCnn(
        alphabet.size,
        CHARACTER_DIM,
        [(WIDTH, filters)],
        activation="relu",
        highways=0,
        padding=alphabet.padding,
    )


def padded(rows: Sequence[Sequence[int]], width: int, filler: int = 0) -> Tensor:
    """Rows of numbers as one tensor (B, width), each filled up."""
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows]).view(len(rows), width)


def absolute_path(path: str | None) -> str | None:
    """The path of a file of static vectors, made absolute so that a saved task finds it again."""
    return str(Path(path).expanduser().absolute()) if path else None
