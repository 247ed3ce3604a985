"""Hints to the system about memory: release pages that will not be read soon, use large pages for weights.

    model.bilm, kernels.lstm  ->  model.fast.paging

Once weights are packed, the originals are read again only to train or to save them. If they are mapped from a
file, the system can drop their pages and read them again when needed. The packed weights of a large model are
read from end to end for every token, faster if their pages are large. If a hint is not supported, nothing
happens.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

import torch
from torch import Tensor

LARGE_PAGES, PAGE_OUT = 14, 21  # MADV_HUGEPAGE; MADV_PAGEOUT, Linux 5.4 and later
LARGE_PAGE = 1 << 21  # bytes


def page_out(values: Tensor) -> None:
    """Hint that `values`, mapped from a file, will not be read soon (other memory might be swapped out)."""
    if values.device.type == "cpu" and values.is_contiguous():
        _advise(values, mmap.PAGESIZE, PAGE_OUT)


def allocate_bytes(size: int) -> Tensor:
    """Allocate `size` bytes for weights, in large pages where they fill one; nothing is written yet."""
    if size < LARGE_PAGE:
        return torch.empty(size, dtype=torch.uint8, device="cpu")
    # Pages that are never written take no memory.
    memory = torch.empty(size + LARGE_PAGE, dtype=torch.uint8, device="cpu")
    start = -memory.data_ptr() % LARGE_PAGE
    values = memory[start : start + size]
    _advise(values, LARGE_PAGE, LARGE_PAGES)
    return values


def _advise(values: Tensor, page: int, advice: int) -> None:
    """Give the system a hint about the pages that `values` fill."""
    if not sys.platform.startswith("linux"):
        return
    first = -(-values.data_ptr() // page) * page
    size = (values.data_ptr() + values.nbytes - first) // page * page
    if size > 0:
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        advise(first, size, advice)  # fails without effect on old kernels
