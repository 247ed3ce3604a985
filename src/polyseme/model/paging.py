"""Memory that is not needed soon, given back to the system; its contents stay.

    model.narrow  ->  model.paging

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
    """Say that `values` will not be read soon, if they are mapped from a file."""
    if not sys.platform.startswith("linux") or values.device.type != "cpu" or not values.is_contiguous():
        return
    page = mmap.PAGESIZE
    first = -(-values.data_ptr() // page) * page
    size = (values.data_ptr() + values.nbytes - first) // page * page
    if size > 0 and _is_mapped(first):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        advise(first, size, PAGE_OUT)  # an old kernel refuses, which changes nothing


def _is_mapped(address: int) -> bool:
    """Whether the memory at `address` comes from a file; other memory would go to the swap space."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as areas:
        for line in areas:
            area, _, _, _, inode = line.split()[:5]
            begin, end = (int(part, 16) for part in area.split("-"))
            if begin <= address < end:
                return inode != "0"
    return False
