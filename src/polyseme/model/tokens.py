"""Ids to one vector a token, before any context: char-CNN, word table, or both.

    text.chars, text.vocab  ->  model.tokens  ->  model.bilm

N tokens, C characters, F the sum of the filters, D the size handed to the stacks.
What must not change: positions behind a word hold the learned padding vector and take part in the
maximum, as in the published models; the activation comes after the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.fast.char_filters import max_over_windows
from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.lookup_tables import (
    LookupTables,
    build_lookup_tables,
    is_small_enough,
    look_up,
    source_weights,
)
from polyseme.model.fast.parallel import run_parallel
from polyseme.model.fast.quantisation import Quantisable, QuantisedMatrix

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}
MIN_WORDS_PER_THREAD = 24  # words that are worth a core of their own
LANES = 64  # numbers: the longest stretch that torch computes at once is a part of it
MAX_UNSPLIT_VALUES = 32_768  # numbers: torch splits no fewer
BLOCK = 64  # words of like length that run together at inference


class Linear(Quantisable, nn.Linear):
    """W x + b, whose weight may be narrow, unless `keeps_fp32`."""

    MATRICES = ("weight",)

    def __init__(self, inputs: int, outputs: int, *, keeps_fp32: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.keeps_fp32 = keeps_fp32

    def can_run_native(self) -> bool:
        """C has the quicker products for few rows, and the same bits for any number of them."""
        return lstm.is_supported(self.bias, None if self.quantised else self.weight)

    def build_layout(self, weights: dict[str, QuantisedMatrix]) -> lstm.PackedWeight | None:
        """For products in C; torch takes the weight as it is."""
        return lstm.pack_weight(weights["weight"]) if weights else None

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs) -> (N, outputs)."""
        native = self.prepare(x)
        if native is not None:
            return native()
        self.dequantise()
        return super().forward(x)

    def prepare(self, x: Tensor) -> Callable[[], Tensor] | None:
        """What `forward` does as one call in C, or None where that cannot be."""
        layout = self.current_layout()
        if layout is None or not lstm.is_supported(x) or torch.is_autocast_enabled("cpu"):
            return None
        return lstm.prepare_product(x, layout, self.bias.detach().repeat(len(x), 1))


class Highway(nn.Module):
    """g = sigmoid(carry x); y = g * relu(transform x) + (1 - g) * x."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = Linear(size, size)
        self.carry = Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """(N, F) -> (N, F)."""
        new, gate = apply_linears((self.transform, self.carry), x)
        gate = apply_elementwise(torch.sigmoid, gate).to(
            x.dtype
        )  # autocast's products may be of lower precision
        return torch.lerp(x, torch.relu(new).to(x.dtype), gate)


def apply_elementwise(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """What `function` makes of each number of x (N, F), with the same bits however many rows there are.

    torch computes what does not fill a vector, at the end and where it splits the work for a second core, by
    other instructions, which round otherwise. Here rows fill vectors, and no piece is large enough to split.
    """
    if torch.is_grad_enabled() or function is torch.relu:
        return function(x)
    wide = F.pad(x, (0, -x.shape[1] % LANES))
    pieces = wide.split(max(1, MAX_UNSPLIT_VALUES // max(1, wide.shape[1])))
    return _concatenate([function(piece) for piece in pieces])[:, : x.shape[1]]


def apply_linears(linears: Sequence[Linear], x: Tensor) -> list[Tensor]:
    """What each of `linears` makes of x (N, inputs); in C, where a product uses one core, on all of them."""
    parts = x.chunk(max(1, min(torch.get_num_threads() // len(linears), len(x) // MIN_WORDS_PER_THREAD)))
    works = [linear.prepare(part) for linear in linears for part in parts]
    native = [work for work in works if work is not None]
    if len(native) < len(works):
        return [linear(x) for linear in linears]
    found = run_parallel(native, native=True)
    return [_concatenate(found[at : at + len(parts)]) for at in range(0, len(found), len(parts))]


def _concatenate(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class CharCnn(nn.Module):
    """Convolutions over a word's characters, the maximum of each filter, highways."""

    def __init__(
        self,
        n_chars: int,
        dim: int,
        filters: Sequence[tuple[int, int]],
        *,
        activation: str,
        highways: int,
        padding: int,
    ) -> None:
        """`n_chars` counts row 0 (sentence padding) too; `padding` is the id that fills a word's row."""
        super().__init__()
        self.padding = padding
        self.activation = activation
        self.embedding = make_embedding(n_chars, dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, count, width) for width, count in filters)
        self.widest = max(width for width, _ in filters)
        self.size = sum(count for _, count in filters)
        self.highways = nn.ModuleList(Highway(self.size) for _ in range(highways))
        self._lookups: LookupTables | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles begin without tables: they are made again of the weights."""
        return self.__dict__ | {"_lookups": None}

    def forward(self, chars: Tensor) -> Tensor:
        """(N, C) -> (N, F)."""
        lookups = None if torch.is_grad_enabled() else self._current_lookups()
        if lookups is None or len(chars) == 0:
            vectors = self._filter(chars)
        else:
            vectors = self._by_length(chars, lookups)
        for highway in self.highways:
            vectors = highway(vectors)
        return vectors

    def _filter(self, chars: Tensor) -> Tensor:
        """(N, C) -> (N, F)."""
        convolutions = list(cast("Iterable[nn.Conv1d]", self.convolutions))
        weights = [convolution.weight for convolution in convolutions]
        bias = torch.cat([convolution.bias for convolution in convolutions if convolution.bias is not None])
        found = max_over_windows(chars, self._lengths(chars), self.embedding.weight, weights)
        return ACTIVATIONS[self.activation](found + bias)

    def _by_length(self, chars: Tensor, lookups: LookupTables) -> Tensor:
        """Words of like length together, so that short ones are not padded to the longest."""
        lengths = self._lengths(chars)
        vectors = chars.new_empty(len(chars), self.size, dtype=self.embedding.weight.dtype)
        for block in torch.argsort(lengths).split(BLOCK):
            longest = int(lengths[block[-1]])
            width = longest + self.widest
            if width <= chars.shape[1]:
                found = look_up(lookups, chars[block, :width], longest + 1)
                vectors[block] = apply_elementwise(ACTIVATIONS[self.activation], found)
            else:
                vectors[block] = self._filter(chars[block])
        return vectors

    def _current_lookups(self) -> LookupTables | None:
        """The tables of the weights as they are now; None where they would be too large."""
        if not is_small_enough(self.embedding.num_embeddings, self.widest, self.size):
            return None
        convolutions = cast("Iterable[nn.Conv1d]", self.convolutions)
        weights = source_weights(self.embedding, convolutions)
        if self._lookups is None or not self._lookups.sources.matches(weights):
            self._lookups = build_lookup_tables(self.embedding, convolutions, self.widest)
        return self._lookups

    def _lengths(self, chars: Tensor) -> Tensor:
        """(N, C) -> (N,): how many positions of each row come before its padding, or a sentence's."""
        places = torch.arange(1, chars.shape[1] + 1, device=chars.device)
        return (((chars != self.padding) & (chars != 0)) * places).amax(dim=1)


class TokenEncoder(nn.Module):
    """[word table; char-CNN], whichever there are, and a projection where asked."""

    def __init__(self, *, chars: CharCnn | None, words: nn.Embedding | None, outputs: int, project: bool):
        super().__init__()
        self.chars = chars
        self.words = words
        size = (words.embedding_dim if words else 0) + (chars.size if chars else 0)
        self.projection = Linear(size, outputs, keeps_fp32=True) if project else None

    def forward(self, chars: Tensor | None, words: Tensor | None) -> Tensor:
        """Character ids (N, C), word ids (N,), or both, to vectors (N, D)."""
        parts: list[Tensor] = []
        if self.words is not None:
            parts.append(self.words(words))
        if self.chars is not None:
            parts.append(self.chars(chars))
        vectors = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        return apply_linears((self.projection,), vectors)[0] if self.projection is not None else vectors


def make_word_table(n_words: int, dim: int, *, trained: bool = True) -> nn.Embedding:
    """A table of `n_words` rows and row 0 for padding; not `trained` means frozen."""
    table = make_embedding(n_words + 1, dim)
    table.weight.requires_grad_(trained)
    return table


def make_embedding(rows: int, dim: int) -> nn.Embedding:
    """A table whose row 0 is padding, drawn uniformly.

    (nn.Embedding draws from a normal distribution, for which torch loads its compiler on the meta device.)
    """
    weight = torch.empty(rows, dim).uniform_(-1, 1)
    weight[0].zero_()
    return nn.Embedding(rows, dim, padding_idx=0, _weight=weight, _freeze=False)


def fill_word_table(table: nn.Embedding, ids: Tensor, vectors: Tensor) -> None:
    """Start the rows `ids` of a word table from static `vectors` (len(ids), dim)."""
    if vectors.shape != (len(ids), table.embedding_dim):
        raise ValueError(f"vectors are {tuple(vectors.shape)}, the rows ({len(ids)}, {table.embedding_dim})")
    with torch.no_grad():
        table.weight[ids] = vectors.to(table.weight)
