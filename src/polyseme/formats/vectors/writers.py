"""Write vectors to one file, sentence by sentence; the ending of its name selects the format.

api.embedding, bulk_embedding, tasks.vector_store  ->  formats.vectors.writers  ->  one file
->  formats.vectors.readers
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.formats.vectors.file_formats import VectorWriter, find_vector_format
from polyseme.io.atomic import new_file


@contextmanager
def open_writer(
    path: Path, empty: NDArray[Any], *, pooled: bool, force: bool = False
) -> Iterator[VectorWriter]:
    """Open a file for writing; it appears as `path` if the block ends without an error.

    Args:
        path: The file.
        empty: The vectors of a sentence without tokens, which have the shape and type of all others.
        pooled: Whether a sentence has one vector instead of one per token.
        force: Replace an existing file.

    """
    vector_format = find_vector_format(path)
    with new_file(path, force=force) as temporary:
        writer = vector_format.writer(temporary, empty, pooled)
        try:
            yield writer
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                writer.close()
            raise
        writer.close()


def cast_vectors(vectors: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Cast vectors to float32 or float16; an error if float16 cannot hold a value."""
    try:
        with np.errstate(over="raise"):
            return vectors.astype(np.dtype(dtype), copy=False)
    except FloatingPointError:
        largest = float(np.abs(vectors).max())
        raise UsageError(
            f'A value of {largest:,.0f} does not fit into float16. Use `dtype="float32"`.'
        ) from None
