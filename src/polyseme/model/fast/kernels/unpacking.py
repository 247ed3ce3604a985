"""Unpack the layers of a packed batch to one array per sentence, in C.

    elmo  ->  kernels.unpacking  ->  kernels.native

The same bits as `OutputSpec.select`, without the padded batch between: each direction writes its half of
every sentence, both at once if torch has two threads.

B sentences, N packed tokens, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.packing import BatchOutput

_Count = ctypes.c_int64


def can_unpack(output: BatchOutput) -> bool:
    """Whether C can read the layers of this batch."""
    return lstm.is_supported(*(layer for part in output.parts for layer in part.layers))


def unpack_sentences(
    output: BatchOutput, lengths: Sequence[int], weights: tuple[float, ...] | None
) -> list[NDArray[np.float32]]:
    """Unpack both directions of a batch.

    Args:
        output: The layers of the batch, for which `can_unpack`.
        lengths: The tokens of each sentence, without <S> and </S>.
        weights: Of each layer; None returns all layers.

    Returns:
        For each sentence its own array (tokens, H), or (L, tokens, H) without weights.

    """
    layers, width = len(output.parts[0].layers), output.parts[0].layers[0].shape[1]
    axes = () if weights is not None else (layers,)
    arrays = [np.empty((*axes, length, 2 * width), np.float32) for length in lengths]
    out = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    framed = (_Count * len(arrays))(*(length + 2 for length in lengths))
    used = [] if weights is None else [layer for layer, weight in enumerate(weights) if weight]
    alone = used[0] if len(used) == 1 and weights is not None and weights[used[0]] == 1.0 else -1
    tasks = (native.Unpack * len(output.parts))()
    for task, part in zip(tasks, output.parts, strict=True):
        sources = [layer.contiguous() for layer in part.layers]
        order = part.packed.order.tolist()
        task.steps, task.layers, task.width = len(part.packed.sizes), layers, width
        task.direction, task.alone = part.direction, alone
        task.sizes = (_Count * len(part.packed.sizes))(*part.packed.sizes)
        task.order, task.lengths, task.out = (_Count * len(order))(*order), framed, out
        task.sources = (ctypes.c_void_p * layers)(*(source.data_ptr() for source in sources))
        task.weights = None if weights is None else (ctypes.c_float * layers)(*weights)
        task.alive = sources
    native.load_library().polyseme_unpack(tasks, len(tasks), torch.get_num_threads())
    return arrays
