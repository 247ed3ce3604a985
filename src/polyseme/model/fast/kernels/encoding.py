"""Encode words before any context, in C: filters over characters by lookup tables, and highways.

    model.tokens  ->  kernels.encoding  ->  kernels.native

All cores share a call: the words of the filters, the columns of a highway. Each word gets the same bits in
every batch and with any number of threads. None is returned where C cannot compute it; torch does then.

N words, C characters, F number of filters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.lookup_tables import LookupTables

FILTERS = 64  # computed together, in every instruction set
WIDE_SETS = ("bf16", "vnni", "avx512")  # where the product is fast enough for torch to be in the way
HIGHWAY_ROWS = 48  # words whose products are computed together


def filter_words(lookups: LookupTables, chars: Tensor, lengths: Tensor, *, relu: bool) -> Tensor | None:
    """Characters (N, C) of words to the strongest window of each filter (N, F), plus bias.

    Args:
        lookups: The parts of all filters.
        chars: Character ids; behind each word there is room for the widest filter.
        lengths: Characters of each word before its padding (N,).
        relu: Return 0 instead of negative values.

    """
    table = lookups.table
    if not lstm.is_supported(table, lookups.bias) or table.shape[1] % FILTERS or not len(chars):
        return None
    if chars.min() < 0 or chars.max() >= lookups.characters:
        return None  # torch raises the error
    chars, lengths = chars.contiguous(), lengths.contiguous()
    out = table.new_empty(len(chars), table.shape[1])
    task = native.Filters(len(chars), chars.shape[1], table.shape[1], lookups.characters, relu)
    task.chars, task.lengths = chars.data_ptr(), lengths.data_ptr()
    task.widths, task.table = lookups.widths.data_ptr(), table.data_ptr()
    task.bias, task.out = lookups.bias.data_ptr(), out.data_ptr()
    native.load_library().polyseme_filter(task, torch.get_num_threads())
    return out


def run_highway(
    x: Tensor, transform: lstm.PackedWeight, carry: lstm.PackedWeight, biases: tuple[Tensor, Tensor]
) -> Tensor | None:
    """Run a highway on x (N, F); see `model.tokens.Highway`."""
    size = x.shape[1]
    if not lstm.is_supported(x, *biases) or size % lstm.PANEL or not len(x):
        return None
    if native.active_instruction_set() not in WIDE_SETS:
        return None  # so that vectors keep the bits of torch's sigmoid there
    library, threads, x = native.load_library(), torch.get_num_threads(), x.contiguous()
    memory, out = x.new_empty(2 * HIGHWAY_ROWS * size), torch.empty_like(x)
    scratch = native.allocate_scratch(threads * library.polyseme_highway_scratch_size(size))
    task = native.HighwayTask(transform.kind, len(x), size)
    task.x, task.out, task.memory = x.data_ptr(), out.data_ptr(), memory.data_ptr()
    task.transform, task.carry = transform.packed.data_ptr(), carry.packed.data_ptr()
    if transform.scales is not None and carry.scales is not None:
        task.transform_scales, task.carry_scales = transform.scales.data_ptr(), carry.scales.data_ptr()
    task.transform_bias, task.carry_bias = (bias.data_ptr() for bias in biases)
    task.scratch = scratch.data_ptr()
    library.polyseme_highway(task, threads)
    return out
