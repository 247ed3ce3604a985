"""Release the pages of weights that will not be read soon; their contents stay.

    model.bilm  ->  model.fast.paging

Once weights are packed, the originals are read again only to train or to save them. If they are mapped from a
file, the system can drop their pages and read them again when needed. This is a hint to the system: if it is
not supported, nothing happens.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

from torch import Tensor

PAGE_OUT = 21  # MADV_PAGEOUT, Linux 5.4 and later


def page_out(values: Tensor) -> None:
    """Hint that `values`, mapped from a file, will not be read soon (other memory might be swapped out)."""
    if not sys.platform.startswith("linux") or values.device.type != "cpu" or not values.is_contiguous():
        return
    page = mmap.PAGESIZE
    first = -(-values.data_ptr() // page) * page
    size = (values.data_ptr() + values.nbytes - first) // page * page
    if size > 0:
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        advise(first, size, PAGE_OUT)  # fails without effect on old kernels
