"""Memory that is not needed soon, given back to the system; its contents stay.

    model.bilm  ->  model.fast.paging

Weights that were laid out anew are not read again unless somebody trains or saves. Where they are mapped from
a file, the system may drop their pages, and reads them from there if they are asked for. A hint: where it
cannot be given, nothing happens.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

from torch import Tensor

PAGE_OUT = 21  # MADV_PAGEOUT, Linux 5.4 and later


def page_out(values: Tensor) -> None:
    """Say that `values` will not be read soon; for those mapped from a file, others might be swapped out."""
    if not sys.platform.startswith("linux") or values.device.type != "cpu" or not values.is_contiguous():
        return
    page = mmap.PAGESIZE
    first = -(-values.data_ptr() // page) * page
    size = (values.data_ptr() + values.nbytes - first) // page * page
    if size > 0:
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        advise(first, size, PAGE_OUT)  # an old kernel refuses, which changes nothing
