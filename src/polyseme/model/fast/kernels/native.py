"""Load the C library beside this file and declare its functions.

    kernels.lstm, kernels.dots  ->  kernels.native  ->  native.c

The library is optional: without it, or with POLYSEME_NATIVE=0 in the environment, torch does the same work.
It is loaded on first use.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

import torch
from torch import Tensor

NAME = "libpolyseme_native.so"
INTERFACE = 14  # the value of polyseme_interface() that this file expects
INSTRUCTION_SETS = ("bf16", "vnni", "avx512", "avx2", "portable")

KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}  # of packed weights

_Floats = ctypes.c_void_p
_Count = ctypes.c_int64


class Product(ctypes.Structure):
    """`struct product` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "fresh", "rows", "k", "n")),
        *((name, _Floats) for name in ("a", "weight", "scales", "scratch", "out")),
    ]


class Lstm(ctypes.Structure):
    """`struct lstm` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "steps", "batch", "inputs", "cells", "outputs", "z_rows")),
        ("sizes", ctypes.POINTER(_Count)),
        *((name, ctypes.c_float) for name in ("cell_clip", "output_clip", "forget")),
        *((name, _Floats) for name in ("input", "hidden", "projection")),
        *((name, _Floats) for name in ("input_scales", "hidden_scales", "projection_scales")),
        *((name, _Floats) for name in ("scratch", "first_h", "first_c", "x", "bias", "d_output")),
        *((name, _Floats) for name in ("z", "output", "gates", "memory", "raw", "last_h", "last_c")),
        *((name, _Floats) for name in ("d_z", "d_given", "recurred")),
    ]


class Outer(ctypes.Structure):
    """`struct outer` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "fresh", "tokens", "m", "n", "a_step", "b_step")),
        *((name, _Floats) for name in ("a", "b", "scratch", "out")),
    ]


class Loss(ctypes.Structure):
    """`struct loss` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "rows", "size", "samples")),
        ("scale", ctypes.c_float),
        *((name, _Floats) for name in ("outputs", "weight", "bias", "labels", "packed", "transposed")),
        *((name, _Floats) for name in ("scratch", "sums", "margins", "d_outputs", "d_weight", "d_bias")),
    ]


class Stack(ctypes.Structure):
    """`struct stack` of native.c, which describes the pointers."""

    _fields_ = [
        ("layers", ctypes.POINTER(Lstm)),
        *((name, _Count) for name in ("count", "residual", "tokens", "known")),
        *((name, _Floats) for name in ("vectors", "numbers", "x")),
    ]


class Unpack(ctypes.Structure):
    """`struct unpack` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("steps", "layers", "width", "direction", "alone")),
        *((name, ctypes.POINTER(_Count)) for name in ("sizes", "order", "lengths")),
        *((name, ctypes.POINTER(_Floats)) for name in ("sources",)),
        ("weights", ctypes.POINTER(ctypes.c_float)),
        ("out", ctypes.POINTER(_Floats)),
    ]


class Filters(ctypes.Structure):
    """`struct filters` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("words", "columns", "size", "characters", "relu")),
        *((name, _Floats) for name in ("chars", "lengths", "widths", "table", "bias", "out")),
    ]


class Windows(ctypes.Structure):
    """`struct windows` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("words", "columns", "size", "width", "step")),
        *((name, _Floats) for name in ("chars", "counts", "parts", "values", "first")),
    ]


class Lookup(ctypes.Structure):
    """`struct lookup` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("rows", "width", "count", "padding")),
        *((name, _Floats) for name in ("numbers", "gradient", "out")),
    ]


class Weight(ctypes.Structure):
    """`struct weight` of native.c, which describes the pointers."""

    _fields_ = [
        ("count", _Count),
        *((name, _Floats) for name in ("gradient", "values", "first", "second")),
        *((name, ctypes.c_float) for name in ("rate", "kept", "root")),
    ]


class Update(ctypes.Structure):
    """`struct update` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "count")),
        ("weights", ctypes.POINTER(Weight)),
        *((name, ctypes.c_float) for name in ("share", "beta1", "beta2", "epsilon", "decay")),
    ]


class Drop(ctypes.Structure):
    """`struct drop` of native.c, which describes the pointers."""

    _fields_ = [
        ("count", _Count),
        *((name, ctypes.c_uint32) for name in ("seed", "second_seed", "dropped")),
        ("factor", ctypes.c_float),
        *((name, _Floats) for name in ("x", "out")),
    ]


class HighwayTask(ctypes.Structure):
    """`struct highway` of native.c, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "rows", "size")),
        *((name, _Floats) for name in ("x", "transform", "carry", "transform_scales", "carry_scales")),
        *((name, _Floats) for name in ("transform_bias", "carry_bias", "scratch", "memory", "out")),
    ]


class Dots(ctypes.Structure):
    """`struct dots` of stored.h, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "rows", "width")),
        *((name, _Floats) for name in ("vectors", "query", "lengths", "keep")),
        ("offset", ctypes.c_float),
        *((name, _Floats) for name in ("scores", "tops")),
    ]


class Above(ctypes.Structure):
    """`struct above` of stored.h, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "rows", "width", "queries", "found")),
        *((name, _Floats) for name in ("vectors", "packed", "offsets", "least", "lengths", "keep")),
        *((name, _Floats) for name in ("scratch", "indices", "scores")),
    ]


class Squares(ctypes.Structure):
    """`struct squares` of stored.h, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "rows", "width")),
        *((name, _Floats) for name in ("vectors", "packed", "centre", "scratch", "found")),
    ]


class Totals(ctypes.Structure):
    """`struct totals` of stored.h, which describes the pointers."""

    _fields_ = [
        *((name, _Count) for name in ("kind", "rows", "width")),
        *((name, _Floats) for name in ("vectors", "indices", "sums")),
    ]


def allocate_scratch(size: int) -> Tensor:
    """Allocate `size` bytes for C to work in, on the CPU whatever torch's default device is."""
    return torch.empty(size, dtype=torch.uint8, device="cpu")


@cache
def _load() -> ctypes.CDLL | str:
    """The library, or the reason why it cannot be used."""
    if os.environ.get("POLYSEME_NATIVE") == "0":
        return "POLYSEME_NATIVE=0 turns it off"
    path = os.path.join(os.path.dirname(__file__), NAME)
    if not os.path.exists(path):
        return "it was not built: install polyseme where there is a C compiler"
    try:
        library = ctypes.CDLL(path)
        if library.polyseme_interface() != INTERFACE:
            return "it is of another version of polyseme: install polyseme again"
    except (OSError, AttributeError) as error:
        return f"it does not load: {error}"
    library.polyseme_instruction_set.restype = ctypes.c_char_p
    library.polyseme_use.argtypes = [ctypes.c_char_p]
    library.polyseme_packed_size.argtypes = [ctypes.c_int, *[_Count] * 3]
    library.polyseme_scratch_size.argtypes = [_Count] * 2
    library.polyseme_lstm_scratch_size.argtypes = [ctypes.POINTER(Lstm)]
    library.polyseme_outer_scratch_size.argtypes = [_Count]
    library.polyseme_loss_scratch_size.argtypes = [_Count] * 3
    sizes = (
        "packed",
        "scratch",
        "lstm_scratch",
        "above_scratch",
        "squares_scratch",
        "outer_scratch",
        "loss_scratch",
    )
    for size in sizes:
        getattr(library, f"polyseme_{size}_size").restype = _Count
    library.polyseme_pack.argtypes = [ctypes.c_int, _Floats, *[_Count] * 5, _Floats]
    library.polyseme_pack_rounded.argtypes = [_Floats, *[_Count] * 5, _Floats]
    library.polyseme_pack_rounded.restype = None
    library.polyseme_pack.restype = library.polyseme_product.restype = None
    library.polyseme_product.argtypes = [ctypes.POINTER(Product)]
    library.polyseme_map.argtypes = [ctypes.c_int, _Floats, _Floats, _Count]
    for function in (library.polyseme_lstm_forward, library.polyseme_lstm_backward):
        function.argtypes, function.restype = [ctypes.POINTER(Lstm)], None
    library.polyseme_read.argtypes = [ctypes.POINTER(Stack), _Count, _Count]
    library.polyseme_unpack.argtypes = [ctypes.POINTER(Unpack), _Count, _Count]
    library.polyseme_unpack.restype = None
    library.polyseme_filter.argtypes = [ctypes.POINTER(Filters), _Count]
    library.polyseme_filter.restype = library.polyseme_highway.restype = None
    library.polyseme_highway.argtypes = [ctypes.POINTER(HighwayTask), _Count]
    library.polyseme_highway_scratch_size.argtypes = [_Count]
    library.polyseme_highway_scratch_size.restype = _Count
    for function in (library.polyseme_windows, library.polyseme_windows_backward):
        function.argtypes, function.restype = [ctypes.POINTER(Windows)], None
    library.polyseme_lookup_backward.argtypes = [ctypes.POINTER(Lookup), _Count]
    library.polyseme_lookup_backward.restype = None
    library.polyseme_update.argtypes = [ctypes.POINTER(Update), _Count]
    library.polyseme_update.restype = None
    library.polyseme_square_sum_count.argtypes = [ctypes.POINTER(Update)]
    library.polyseme_square_sum_count.restype = _Count
    library.polyseme_square_sum.argtypes = [ctypes.POINTER(Update), _Count, _Floats]
    library.polyseme_square_sum.restype = ctypes.c_double
    library.polyseme_drop.argtypes = [ctypes.POINTER(Drop), *[_Count] * 2]
    library.polyseme_drop.restype = None
    library.polyseme_above_scratch_size.argtypes = [_Count] * 2
    library.polyseme_squares_scratch_size.argtypes = [_Count]
    for kind in (Outer, Loss, Dots, Above, Squares, Totals):
        function = getattr(library, f"polyseme_{kind.__name__.lower()}")
        function.argtypes, function.restype = [ctypes.POINTER(kind)], None
    return library


def is_available() -> bool:
    """Whether the library can be used."""
    return not isinstance(_load(), str)


def unavailable_reason() -> str | None:
    """The reason why the library is not used; None if it is."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else None


def load_library() -> ctypes.CDLL:
    """Return the library; RuntimeError unless `is_available()`."""
    loaded = _load()
    if isinstance(loaded, str):
        raise RuntimeError(f"The native part is not used: {loaded}.")
    return loaded


def active_instruction_set() -> str:
    """Return the instruction set in use, one of INSTRUCTION_SETS."""
    name: bytes = load_library().polyseme_instruction_set()
    return name.decode()


def select_instruction_set(name: str) -> bool:
    """Switch the process to an instruction set; False if the CPU does not support it."""
    return bool(load_library().polyseme_use(name.encode()))
