"""Token vectors as bilm-tf caches them: an hdf5 file with one dataset `embedding`, one row per word.

token_cache  ->  formats.vectors.token_file  ->  formats.hdf5_writing, formats.safe_hdf5
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError
from polyseme.formats.hdf5_writing import Hdf5File
from polyseme.formats.safe_hdf5 import open_hdf5
from polyseme.io.atomic import new_file

DATASET = "embedding"


def write_token_file(
    path: Path, blocks: Iterable[NDArray[np.float32]], size: int, *, force: bool = False
) -> None:
    """Write blocks of vectors (…, size), one after the other."""
    with new_file(path, force=force) as new, Hdf5File(new) as file:
        dataset = file.create_dataset(DATASET, (0, size), np.float32, maxshape=(None, size))
        for block in blocks:
            dataset.resize(len(dataset) + len(block), axis=0)
            dataset[len(dataset) - len(block) :] = block
            file.check()


def read_token_file(path: Path) -> NDArray[np.float32]:
    """Read all vectors (V, D)."""
    with open_hdf5(path) as file:
        values = file.read(DATASET)
    if values.ndim != 2:
        raise FormatError(f"{path}: {DATASET} has {values.ndim} axes, expected 2: words and values.")
    return values
