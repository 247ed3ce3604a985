"""A char-CNN as table lookups, for inference: the product of each character is computed once.

    model.tokens  ->  model.fast.lookup_tables

A filter of width w is a sum of w parts; each part depends only on one character and its position in the
filter. The parts of every character and position are computed once; a window is then a sum of rows. Narrow
filters have zero rows at the positions beyond their width.

N words, C characters, F number of filters, W widest filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.fast.weight_versions import WeightSnapshot

PANEL = 16  # filters that are computed together at least
MAX_TABLE_BYTES = 64 << 20  # larger tables do not fit the CPU cache and are no faster than a convolution


class LookupTables(NamedTuple):
    """The parts of all filters, and a snapshot of the weights that they were computed from."""

    table: Tensor  # (W * characters, F)
    bias: Tensor  # (F,)
    characters: int
    widths: Tensor  # (F / PANEL,) the widest filter of each PANEL
    sources: WeightSnapshot


def is_small_enough(characters: int, widest: int, size: int) -> bool:
    """Whether lookup tables of this size are faster than convolutions."""
    return characters * widest * size * 4 <= MAX_TABLE_BYTES


def build_lookup_tables(
    embedding: nn.Embedding, convolutions: Iterable[nn.Conv1d], widest: int
) -> LookupTables:
    """Compute every part of every filter."""
    filters = list(convolutions)
    characters = embedding.num_embeddings
    size = sum(len(f.weight) for f in filters)
    table = embedding.weight.new_zeros(widest, characters, size)  # filled in place: a copy would be as large
    first = 0
    for f in filters:
        for position in range(f.weight.shape[2]):
            table[position, :, first : first + len(f.weight)] = (
                embedding.weight @ f.weight[:, :, position].t()
            )
        first += len(f.weight)
    bias = torch.cat([f.bias for f in filters if f.bias is not None])
    widths = torch.cat([torch.full((len(f.weight),), f.weight.shape[2], device="cpu") for f in filters])
    widest_of_panel = torch.tensor([int(panel.max()) for panel in widths.split(PANEL)], device="cpu")
    snapshot = WeightSnapshot(list_source_weights(embedding, filters))
    return LookupTables(table.flatten(0, 1), bias, characters, widest_of_panel, snapshot)


def list_source_weights(embedding: nn.Embedding, convolutions: Iterable[nn.Conv1d]) -> list[Tensor]:
    """The weights that the tables depend on."""
    return [embedding.weight, *(weight for f in convolutions for weight in f.parameters())]


def look_up(lookups: LookupTables, chars: Tensor, windows: int) -> Tensor:
    """(N, windows + W - 1) -> (N, F): the maximum of each filter over the first `windows` windows."""
    widest = len(lookups.table) // lookups.characters
    ids = chars.unfold(1, widest, 1) + torch.arange(widest, device=chars.device) * lookups.characters
    sums = F.embedding_bag(ids.reshape(-1, widest), lookups.table, mode="sum")  # (N * windows, F)
    return sums.view(len(chars), windows, -1).amax(dim=1) + lookups.bias
