"""Keep memory and garbage collection out of the way of thousands of equal steps.

    training.loop, tasks.trainable, benchmarks  ->  training.steady_process  ->  gc, the C library

A step allocates and frees the same large arrays again and again. glibc returns them to the system, which has
to clear every page for the next step; and the collector visits the objects of all modules again and again.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
KEPT = 1 << 28  # bytes: arrays up to this size come from memory that is kept, and as much of it may stay free
DEFAULTS = {M_MMAP_THRESHOLD: 1 << 25, M_TRIM_THRESHOLD: 1 << 26}  # the most that glibc chooses by itself


@contextmanager
def steady_process() -> Iterator[None]:
    """Keep freed memory for the next step, and leave objects that exist now out of garbage collection."""
    mallopt = _find_mallopt()
    gc.collect()
    gc.freeze()
    if mallopt is not None:
        for option in DEFAULTS:
            mallopt(option, KEPT)
    try:
        yield
    finally:
        gc.unfreeze()
        if mallopt is not None:
            for option, value in DEFAULTS.items():
                mallopt(option, value)


def release_free_memory() -> None:
    """Give freed memory back to the system.

    Steps of different sizes leave holes of all sizes, and glibc keeps them: without this, a process holds two
    or three times what its largest step needs.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def _find_mallopt() -> Callable[[int, int], int] | None:
    """Return mallopt of glibc; None with another C library."""
    if platform.libc_ver()[0] != "glibc":
        return None
    function: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    return function
