"""Read files of numbers as memory-mapped arrays.

    text.corpus.counts, text.corpus.build  ->  io.memory_map  ->  text.corpus.renumber, text.corpus.prepared

Pages that were read count as memory of the process until the system takes them back. `release` returns them
at once, so that memory stays constant however large the file is.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def map_ids(file: Path, kind: Any) -> Any:
    """Map a file of numbers as an array; an empty file, which cannot be mapped, gives an empty array."""
    return np.memmap(file, kind, "r") if file.stat().st_size else np.zeros(0, kind)


def release(*arrays: NDArray[Any] | None) -> None:
    """Return the pages of mapped arrays to the system; written values are kept, other arrays are ignored."""
    for array in arrays:
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            owner.madvise(mmap.MADV_DONTNEED)
