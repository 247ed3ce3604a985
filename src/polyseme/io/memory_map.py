"""Files of numbers as arrays that the system pages in and out.

    text.corpus.counts, text.corpus.build  ->  io.memory_map  ->  text.corpus.renumber, text.corpus.prepared

Comes in: a file of plain numbers. Goes out: a memory map of it. Pages that were touched count as memory of
the process until the system wants them back; `release` gives them back at once, so that memory stays the
same however large the file is.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def map_ids(file: Path, kind: Any) -> Any:
    """A file of numbers as an array: mapped, unless it is empty, which cannot be mapped."""
    return np.memmap(file, kind, "r") if file.stat().st_size else np.zeros(0, kind)


def release(*arrays: NDArray[Any] | None) -> None:
    """Give back the pages of mapped arrays; what was written to them stays, other arrays are left alone."""
    for array in arrays:
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            owner.madvise(mmap.MADV_DONTNEED)
