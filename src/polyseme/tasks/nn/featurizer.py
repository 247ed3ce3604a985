"""One vector per token for a task: ELMo, a trained word embedding, static vectors, characters, concatenated.

    tasks.vector_store, text  ->  tasks.nn.featurizer  ->  tasks.nn.encoder, the networks of the tasks

`TokenReader` turns tokens into tensors and knows the words of the training text; `Featurizer` is trained.
B sentences, T tokens, C characters, U distinct tokens, L layers, H values of ELMo, D of all inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from polyseme.tasks.settings import InputSettings
from polyseme.tasks.static_vectors import StaticLookup
from polyseme.tasks.vector_store import VectorStore
from polyseme.text.chars import CodepointAlphabet
from polyseme.torch_layer import ElmoLayer

MAX_CHARS, CHAR_DIM, FILTER_WIDTH = 20, 25, 3  # of the trained character encoder
UNKNOWN = 1  # the id of words outside the embedding; 0 is padding


@dataclass(frozen=True)
class TokenFeatures:
    """The sentences of a batch as tensors; None for what the model does not read."""

    lengths: Tensor  # (B,)
    tokens: list[list[str]]
    words: Tensor | None = None  # (B, T)
    chars: Tensor | None = None  # (U, C)
    char_rows: Tensor | None = None  # (B, T) rows of chars from 1, 0 for padding
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
        settings: InputSettings,
        words: Sequence[str],
        characters: Sequence[str],
        store: VectorStore | None,
    ) -> None:
        self.settings, self.store = settings, store
        self.words, self.characters = tuple(words), tuple(characters)
        self._ids = {word: number for number, word in enumerate(self.words, start=UNKNOWN + 1)}
        self.alphabet = CodepointAlphabet(self.characters, MAX_CHARS) if settings.chars else None
        self.static = StaticLookup(settings.static) if settings.static else None

    @classmethod
    def learn(
        cls, settings: InputSettings, sentences: Iterable[Tokens], store: VectorStore | None
    ) -> TokenReader:
        """Create a reader with the frequent words and all characters of the training text."""
        counts = Counter(word for tokens in sentences for word in tokens)
        words = [word for word, count in counts.most_common() if count >= settings.min_count]
        characters = CodepointAlphabet.from_counts(counts, MAX_CHARS).characters if settings.chars else ()
        return cls(settings, words if settings.words else (), characters, store)

    def load_static(self, sentences: Iterable[Tokens]) -> None:
        """Read the static vectors of all tokens at once, since the whole file is read each time."""
        if self.static is not None:
            self.static.load(word for tokens in sentences for word in tokens)

    def read(self, sentences: Sequence[Tokens], device: torch.device) -> TokenFeatures:
        """Sentences as a batch."""
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        width = int(lengths.max()) if len(sentences) else 0
        return TokenFeatures(
            lengths=lengths.to(device),
            tokens=[list(tokens) for tokens in sentences],
            words=self._look_up_words(sentences, width, device),
            static=self._look_up_static(sentences, width, device),
            layers=self._read_layers(sentences, width, device),
            **self._encode_characters(sentences, width, device),
        )

    def _look_up_words(self, sentences: Sequence[Tokens], width: int, device: torch.device) -> Tensor | None:
        if not self.settings.words:
            return None
        return pad_rows([[self._ids.get(token, UNKNOWN) for token in s] for s in sentences], width).to(device)

    def _encode_characters(
        self, sentences: Sequence[Tokens], width: int, device: torch.device
    ) -> dict[str, Tensor | None]:
        if self.alphabet is None:
            return {}
        index: dict[str, int] = {}
        rows = pad_rows([[index.setdefault(token, len(index) + 1) for token in s] for s in sentences], width)
        chars = torch.from_numpy(self.alphabet.encode(list(index)))
        return {"chars": chars.to(device), "char_rows": rows.to(device)}

    def _look_up_static(self, sentences: Sequence[Tokens], width: int, device: torch.device) -> Tensor | None:
        if self.static is None:
            return None
        self.load_static(sentences)
        values = torch.zeros(len(sentences), width, self.static.dim)
        for row, tokens in enumerate(sentences):
            values[row, : len(tokens)] = torch.from_numpy(self.static.rows(tokens))
        return values.to(device)

    def _read_layers(self, sentences: Sequence[Tokens], width: int, device: torch.device) -> Tensor | None:
        if self.store is None:
            return None
        stored = self.store.rows(sentences)
        values = np.zeros((len(sentences), width, *stored[0].shape[1:]), np.float16)
        for row, vectors in enumerate(stored):
            values[row, : len(vectors)] = vectors
        return torch.from_numpy(values).to(device).float().permute(2, 0, 1, 3)


class Featurizer(nn.Module):
    """The trained part: word embedding, character filters, mixes, and ELMo itself if it is fine-tuned."""

    _device: Tensor  # empty; on the device of the module, even if nothing else is

    def __init__(self, reader: TokenReader, elmo: Elmo | None) -> None:
        super().__init__()
        settings = reader.settings
        self.settings, self.reader = settings, reader
        self.register_buffer("_device", torch.empty(0), persistent=False)
        self.words = (
            make_embedding(len(reader.words) + UNKNOWN + 1, settings.words) if settings.words else None
        )
        self.chars = _make_char_encoder(reader.alphabet, settings.chars) if reader.alphabet else None
        self.layer: ElmoLayer | None = None
        self.mixes = nn.ModuleList()
        count = {"none": 0, "both": 2}.get(settings.elmo, 1)
        if elmo is not None and settings.tune == "full" and count:
            self.layer = ElmoLayer(elmo, mixes=count, dropout=settings.elmo_dropout, fine_tune=True)
        elif count and reader.store is not None:
            number = 1 if isinstance(settings.layers, int) else reader.store.count
            trained, trained_gamma = settings.tune != "frozen", settings.tune == "mix"
            self.mixes.extend(
                Mix(number, trained=trained, trained_gamma=trained_gamma, dropout=settings.elmo_dropout)
                for _ in range(count)
            )
        self.dropout = Dropout(settings.dropout)
        size_without_elmo = settings.words + settings.chars + (reader.static.dim if reader.static else 0)
        elmo_size = elmo.config.size if elmo is not None else 0
        self.size = size_without_elmo + (elmo_size if settings.elmo in ("input", "both") else 0)
        self.late_size = elmo_size if settings.elmo in ("output", "both") else 0
        self.norm = nn.BatchNorm1d(self.size) if settings.batch_norm else None

    def read(self, sentences: Sequence[Tokens]) -> TokenFeatures:
        """The sentences of a batch as tensors on the device of this module."""
        return self.reader.read(sentences, self._device.device)

    def forward(self, features: TokenFeatures) -> tuple[Tensor, Tensor | None]:
        """The encoder's input (B, T, D), and what is appended to its output (B, T, H), if anything."""
        parts = [self.dropout(part) for part in self._list_parts_without_elmo(features)]
        mixed = self._mix_elmo(features)
        if self.settings.elmo in ("input", "both"):
            parts.append(mixed[0])
        x = torch.cat(parts, dim=2)
        if self.norm is not None:
            mask = features.mask
            flat = self._normalise(x[mask])
            x = x.new_zeros(x.shape).masked_scatter(mask[..., None], flat)
        return x, mixed[-1] if self.late_size else None

    def _normalise(self, x: Tensor) -> Tensor:
        """Normalise (N, D); a single token has no deviation, so it uses the running statistics."""
        norm = cast(nn.BatchNorm1d, self.norm)
        if len(x) > 1 or not self.training:
            return norm(x)  # type: ignore[no-any-return]
        return F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)

    def _list_parts_without_elmo(self, features: TokenFeatures) -> Iterable[Tensor]:
        if self.words is not None and features.words is not None:
            yield self.words(features.words)
        if features.static is not None:
            yield features.static
        if self.chars is not None and features.char_rows is not None:
            vectors = self.chars(features.chars)  # (U, F)
            yield nn.functional.embedding(
                features.char_rows, torch.cat([vectors.new_zeros(1, vectors.shape[1]), vectors])
            )

    def _mix_elmo(self, features: TokenFeatures) -> list[Tensor]:
        """The vectors of ELMo, one mix for the input and one for the output."""
        if self.layer is not None:
            return self.layer(features.tokens).vectors  # type: ignore[no-any-return]
        if features.layers is None:
            return []
        layer = self.settings.layers
        layers = features.layers[layer : layer + 1] if isinstance(layer, int) else features.layers
        return [mix(layers) for mix in self.mixes]

    def all_mixes(self) -> list[Mix]:
        """Every mix: of the input, then of the output."""
        mixes = self.layer.mixes if self.layer is not None else self.mixes
        return list(mixes)  # type: ignore[arg-type]

    def penalty(self) -> Tensor:
        """The L2 term of the mixes."""
        return sum((mix.penalty() for mix in self.all_mixes()), torch.zeros(())) * self.settings.mix_l2


def _make_char_encoder(alphabet: CodepointAlphabet, filters: int) -> CharCnn:
    return CharCnn(
        alphabet.size,
        CHAR_DIM,
        [(FILTER_WIDTH, filters)],
        activation="relu",
        highways=0,
        padding=alphabet.padding,
    )


def pad_rows(rows: Sequence[Sequence[int]], width: int, filler: int = 0) -> Tensor:
    """Rows of numbers as one tensor (B, width), each padded with `filler`."""
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows]).view(len(rows), width)
