"""Ids to one vector per token, before any context: char-CNN, word table, or both.

    text.chars, text.vocab  ->  model.tokens  ->  model.bilm

N tokens, C characters, F number of filters, D size of the token vectors.
What must not change: characters behind a word are the learned padding vector and take part in the
maximum, as in the published models; the activation comes after the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.fast.char_filters import max_over_windows
from polyseme.model.fast.kernels import linears as linears_in_c
from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.kernels.encoding import filter_words, run_highway
from polyseme.model.fast.kernels.highways import run_highway_with_gradient
from polyseme.model.fast.kernels.lookups import take_rows
from polyseme.model.fast.lookup_tables import (
    LookupTables,
    build_lookup_tables,
    is_small_enough,
    list_source_weights,
    look_up,
)
from polyseme.model.fast.parallel import run_parallel
from polyseme.model.fast.quantisation import Quantisable, QuantisedMatrix

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}
MIN_WORDS_PER_THREAD = 24  # fewer are not worth another core
LANES = 64  # values: a multiple of every vector width that torch computes with
MAX_UNSPLIT_VALUES = 32_768  # values: torch does not split fewer over several cores
BLOCK_WORDS = 64  # words of similar length that run together at inference


class Linear(Quantisable, nn.Linear):
    """W x + b, with a weight that can be quantised unless `keeps_fp32`."""

    MATRICES = ("weight",)

    def __init__(self, inputs: int, outputs: int, *, keeps_fp32: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.keeps_fp32 = keeps_fp32

    def can_run_native(self) -> bool:
        """Whether C computes the product: faster for few rows, with the same bits for any number of rows."""
        return lstm.is_supported(self.bias, None if self.quantised else self.weight)

    def build_layout(self, weights: dict[str, QuantisedMatrix]) -> lstm.PackedWeight | None:
        """Pack the weight for C; torch uses it as it is."""
        return lstm.pack_weight(weights["weight"]) if weights else None

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs) -> (N, outputs)."""
        native = self.prepare(x)
        if native is not None:
            return native()
        self.dequantise()
        return super().forward(x)

    def prepare(self, x: Tensor) -> Callable[[], Tensor] | None:
        """Prepare `forward` as one call in C; None if C cannot compute it."""
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
        native = self._run_native(x)
        if native is not None:
            return native
        weights = self.transform.weight, self.carry.weight
        dtype = linears_in_c.find_dtype(x, *weights)
        if dtype is not None:
            return run_highway_with_gradient(x, weights, (self.transform.bias, self.carry.bias), dtype)
        new, gate = apply_linears((self.transform, self.carry), x)
        gate = apply_elementwise(torch.sigmoid, gate).to(x.dtype)  # autocast lowers the products' precision
        return torch.lerp(x, torch.relu(new).to(x.dtype), gate)

    def _run_native(self, x: Tensor) -> Tensor | None:
        """Run `forward` in C; None if C cannot compute it."""
        transform, carry = self.transform.current_layout(), self.carry.current_layout()
        if transform is None or carry is None or transform.kind != carry.kind:
            return None
        if torch.is_autocast_enabled("cpu"):
            return None
        biases = self.transform.bias.detach(), self.carry.bias.detach()
        return run_highway(x, transform, carry, biases)


def apply_elementwise(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply `function` to each value of x (N, F), with the same bits for any number of rows.

    At the end of a tensor, and where it splits work between cores, torch computes values that do not fill a
    vector with other instructions, which round differently. Here rows fill whole vectors, and no piece is
    large enough to be split.
    """
    if torch.is_grad_enabled() or function is torch.relu or x.device.type != "cpu":
        return function(x)
    wide = F.pad(x, (0, -x.shape[1] % LANES))
    pieces = wide.split(max(1, MAX_UNSPLIT_VALUES // max(1, wide.shape[1])))
    return _concatenate([function(piece) for piece in pieces])[:, : x.shape[1]]


def apply_linears(linears: Sequence[Linear], x: Tensor) -> list[Tensor]:
    """Apply each of `linears` to x (N, inputs); in C, where a product uses one core, on all cores."""
    dtype = linears_in_c.find_dtype(x, *(linear.weight for linear in linears))
    if dtype is not None:
        weights, biases = [linear.weight for linear in linears], [linear.bias for linear in linears]
        return linears_in_c.apply_in_c(x, weights, biases, dtype)
    parts = x.chunk(max(1, min(torch.get_num_threads() // len(linears), len(x) // MIN_WORDS_PER_THREAD)))
    prepared = [linear.prepare(part) for linear in linears for part in parts]
    native = [product for product in prepared if product is not None]
    if len(native) < len(prepared):
        return [linear(x) for linear in linears]
    products = run_parallel(native, native=True)
    return [
        _concatenate(products[first : first + len(parts)]) for first in range(0, len(products), len(parts))
    ]


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
        block_words: int = BLOCK_WORDS,
    ) -> None:
        """Create the weights; `n_chars` includes row 0 (sentence padding), `padding` ends a word.

        At inference, `block_words` words of similar length run together.
        """
        super().__init__()
        self.padding = padding
        self.block_words = block_words
        self.activation = activation
        self.embedding = make_embedding(n_chars, dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, count, width) for width, count in filters)
        self.widest = max(width for width, _ in filters)
        self.size = sum(count for _, count in filters)
        self.highways = nn.ModuleList(Highway(self.size) for _ in range(highways))
        self._lookups: LookupTables | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles start without tables, which are computed from the weights."""
        return self.__dict__ | {"_lookups": None}

    def forward(self, chars: Tensor) -> Tensor:
        """(N, C) -> (N, F)."""
        lookups = None if torch.is_grad_enabled() else self._get_lookups()
        if lookups is None or len(chars) == 0:
            vectors = self._filter(chars)
        else:
            vectors = self._run_by_length(chars, lookups)
        for highway in self.highways:
            vectors = highway(vectors)
        return vectors

    def _filter(self, chars: Tensor) -> Tensor:
        """(N, C) -> (N, F)."""
        convolutions = list(cast("Iterable[nn.Conv1d]", self.convolutions))
        weights = [convolution.weight for convolution in convolutions]
        bias = torch.cat([convolution.bias for convolution in convolutions if convolution.bias is not None])
        maxima = max_over_windows(chars, self._count_characters(chars), self.embedding.weight, weights)
        return ACTIVATIONS[self.activation](maxima + bias)

    def _run_by_length(self, chars: Tensor, lookups: LookupTables) -> Tensor:
        """(N, C) -> (N, F), in blocks of similar length, so that short words are padded less."""
        lengths = self._count_characters(chars)
        vectors = chars.new_empty(len(chars), self.size, dtype=self.embedding.weight.dtype)
        fits = lengths + self.widest <= chars.shape[1]
        if not bool(fits.all()) and bool(fits.any()):  # a long word does not slow down the others
            for words in (fits, ~fits):
                vectors[words] = self._run_by_length(chars[words], lookups)
            return vectors
        maxima = filter_words(lookups, chars, lengths, relu=self.activation == "relu") if fits[0] else None
        if maxima is not None:
            return maxima if self.activation == "relu" else apply_elementwise(torch.tanh, maxima)
        for block in torch.argsort(lengths).split(self.block_words):
            longest = int(lengths[block[-1]])
            width = longest + self.widest
            if width <= chars.shape[1]:
                maxima = look_up(lookups, chars[block, :width], longest + 1)
                vectors[block] = apply_elementwise(ACTIVATIONS[self.activation], maxima)
            else:
                vectors[block] = self._filter(chars[block])
        return vectors

    def _get_lookups(self) -> LookupTables | None:
        """The tables of the current weights; None if they would be too large."""
        if not is_small_enough(self.embedding.num_embeddings, self.widest, self.size):
            return None
        convolutions = cast("Iterable[nn.Conv1d]", self.convolutions)
        weights = list_source_weights(self.embedding, convolutions)
        if self._lookups is None or not self._lookups.sources.matches(weights):
            self._lookups = build_lookup_tables(self.embedding, convolutions, self.widest)
        return self._lookups

    def _count_characters(self, chars: Tensor) -> Tensor:
        """(N, C) -> (N,): the characters of each row before the padding."""
        counts = torch.arange(1, chars.shape[1] + 1, device=chars.device)
        return (((chars != self.padding) & (chars != 0)) * counts).amax(dim=1)


class TokenEncoder(nn.Module):
    """[word table; char-CNN], one of them or both, and an optional projection."""

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
            parts.append(take_rows(self.words.weight, words, self.words.padding_idx))  # type: ignore[arg-type]
        if self.chars is not None:
            parts.append(self.chars(chars))
        vectors = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        return apply_linears((self.projection,), vectors)[0] if self.projection is not None else vectors


def make_word_table(n_words: int, dim: int, *, trained: bool = True) -> nn.Embedding:
    """Create a word table of `n_words` rows after row 0 (padding); frozen unless `trained`."""
    table = make_embedding(n_words + 1, dim)
    table.weight.requires_grad_(trained)
    return table


def make_embedding(rows: int, dim: int) -> nn.Embedding:
    """Create a table with uniform random rows; row 0 is padding.

    (nn.Embedding draws from a normal distribution, for which torch imports its compiler on the meta device.)
    """
    weight = torch.empty(rows, dim).uniform_(-1, 1)
    weight[0].zero_()
    return nn.Embedding(rows, dim, padding_idx=0, _weight=weight, _freeze=False)


def fill_word_table(table: nn.Embedding, ids: Tensor, vectors: Tensor) -> None:
    """Copy static `vectors` (len(ids), dim) to the rows `ids` of a word table."""
    if vectors.shape != (len(ids), table.embedding_dim):
        raise ValueError(f"vectors are {tuple(vectors.shape)}, the rows ({len(ids)}, {table.embedding_dim})")
    with torch.no_grad():
        table.weight[ids] = vectors.to(table.weight)
